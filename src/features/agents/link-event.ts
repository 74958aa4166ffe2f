import type { Owner } from '#engines/agent-links/owners.ts'
import type { NewEvent } from '#kernel/task/task.ts'

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
