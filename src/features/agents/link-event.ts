import type { ActScope } from '#kernel/contract/caller.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { Owner } from '#store/person-of-user.ts'
import type { AgentsDeps } from './deps.ts'

export type LinkedPair = { agentId: string; person: Pick<Owner, 'agentId'> }

/** The agent and the person each get the same event in their log. `by` is the agent id of the one who acted. */
export const linkEvent = (
  type: 'agent.linked' | 'agent.unlinked' | 'agent.link_contested' | 'agent.link_accepted',
  { agentId, person }: LinkedPair,
  by: string,
): NewEvent => ({
  type,
  subject: { kind: 'agent', id: agentId },
  data: { agent_id: agentId, person_id: person.agentId, by },
})

type Published = {
  event: NewEvent
  /** Further events for the log of one of the users. */
  more?: { userId: string; events: readonly NewEvent[] }
}

/** Every caller adds to the logs in the same order, because each addition locks the event log of its user. */
export async function publish(
  { events }: Pick<AgentsDeps, 'events'>,
  { tx, afterCommit }: ActScope,
  users: readonly string[],
  { event, more }: Published,
): Promise<void> {
  const ordered = [...users].sort()
  for (const userId of ordered)
    await events.add(tx, userId, [event, ...(more?.userId === userId ? more.events : [])])
  afterCommit(() => {
    for (const userId of ordered) events.notify(userId)
  })
}
