import { linkCoolsUntil, subjectOf } from '#engines/agent-links/owners.ts'
import { later } from '#kernel/clock.ts'
import {
  type ActScope,
  actorOf,
  type Caller,
  type RequestFacts,
  toActScope,
} from '#kernel/contract/caller.ts'
import { conflict, Fault, notFound } from '#kernel/contract/fault.ts'
import { confirmedAct } from '#kernel/contract/operation.ts'
import { approvalDetail } from '#kernel/task/approval.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Owner, personOf } from '#store/person-of-user.ts'
import type { AgentsInput } from './contract.ts'
import type { AgentsDeps } from './deps.ts'
import { linkEvent, publish } from './link-event.ts'
import * as store from './store.ts'

type Person = Pick<Owner, 'userId' | 'agentId'>
type Link = { userId: string; agentId: string; person: Person; linkedAt: Date; contestedAt: Date | null }

/** The agent itself can end a young link; the person can end any, after a confirmation. */
export const createUnlink = (deps: AgentsDeps) =>
  confirmedAct(
    (input: AgentsInput<'unlink'>, caller: Caller, facts: RequestFacts) =>
      requestUnlink(deps, input, caller, facts),
    async (input, person) => async (scope) => {
      const { agent_id: agentId, linked_at: linkedAt } = input as { agent_id: string; linked_at?: string }
      const found = await findLink(scope.tx, person, agentId)
      if (linkedAt === undefined || found.linkedAt.toISOString() === linkedAt)
        return unlink(deps, scope, found, actorOf(person))
      throw conflict(
        'The agent was linked again since its end was asked for: ask for it again',
        'it is another link',
      )
    },
  )

async function unlink(
  deps: AgentsDeps,
  scope: ActScope,
  { userId, agentId, person, linkedAt, contestedAt }: Link,
  by: string,
) {
  const { clock, coolingMs, policy } = deps
  const { tx } = scope
  const ended = await store.removeLink(tx, { userId, personId: person.userId, linkedAt })
  if (!ended) throw notFound('agent', 'agents_list')
  // A stolen token of the agent must not lift what its person has set, unless the key's holder contests the link.
  const lifts =
    by === agentId
      ? contestedAt !== null
      : linkCoolsUntil(linkedAt, { now: clock.now(), coolingMs }) !== undefined
  await policy.endLink(tx, { userId, person, linkedAt, isUndone: lifts, ...ended })
  const paused = await deps.endSchedules(scope, { userId, personId: person.userId, at: clock.now() })
  const event = linkEvent('agent.unlinked', { agentId, person }, by)
  await publish(deps, scope, [userId, person.userId], { event, more: { userId, events: paused } })
  return { agent_id: agentId, unlinked: true }
}

async function findLink(tx: Tx, person: Caller, agentId: string): Promise<Link> {
  const { userId, linkedAt, contestedAt } = await subjectOf(tx, person, agentId)
  if (!linkedAt) throw notFound('agent', 'agents_list')
  return { userId, agentId, person, linkedAt, contestedAt }
}

async function requestUnlink(
  deps: AgentsDeps,
  { agent_id: agentId }: AgentsInput<'unlink'>,
  caller: Caller,
  facts: RequestFacts,
) {
  const { clock, coolingMs, acts } = deps
  const scope = toActScope(facts)
  const { tx } = scope
  if (agentId === caller.agentId) {
    const person = await personOf(tx, caller.userId)
    if (!person?.linkedAt) throw notFound('agent', 'agents_list')
    const { linkedAt, contestedAt } = person
    if (later(linkedAt, coolingMs) <= clock.now())
      throw new Fault(
        'step_up_required',
        'Only the person of this agent ends a link of this age; the holder of the key contests it by `agents_contest`',
        { extras: { requires: 'person' } },
      )
    return unlink(
      deps,
      scope,
      { userId: caller.userId, agentId, person, linkedAt, contestedAt },
      caller.agentId,
    )
  }
  const { linkedAt } = await findLink(tx, caller, agentId)
  const act = {
    operation: 'agents_unlink',
    input: { agent_id: agentId, linked_at: linkedAt.toISOString() },
    text: `Unlink the agent ${agentId} from your account`,
    details: [approvalDetail('Agent', agentId)],
  }
  return acts.requestAct(scope, act, caller)
}
