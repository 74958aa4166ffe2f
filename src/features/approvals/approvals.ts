import type { Approval } from '#durable/approvals/approval-store.ts'
import type { Approvals } from '#durable/approvals/approvals.ts'
import { assertEstablished, assertUncontested, usersOf } from '#engines/agent-links/owners.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller, RequestFacts } from '#kernel/contract/caller.ts'
import { invalid, notFound } from '#kernel/contract/fault.ts'
import { type InputOf, implement, type Operation } from '#kernel/contract/operation.ts'
import { assertFreshPerson } from '#kernel/task/fresh-sign-in.ts'
import { personOf } from '#store/person-of-user.ts'
import type { Queryable } from '#store/query.ts'
import { contract } from './contract.ts'

/** Here people list, approve and decline what is reserved for them: requests of agents, and acts that allow more. */

type ApprovalsDeps = {
  approvals: Approvals
  clock: Clock
  db: Queryable
  /** How long a person cannot approve the requests of an agent that was just linked. */
  coolingMs: number
  /** Returns the address of the page that shows an approval; undefined if the gateway serves no such page. */
  page: (approvalId: string) => string | undefined
  waitingMax: number
}

const view = ({ approval_id, task_id, intent, intent_sha256, requested_at, expires_at }: Approval) => ({
  approval_id,
  task_id,
  intent,
  intent_sha256,
  requested_at: requested_at.toISOString(),
  expires_at: expires_at.toISOString(),
})

export function createApprovals(deps: ApprovalsDeps): Operation[] {
  const { approvals, db, waitingMax } = deps
  return implement(contract, {
    async list(_input, { userId }) {
      const waiting = await approvals.list(await usersOf(db, userId))
      return { approvals: waiting.approvals.map(view), total: waiting.total, max: waitingMax }
    },
    approve: (input, caller, request) => approve(deps, input, { caller, request }),
    async decline({ approval_id }, caller, request) {
      const { found } = await findFor(deps, approval_id, { caller, request })
      return decide(deps, 'declined', found, { caller, request })
    },
  })
}

type Asked = { caller: Caller; request: RequestFacts }

/** A request that another person decides about gets the same answer as one that does not exist. */
async function findFor({ approvals }: ApprovalsDeps, approvalId: string, { caller, request: { tx } }: Asked) {
  const found = await approvals.find(tx!, approvalId)
  const owner = found && (await personOf(tx!, found.user_id, { lock: true }))
  const isOwn = found?.user_id === caller.userId
  if (!found || (!isOwn && owner?.userId !== caller.userId)) throw notFound('approval', 'approvals_list')
  return { found, owner }
}

/** Acts that let a hook or a schedule sell by itself once a person has approved the act. */
const sellingActs: readonly string[] = ['hooks_register', 'schedules_activate']

async function approve(
  deps: ApprovalsDeps,
  { approval_id, intent_sha256 }: InputOf<(typeof contract)['entries']['approve']>,
  asked: Asked,
) {
  const { clock, page, coolingMs } = deps
  const { found, owner } = await findFor(deps, approval_id, asked)
  const confirmUrl = page(approval_id)
  assertFreshPerson(asked.caller, clock.now(), {
    intent_sha256: found.intent_sha256,
    expires_at: found.expires_at.toISOString(),
    ...(confirmUrl && { confirm_url: confirmUrl }),
  })
  assertUncontested(owner?.contestedAt ?? null)
  // The end of a young link undoes the settings that were approved through it, but not what an approved act has sold.
  if (found.intent.rule !== 'confirmation' || sellingActs.includes(found.intent.kind))
    assertEstablished(
      owner?.linkedAt ?? null,
      { now: clock.now(), coolingMs },
      (until) => `you approve its requests from ${until} on`,
    )
  if (intent_sha256 !== undefined && intent_sha256 !== found.intent_sha256)
    throw invalid(
      'intent_sha256',
      'value_error',
      'Input should be that of the request: `approvals_list` has it',
    )
  return decide(deps, 'approved', found, asked)
}

async function decide(
  { approvals }: ApprovalsDeps,
  decision: 'approved' | 'declined',
  { approval_id: approvalId }: Approval,
  { caller, request: { tx, afterCommit } }: Asked,
) {
  const decided = { approvalId, decision, by: caller.agentId }
  const { approval, readers } = await approvals.decide(tx!, decided)
  afterCommit!(() => approvals.decided({ readers }))
  return {
    ...view(approval),
    decision,
    decided_by: approval.decided_by ?? '',
    decided_at: approval.decided_at?.toISOString() ?? null,
  }
}
