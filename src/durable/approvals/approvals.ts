import type { NewTask } from '#durable/accept/acceptance.ts'
import type { AcceptedTask, KnownRequest } from '#durable/accept/admit-task.ts'
import { readyTopic } from '#durable/events/notifier.ts'
import type { Committed } from '#durable/run/step-committer.ts'
import { newestKind } from '#durable/task/task-kinds.ts'
import { readTask } from '#durable/task/task-queries.ts'
import { approvalStep, type Task } from '#durable/task/task-row.ts'
import { toTaskBrief } from '#durable/task/task-view.ts'
import { createKeyedMutex, type KeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { later } from '#kernel/clock.ts'
import {
  type ActScope,
  type Asker,
  type Caller,
  isOwnClient,
  pagesClientId,
} from '#kernel/contract/caller.ts'
import { budgetSpent, conflict, Fault } from '#kernel/contract/fault.ts'
import { sha256, uuidv7 } from '#kernel/id.ts'
import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import type { ActRequest, ActRequests, RequestedAct } from '#kernel/task/act-approval-request.ts'
import { type ApprovalRequired, actionTerms } from '#kernel/task/approval.ts'
import { personRequired } from '#kernel/task/fresh-sign-in.ts'
import type { Tx } from '#kernel/task/task.ts'
import { canonicalJson, type JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { type Approvers, addEvent, approvalEvent, readersOf } from './approval-events.ts'
import { type ApprovalsDeps, admissionMs, decideWaiting } from './approval-step.ts'
import {
  type Approval,
  type ApprovalIntent,
  approvalById,
  countMade,
  countWaiting,
  type DecidedTask,
  lockRequests,
  takeDecision,
  type Waiting,
  waitingApprovals,
  waitingRequest,
} from './approval-store.ts'

/**
 * Requests that policy reserves for a person. Each is a waiting task, which reserves and signs nothing. The row
 * of its approval takes one decision, and that decision alone makes the task accepted or ended.
 */

export type Deciding = { approvalId: string; decision: 'approved' | 'declined'; by: string }
/** A decided approval; `readers` are the users whose event logs got the event of the decision. */
export type Decided = { approval: Approval; readers: string[] }

export type Approvals = ActRequests & {
  request(given: KnownRequest, required: ApprovalRequired): Promise<AcceptedTask>
  decideWaiting(task: Task): Promise<Committed | undefined>
  find(db: Queryable, approvalId: string): Promise<Approval | undefined>
  /** Lists waiting requests, newest first; if not all fit, each user has about as many in the list as any other. */
  list(userIds: readonly string[]): Promise<Waiting>
  /** Stores the first decision about a request, in the transaction of an act; throws if the decision is too late. */
  decide(tx: Tx, deciding: Deciding): Promise<Decided>
  /** Wakes the task and the streams after the commit of `decide`; it reads nothing, so that it cannot fail. */
  decided(decided: Pick<Decided, 'readers'>): void
}

const waitMs = 30 * 60_000
export const waitingMax = 20
const listedMax = 200
/** The time over which a user's requests are limited, since even declined ones leave rows and events. */
const madeMs = 15 * 60_000
const madeMax = 60
const madeOfClientMax = 30

export function createApprovals(deps: ApprovalsDeps, approvers: Approvers): Approvals {
  const { transactions, clock } = deps
  // A mutex by user, so that requests that wait for the user's lock occupy no connection.
  const turns = createKeyedMutex()
  return {
    request: (given, required) => requestApproval({ ...deps, turns }, approvers, given, required),
    requestAct: (scope, act, caller) => requestAct(deps, approvers, scope, { act, caller }),
    decideWaiting: (task) => decideWaiting(deps, approvers, task),
    find: approvalById,
    list: (userIds) => waitingApprovals(transactions.pool, userIds, { now: clock.now(), limit: listedMax }),
    decide: (tx, deciding) => decide(deps, approvers, tx, deciding),
    decided({ readers }) {
      deps.notifier.notify([readyTopic])
      for (const userId of readers) deps.events.notify(userId)
    },
  }
}

async function requestApproval(
  deps: ApprovalsDeps & { turns: KeyedMutex },
  approvers: Approvers,
  { operation, kind, input, asker, keyed, request }: KnownRequest,
  required: ApprovalRequired,
): Promise<AcceptedTask> {
  const { transactions, turns } = deps
  const { userId } = asker
  if ((await approvers.personOf(transactions.pool, userId)) === undefined)
    throw new Fault(
      'approval_required',
      `${required.message}; no person is linked to this agent, so nobody could approve it: link one by \`agents_link_code\`, or stay below the limit`,
      { cause: required, extras: required.extras },
    )
  const intent = intentOf(operation.name, asker, required)
  const wanted = {
    operation: operation.name,
    kind,
    userId,
    input,
    intent,
    key: keyed,
    ...(asker.executionId !== undefined && { executionId: asker.executionId }),
    ...(request && { request }),
  }
  const { id, readers } = await turns.run(userId, () =>
    transactions.run((tx) => storeRequest(deps, approvers, tx, wanted)),
  )
  for (const reader of readers) deps.events.notify(reader)
  return { task: await readTask(transactions.pool, id) }
}

type WantedRequest = Pick<NewTask, 'userId' | 'kind' | 'input' | 'key' | 'executionId' | 'request'> & {
  operation: string
  intent: ApprovalIntent
}
async function storeRequest(
  deps: ApprovalsDeps,
  approvers: Approvers,
  tx: Tx,
  { operation, userId, kind, input, intent, key, executionId, request }: WantedRequest,
): Promise<{ id: string; readers: string[] }> {
  const { intake, clock, random } = deps
  const { client_id: clientId } = intent
  const now = clock.now()
  const expiresAt = later(now, waitMs)
  const id = uuidv7(now, random)
  const approval: Approval = {
    task_id: id,
    approval_id: uuidv7(now, random),
    user_id: userId,
    operation,
    agent_id: intent.agent_id,
    intent,
    intent_sha256: digestOf({ userId, operation, input, intent }),
    requested_at: now,
    expires_at: expiresAt,
    decision: null,
    decided_by: null,
    decided_at: null,
  }
  const shown = {
    approval_id: approval.approval_id,
    expires_at: expiresAt.toISOString(),
    confirm_url: approvers.page(approval.approval_id) ?? null,
  }
  await lockRequests(tx, userId)
  await assertRoom(tx, userId, { clientId, now })
  const requested = approvalEvent('approval.requested', approval)
  const accept = () =>
    intake.enqueue(tx, {
      id,
      userId,
      kind,
      input,
      admission: {
        first: approvalStep,
        data: { approval: shown, asks: intent.text },
        deadlineMs: waitMs + admissionMs,
        rows: [{ table: 'approval', rows: [rowOf(approval)] }],
      },
      ...(key && { key }),
      ...(executionId !== undefined && { executionId }),
      ...(clientId !== null && !isOwnClient(clientId) && { clientId }),
      ...(request && { request }),
      state: 'awaiting_approval',
      runAt: expiresAt,
      events: [requested],
    })
  const readers = await readersOf(approvers, tx as Queryable, userId)
  // All transactions lock event logs in the order of user ids. Accepting the task locks the user's log, so it takes
  // its place in that order.
  for (const reader of readers)
    await (reader === userId ? accept() : deps.events.add(tx, reader, [requested]))
  return { id, readers }
}

type OfClient = { clientId: string | null; now: Date }
async function assertRoom(tx: Tx, userId: string, { clientId, now }: OfClient): Promise<void> {
  const { all: waiting, ofClient } = await countWaiting(tx, userId, { clientId, now })
  // Requests of other apps must not stop a person who asks on the gateway's own pages.
  const isPage = clientId === pagesClientId
  const ofOthers = isPage ? 0 : waiting - ofClient
  if (ofOthers + 2 * ofClient >= waitingMax)
    throw conflict(
      `${waiting} requests of this user wait for a person already: cancel some, or wait for the decisions`,
      `at most ${waitingMax} wait at a time, and of one app half of what others leave`,
    )
  const expireAfter = later(now, waitMs - madeMs)
  const made = await countMade(tx, userId, { clientId, expireAfter })
  const spent = (whose: string, max: number, first: Date | null) =>
    budgetSpent('rate_limited', `${whose} has made ${max} requests for a person in the last 15 minutes`, {
      budget: 'approvals',
      owner: 'user',
      retryAfterSeconds: Math.ceil((Number(first) - Number(expireAfter)) / 1_000),
    })
  if (made.count_of_client >= madeOfClientMax) throw spent('This app', madeOfClientMax, made.first_of_client)
  if (!isPage && made.count >= madeMax) throw spent('This user', madeMax, made.first)
}

async function requestAct(
  deps: ApprovalsDeps,
  approvers: Approvers,
  { tx, afterCommit }: ActScope,
  { act: { operation, input, text, details }, caller }: { act: ActRequest; caller: Caller },
): Promise<RequestedAct> {
  const { kinds, clock, events } = deps
  const { userId } = caller
  if (!approvers.hasNoPeople && (await approvers.personOf(tx as Queryable, userId)) === undefined)
    throw personRequired()
  const intent: ApprovalIntent = {
    ...actionTerms(text),
    details,
    kind: operation,
    chain_id: null,
    usd: null,
    agent_id: caller.agentId,
    client_id: caller.person?.clientId ?? null,
    rule: 'confirmation',
    reason: 'no app and no agent decides this, so only you confirm it',
  }
  const digest = digestOf({ userId, operation, input, intent })
  const known = await waitingRequest(tx as Queryable, { userId, digest, now: clock.now() })
  if (known) return requestedTask(tx, known.task_id)
  const kind = newestKind(kinds, operation)
  if (!kind) throw new Error(`no kind for ${operation}`)
  const { id, readers } = await storeRequest(deps, approvers, tx, { operation, userId, kind, input, intent })
  afterCommit(() => {
    for (const reader of readers) events.notify(reader)
  })
  return requestedTask(tx, id)
}

async function requestedTask(tx: Tx, taskId: string): Promise<RequestedAct> {
  const task = toTaskBrief(await readTask(tx as Queryable, taskId))
  return { ...task, approval: task.approval! }
}

type Digested = { userId: string; operation: string; input: JsonObject; intent: ApprovalIntent }
const digestOf = ({ userId, operation, input, intent }: Digested): string =>
  sha256(canonicalJson({ user_id: userId, operation, input, intent }))

const rowOf = ({ requested_at, expires_at, decided_at: _undecided, ...row }: Approval): JsonObject => ({
  ...row,
  requested_at: requested_at.toISOString(),
  expires_at: expires_at.toISOString(),
})

function intentOf(kind: string, asker: Asker, { action, rule, extras }: ApprovalRequired): ApprovalIntent {
  const { terms, chainId, usdMicros, recipients } = action
  return {
    ...(terms ?? actionTerms(`Run ${kind}`, { recipient: recipients[0] ?? null })),
    kind,
    chain_id: chainId,
    usd: fromUnits(usdMicros, usdDecimals),
    agent_id: asker.agentId,
    client_id: asker.clientId ?? null,
    rule,
    reason: String(extras.reason),
  }
}

async function decide(
  deps: ApprovalsDeps,
  approvers: Approvers,
  tx: Tx,
  { approvalId, decision, by }: Deciding,
): Promise<Decided> {
  const known = await approvalById(tx, approvalId)
  if (!known) throw new Error(`approval ${approvalId} does not exist`)
  const { isFirst, task } = await takeDecision(tx, known, { decision, by, at: deps.clock.now() })
  const approval = (await approvalById(tx, approvalId))!
  if (!isFirst) {
    if (approval.decision === decision) return { approval, readers: [] }
    throw tooLate(approval, task)
  }
  const readers = await addEvent(deps, approvers, tx, {
    userId: approval.user_id,
    event: approvalEvent('approval.decided', approval),
  })
  return { approval, readers }
}

function tooLate({ decision }: Approval, task: DecidedTask | undefined): Fault {
  const isCancelled = task?.cancel_requested || task?.status === 'cancelled'
  const status = decision ?? (isCancelled ? 'cancelled' : 'expired')
  return new Fault('conflict', `The request was ${status} before: nothing was changed`, {
    extras: { status, reason: `it was ${status}` },
  })
}
