import { takeNonces } from '#durable/run/nonces.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { Tx } from '#kernel/task/task.ts'
import { jsonText, query, settleAll } from '#store/query.ts'
import { type Acceptance, insertAcceptances, type StoredSignature, type Verdict } from './acceptance.ts'
import type { LockWait } from './lock-waiters.ts'

/** Accepts tasks in a transaction, because they are signed under a nonce sequence without gaps. */

type TransactionDeps = { transactions: Transactions; instanceId: string }
export type Decision = { verdict: Verdict; signature?: StoredSignature }
type Accepted = { acceptance: Acceptance; n: number; signature?: StoredSignature }

/**
 * Locks in the order of every other transaction: first what may refuse the acceptances, then the nonce sequence,
 * then the event numbers. A signature that fails rolls everything back, so the sequence has no gaps.
 */
export const acceptInTransaction = (
  { transactions, instanceId }: TransactionDeps,
  acceptances: readonly Acceptance[],
  lockWait: LockWait,
): Promise<Decision[]> =>
  transactions.run(async (tx) => {
    const verdicts = await insertAcceptances(
      tx,
      instanceId,
      acceptances.map((acceptance) => ({ ...acceptance, events: [] })),
      lockWait,
    )
    const accepted = acceptances
      .map((acceptance, n) => ({ acceptance, n }))
      .filter(({ n }) => verdicts[n]?.verdict === 'accepted')
    if (accepted.length === 0) return verdicts.map((verdict) => ({ verdict }))
    const signed = await signInOrder(tx, accepted)
    const lasts = await completeAcceptances(tx, signed, lockWait)
    return verdicts.map((verdict, n) => {
      const signature = signed.find((each) => each.n === n)?.signature
      const decided = verdict.verdict === 'accepted' ? { ...verdict, last: lasts.get(n) ?? null } : verdict
      return { verdict: decided, ...(signature && { signature }) }
    })
  })

async function signInOrder(tx: Tx, accepted: readonly Accepted[]): Promise<Accepted[]> {
  const signing = accepted.flatMap(({ acceptance: { inOrder } }) => inOrder ?? [])
  const sequence = signing[0]?.sequence
  if (!sequence) return [...accepted]
  let minNonce = 0n
  for (const each of signing) if (each.minNonce > minNonce) minNonce = each.minNonce
  // Every acceptance of this batch takes its nonce from the same row, and would wait for this row as long without the
  // others, so the lock timeout is lifted.
  const [, firstNonce] = await settleAll([
    query(tx, `select set_config('lock_timeout', '0', true)`),
    takeNonces(tx, sequence, { minNonce, count: signing.length }),
  ])
  const signatures = await settleAll(signing.map(({ sign }, at) => sign(firstNonce + BigInt(at))))
  return accepted.map((each, at) => ({ ...each, signature: signatures[at] as StoredSignature }))
}

/** Stores signatures and events under the transaction's last locks; returns each acceptance's last event number. */
async function completeAcceptances(
  tx: Tx,
  accepted: readonly Accepted[],
  { lockWaitMs }: LockWait,
): Promise<Map<number, bigint>> {
  const json = accepted.map(({ acceptance: { task, events }, n, signature }) => ({
    n,
    id: task.id,
    user_id: task.user_id,
    at: task.updated_at,
    signed: signature?.json,
    events,
  }))
  const rows = await query<{ n: number; last: bigint | string }>(
    tx,
    'select * from task_accept_complete($1::jsonb, $2)',
    [jsonText(json), lockWaitMs],
  )
  return new Map(rows.map(({ n, last }) => [n, BigInt(last)]))
}
