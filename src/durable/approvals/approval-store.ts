import { approvalStep, type Task } from '#durable/task/task-row.ts'
import type { ApprovalDetail } from '#kernel/task/act-approval-request.ts'
import type { ActionTerms } from '#kernel/task/policy-action.ts'
import { type Queryable, query } from '#store/query.ts'
import type { ApprovalRow } from '#store/tables/durable.ts'

/** Stored requests that wait for a person's decision; if there are several decisions, the first one counts. */

export type ApprovalIntent = ActionTerms & {
  kind: string
  /** The chain of the action; null, like `usd`, for an act that moves no money. */
  chain_id: string | null
  usd: string | null
  details?: ApprovalDetail[]
  agent_id: string
  /** The OAuth client that asked for the approval; null if an agent with a key pair asked. */
  client_id: string | null
  rule: string
  reason: string
}
export type Approval = Omit<ApprovalRow, 'intent'> & { intent: ApprovalIntent }
export type Decision = NonNullable<Approval['decision']>

const waiting = `from approval a join task t on t.id = a.task_id
  where a.user_id = any($1::uuid[]) and a.expires_at > $2 and a.decision is null
    and t.status in ('pending', 'running') and not t.cancel_requested`

/** Waiting requests up to a limit; `total` also counts the requests beyond the limit. */
export type Waiting = { approvals: Approval[]; total: number }

/**
 * Lists waiting approvals, newest first. Beyond the limit, the newest ones of each user come before the second
 * newest of any, so that an agent that asks often hides no request of another one.
 */
export async function waitingApprovals(
  db: Queryable,
  userIds: readonly string[],
  { now, limit }: { now: Date; limit: number },
): Promise<Waiting> {
  const rows = await query<Approval & { total: number }>(
    db,
    `select * from (
       select a.*, count(*) over ()::integer as total,
         row_number() over (partition by a.user_id order by a.requested_at desc, a.task_id desc) as nth
       ${waiting} order by nth, a.requested_at desc, a.task_id desc limit $3) listed
     order by requested_at desc, task_id desc`,
    [userIds, now, limit],
  )
  return { approvals: rows, total: rows[0]?.total ?? 0 }
}

/** Counts a user's waiting requests; `ofClient` counts those of the app `clientId`, and is 0 for a key pair. */
export async function countWaiting(
  db: Queryable,
  userId: string,
  { clientId, now }: { clientId: string | null; now: Date },
): Promise<{ all: number; ofClient: number }> {
  const text = `select count(*)::integer as "all",
    count(*) filter (where a.intent ->> 'client_id' = $3)::integer as "ofClient" ${waiting}`
  const [row] = await query<{ all: number; ofClient: number }>(db, text, [[userId], now, clientId])
  return row!
}

type Made = { count: number; count_of_client: number; first: Date | null; first_of_client: Date | null }
/** Counts a user's requests that expire after `expireAfter`, including those decided or cancelled before. */
export async function countMade(
  db: Queryable,
  userId: string,
  { clientId, expireAfter }: { clientId: string | null; expireAfter: Date },
): Promise<Made> {
  const text = `select count(*)::integer as count, min(expires_at) as first,
    count(*) filter (where intent ->> 'client_id' = $3)::integer as count_of_client,
    min(expires_at) filter (where intent ->> 'client_id' = $3) as first_of_client
    from approval where user_id = $1 and expires_at > $2`
  const [row] = await query<Made>(db, text, [userId, expireAfter, clientId])
  return row!
}

/** Locks a user's requests until the end of the transaction, so that each new one counts those before it. */
export const lockRequests = (tx: Queryable, userId: string) =>
  query(tx, 'select pg_advisory_xact_lock(hashtextextended($1, 0))', [`approvals ${userId}`])

export async function waitingRequest(
  db: Queryable,
  { userId, digest, now }: { userId: string; digest: string; now: Date },
): Promise<Approval | undefined> {
  const [row] = await query<Approval>(db, `select a.* ${waiting} and a.intent_sha256 = $3 limit 1`, [
    [userId],
    now,
    digest,
  ])
  return row
}

export const approvalOfTask = async (db: Queryable, taskId: string): Promise<Approval | undefined> =>
  (await query<Approval>(db, 'select * from approval where task_id = $1', [taskId]))[0]

export const approvalById = async (db: Queryable, approvalId: string): Promise<Approval | undefined> =>
  (await query<Approval>(db, 'select * from approval where approval_id = $1', [approvalId]))[0]

/** Stores a decision about a request; returns false if there was one. The caller has locked the task's row. */
export async function writeDecision(
  tx: Queryable,
  taskId: string,
  { decision, by, at }: { decision: Decision; by: string | null; at: Date },
): Promise<boolean> {
  const rows = await query(
    tx,
    `update approval set decision = $2, decided_by = $3, decided_at = $4
     where task_id = $1 and decision is null returning task_id`,
    [taskId, decision, by, at],
  )
  return rows.length === 1
}

export type DecidedTask = Pick<Task, 'status' | 'cancel_requested' | 'step'>

export async function takeDecision(
  tx: Queryable,
  { task_id: taskId, expires_at: expiresAt }: Approval,
  { decision, by, at }: { decision: Decision; by: string; at: Date },
): Promise<{ isFirst: boolean; task: DecidedTask | undefined }> {
  // A cancel locks the task's row too, so either the cancel or the decision comes first.
  const [task] = await query<DecidedTask>(
    tx,
    'select status, cancel_requested, step from task where id = $1 for no key update',
    [taskId],
  )
  const isOpen =
    task?.step === approvalStep && /^(pending|running)$/.test(task.status) && !task.cancel_requested
  const isFirst = isOpen && at < expiresAt && (await writeDecision(tx, taskId, { decision, by, at }))
  if (isFirst)
    await query(tx, 'update task_queue set run_at = $2 where task_id = $1 and run_at > $2', [taskId, at])
  return { isFirst, task }
}
