import type { Deletion } from '#durable/upkeep/retention.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'

/** The check for callers that repeat a request without its idempotency key. */

/** `refuse` makes a repetition within the window a fault; `allow` records a repetition that the caller wants. */
export type Duplicates = 'refuse' | 'allow'
/** `hash` covers operation and input. An equal request after `since` is a duplicate; null allows duplicates. */
export type RecentRequest = { hash: string; since: Date | null }

const windowMs = 10 * 60_000

export const possibleDuplicate = (taskId: string): Fault =>
  new Fault(
    'possible_duplicate',
    'The same request was accepted less than 10 minutes ago under another key: read its task first, and send `confirm_repeat: true` only to do it a second time',
    { extras: { task_id: taskId } },
  )

/** A repeated act has no task to name, so the fault names the idempotency key of the earlier act. */
const repeatedAct = (key: string): Fault =>
  new Fault(
    'possible_duplicate',
    'The same request was accepted less than 10 minutes ago under another key: repeat it with `idempotency_key` of the details to read its answer, and send `confirm_repeat: true` only to do it a second time',
    { extras: { idempotency_key: key } },
  )

export const recentRequestOf = (hash: string, duplicates: Duplicates, { now }: Clock): RecentRequest => ({
  hash,
  since: duplicates === 'refuse' ? later(now(), -windowMs) : null,
})

/**
 * Throws before the admission, which would otherwise report that the earlier task has spent the balance. The accepting
 * statement checks again, and only its check is binding.
 */
export async function assertNoDuplicate(
  db: Queryable,
  userId: string,
  { hash, since }: RecentRequest,
): Promise<void> {
  if (!since) return
  const earlier = await fetchOne(
    db,
    builder
      .selectFrom('recent_request as r')
      .leftJoin('task as t', 't.id', 'r.task_id')
      .select('r.task_id')
      .where('r.user_id', '=', userId)
      .where('r.request_hash', '=', hash)
      .where('r.at', '>', since)
      .where(({ eb, ref }) => eb(ref('t.outcome'), 'is distinct from', 'not_executed')),
  )
  if (earlier) throw possibleDuplicate(earlier.task_id)
}

type ActRequest = { userId: string; operation: string; hash: string; key: string }

export async function assertNoRepeatedAct(
  db: Queryable,
  { userId, operation, hash, key }: ActRequest,
  { now }: Clock,
): Promise<void> {
  const earlier = await fetchOne(
    db,
    builder
      .selectFrom('idempotency')
      .select('key')
      .where('user_id', '=', userId)
      .where('body_hash', '=', hash)
      .where('operation', '=', operation)
      .where('task_id', 'is', null)
      .where('key', '!=', key)
      .where('at', '>', later(now(), -windowMs))
      .orderBy('at', 'desc')
      .limit(1),
  )
  if (earlier) throw repeatedAct(earlier.key)
}

/** Locks the request's hash for the transaction, so that only one of several equal requests passes anywhere. */
export const lockRequest = (tx: Queryable, { userId, hash }: Pick<ActRequest, 'userId' | 'hash'>) =>
  query(tx, 'select pg_advisory_xact_lock(hashtextextended($1, 0))', [`${userId}${hash}`])

export const recentRequestDeletion: Deletion = {
  name: 'retention of recent requests',
  ageMs: 2 * windowMs,
  text: `delete from recent_request where (user_id, request_hash) in
    (select user_id, request_hash from recent_request where at < $1 order by at limit $2) returning request_hash`,
}
