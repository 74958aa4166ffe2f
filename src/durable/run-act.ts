import type { Caller } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Tx } from '#kernel/task.ts'
import { query } from '#store/query.ts'
import { bodyHash, findKey, isKeyTaken, type KeyedRequest } from './idempotency.ts'
import type { Answer, UserCall } from './operation-call.ts'
import type { Transactions } from './transactions.ts'

export type ActRunnerDeps = { transactions: Transactions; clock: Clock }
type ActCall = UserCall<'act'>
type AfterCommit = (run: () => void) => void

/** Runs an act in one transaction; with a key, the key and the reply are part of that transaction. */
export async function runAct(deps: ActRunnerDeps, call: ActCall): Promise<Answer> {
  const { operation, input, caller, options } = call
  const { key } = options
  if (key === undefined) {
    const { request } = await prepareAct(call)
    const body = await runInTransaction(deps, (tx, afterCommit) =>
      operation.run(input, caller, { ...request, tx, afterCommit }),
    )
    return { kind: 'answer', body, replayed: false }
  }
  const keyed = {
    userId: caller.userId,
    key,
    operation: operation.name,
    hash: bodyHash(operation.name, input),
  }
  try {
    const earlier = await replayAct(deps, call, keyed)
    if (earlier) return earlier
    const prepared = await prepareAct(call)
    const body = await runInTransaction(deps, (tx, afterCommit) =>
      runUnderKey(deps, prepared, keyed, { tx, afterCommit }),
    )
    return { kind: 'answer', body, replayed: false, key }
  } catch (error) {
    const twin = isKeyTaken(error) ? await replayAct(deps, call, keyed) : undefined
    if (!twin) throw error
    return twin
  }
}

/** Upstreams are read before the transaction begins, and only where the reply is not known yet. */
async function prepareAct(call: ActCall): Promise<ActCall> {
  const { operation, input, caller, request } = call
  if (!('prepare' in operation.run)) return call
  const prepare = operation.run.prepare as (given: unknown, by: Caller) => Promise<unknown>
  return { ...call, request: { ...request, prepared: await prepare(input, caller) } }
}

/** A transaction that is repeated after a conflict starts with no callbacks of the one before. */
async function runInTransaction<T>(
  { transactions }: ActRunnerDeps,
  run: (tx: Tx, afterCommit: AfterCommit) => Promise<T>,
): Promise<T> {
  let callbacks: (() => void)[] = []
  const output = await transactions.run((tx) => {
    callbacks = []
    return run(tx, (callback) => callbacks.push(callback))
  })
  for (const callback of callbacks) callback()
  return output
}

/** The reply that is stored under the key, or the same reply computed again. */
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

async function runUnderKey(
  { clock }: ActRunnerDeps,
  { operation, input, caller, request }: ActCall,
  { userId, key, hash }: KeyedRequest,
  { tx, afterCommit }: { tx: Tx; afterCommit: AfterCommit },
): Promise<unknown> {
  await query(
    tx,
    'insert into idempotency (user_id, key, operation, body_hash, at) values ($1, $2, $3, $4, $5)',
    [userId, key, operation.name, hash, clock.now()],
  )
  const output = await operation.run(input, caller, { ...request, tx, afterCommit })
  if (isDerived(operation)) return output
  await query(tx, 'update idempotency set response = $3 where user_id = $1 and key = $2', [
    userId,
    key,
    JSON.stringify(output),
  ])
  return output
}

const isDerived = ({ entry }: ActCall['operation']): boolean => entry.replies === 'derived'
