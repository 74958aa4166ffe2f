import type { AcknowledgedAct } from '#durable/time/acknowledged-commits.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { KeyedMutex } from '#kernel/async/keyed-mutex.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { requestExecutionId } from '#kernel/task/execution-id.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import type { Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import { batchLockWaitMs, isLockTimeout } from '#store/timeouts.ts'
import { assertNoRepeatedAct, lockRequest } from './duplicate-requests.ts'
import { findKey, isKeyTaken, type KeyedRequest } from './idempotency.ts'
import type { LockWaiters } from './lock-waiters.ts'
import type { Answer, UserCall } from './operation-call.ts'

export type ActRunnerDeps = {
  transactions: Transactions
  clock: Clock
  random: Random
  /** A mutex by user: acts of one user change the same rows, and each waiting act would hold a connection. */
  actTurns: KeyedMutex
  lockWaiters: LockWaiters
  acknowledgeAct: (act: AcknowledgedAct) => void
}
type ActCall = UserCall<'act'>
type AfterCommit = (run: () => void) => void

/** Runs an act in one transaction; with a key, the key and the reply are part of that transaction. */
export async function runAct(deps: ActRunnerDeps, call: ActCall): Promise<Answer> {
  const { operation, input, caller, options } = call
  const { userId } = caller
  // An act that is checked for repetition but has no key gets a new one, so that a repetition finds the act.
  const key = options.key ?? (options.duplicates && uuidv7(deps.clock.now(), deps.random))
  if (key === undefined) {
    const { request } = await prepareAct(call)
    // The internal key is stored only to show later whether the database still has this act; no request repeats under
    // this key.
    const own = internalKey('act', uuidv7(deps.clock.now(), deps.random))
    const keyed = { userId, key: own, operation: operation.name, hash: '' }
    const body = await runInTransaction(deps, userId, async (tx, afterCommit) => {
      await insertKey(tx, keyed, deps.clock)
      return operation.run(input, caller, { ...request, tx, afterCommit })
    })
    deps.acknowledgeAct(keyed)
    return { kind: 'answer', body, replayed: false }
  }
  const keyed = {
    userId,
    key,
    operation: operation.name,
    hash: bodyHash(operation.name, input),
  }
  try {
    const earlier = await replayAct(deps, call, keyed)
    if (earlier) return earlier
    if (options.duplicates === 'refuse') await assertNoRepeatedAct(deps.transactions.pool, keyed, deps.clock)
    const prepared = await prepareAct(call)
    const body = await runInTransaction(deps, userId, (tx, afterCommit) =>
      runUnderKey(deps, prepared, keyed, { tx, afterCommit }),
    )
    deps.acknowledgeAct({ userId, key })
    return { kind: 'answer', body, replayed: false, key }
  } catch (error) {
    const twin = isKeyTaken(error) ? await replayAct(deps, call, keyed) : undefined
    if (!twin) throw error
    return twin
  }
}

/** Runs the act's `prepare`, which reads upstreams, before the transaction and only if no reply is stored. */
async function prepareAct(call: ActCall): Promise<ActCall> {
  const { operation, input, caller, request } = call
  if (!('prepare' in operation.run)) return call
  const prepare = operation.run.prepare as (given: unknown, by: Caller) => Promise<unknown>
  return { ...call, request: { ...request, prepared: await prepare(input, caller) } }
}

/**
 * A repeated transaction drops the callbacks of its previous run. If the user's rows stay locked, the transaction
 * is rolled back and runs again as one of the few that may wait for locks.
 */
async function runInTransaction<T>(
  { transactions, actTurns, lockWaiters }: ActRunnerDeps,
  userId: string,
  run: (tx: Tx, afterCommit: AfterCommit) => Promise<T>,
): Promise<T> {
  let callbacks: (() => void)[] = []
  const runOnce = (tx: Tx) => {
    callbacks = []
    return run(tx, (callback) => callbacks.push(callback))
  }
  const output = await actTurns.run(userId, () =>
    transactions
      .pipelined((tx) => query(tx, 'select wait_for_locks($1)', [batchLockWaitMs]), runOnce)
      .catch((error: unknown) => {
        if (!isLockTimeout(error)) throw error
        return lockWaiters.run(userId, () => transactions.run(runOnce))
      }),
  )
  for (const callback of callbacks) callback()
  return output
}

async function replayAct(
  { transactions }: ActRunnerDeps,
  { operation, input, caller, request }: ActCall,
  keyed: KeyedRequest,
): Promise<Answer | undefined> {
  const stored = await findKey(transactions.pool, keyed)
  if (!stored) return undefined
  const body = isDerived(operation)
    ? await operation.run(input, caller, { ...request, isReplay: true })
    : stored.response
  return { kind: 'answer', body, replayed: true, key: keyed.key }
}

const insertKey = (tx: Tx, { userId, key, operation, hash }: KeyedRequest, { now }: Clock) =>
  query(tx, 'insert into idempotency (user_id, key, operation, body_hash, at) values ($1, $2, $3, $4, $5)', [
    userId,
    key,
    operation,
    hash,
    now(),
  ])

async function runUnderKey(
  { clock }: ActRunnerDeps,
  { operation, input, caller, options, request }: ActCall,
  keyed: KeyedRequest,
  { tx, afterCommit }: { tx: Tx; afterCommit: AfterCommit },
): Promise<unknown> {
  const { userId, key } = keyed
  await insertKey(tx, keyed, clock)
  if (options.duplicates === 'refuse') {
    await lockRequest(tx, keyed)
    await assertNoRepeatedAct(tx, keyed, clock)
  }
  const executionId = options.key === undefined ? undefined : requestExecutionId(keyed)
  const output = await operation.run(input, caller, {
    ...request,
    tx,
    afterCommit,
    ...(executionId !== undefined && { executionId }),
  })
  if (isDerived(operation)) return output
  await query(tx, 'update idempotency set response = $3 where user_id = $1 and key = $2', [
    userId,
    key,
    JSON.stringify(output),
  ])
  return output
}

const isDerived = ({ entry }: ActCall['operation']): boolean => entry.replies === 'derived'
