import { startLockWait } from '#durable/accept/lock-waiters.ts'
import { asTask, type Task } from '#durable/task/task-row.ts'
import { retryOnConflict, type Transactions } from '#durable/transactions.ts'
import { batchByArrival } from '#kernel/async/arrival-batches.ts'
import { createKeyedMutex, type KeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { Fault } from '#kernel/contract/fault.ts'
import {
  type Replacement,
  type StepAddition,
  type StepResult,
  systemOwner,
  type Tx,
} from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { TaskRow } from '#store/tables/durable.ts'
import { isLockTimeout } from '#store/timeouts.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'
import { takeNonce } from './nonces.ts'
import { buildEffect, signedEffectJson, txAttemptJson } from './signed-effect.ts'
import { transition } from './step-transition.ts'
import { type Committed, type TaskWrite, type TaskWriteDeps, writeTasks } from './write-tasks.ts'

export type { Committed } from './write-tasks.ts'

type CommitterDeps = TaskWriteDeps & { transactions: Transactions }
type Write = (write: TaskWrite) => Promise<Committed | undefined>
type CommitterContext = CommitterDeps & { write: Write; turns: KeyedMutex }

type RetryState = { state: string; outcome: 'unknown' | null }
/** Writes the results of steps, fenced by the version of the task. */
export type Committer = {
  /** Commits the result of a step; returns undefined if the task was claimed again, or if a cancel came first. */
  step(task: Task, result: StepResult): Promise<Committed | undefined>
  retry(task: Task, afterMs: number, retryState: RetryState): Promise<Committed | undefined>
  reread(taskId: string): Promise<OwnedTask | undefined>
}
export type OwnedTask = { task: Task; owner: string | null }

const batchSizeMax = 32

export const createCommitter = (deps: CommitterDeps): Committer => {
  const context = { ...deps, write: createWrite(deps), turns: createKeyedMutex() }
  return {
    step: (task, result) => commitStep(context, task, result),
    retry: (task, afterMs, retryState) => commitRetry(context, task, afterMs, retryState),
    reread: (taskId) => rereadTask(deps, taskId),
  }
}

/** Creates the writer of step results: steps that end while one statement runs share the next statement. */
function createWrite(deps: CommitterDeps): Write {
  const { pool } = deps.transactions
  return batchByArrival({
    async run(writes: readonly TaskWrite[], option) {
      const lockWait = await startLockWait(pool, writes[0]?.task.user_id, option)
      return retryOnConflict(() => writeTasks(deps, pool, writes, lockWait))
    },
    sizeMax: batchSizeMax,
    keyOf: ({ task }) => task.id,
    ownerOf: ({ task }) => task.user_id,
    isFinal: isDatabaseUnavailable,
    isBlocked: isLockTimeout,
  })
}

async function commitStep(
  context: CommitterContext,
  task: Task,
  result: StepResult,
): Promise<Committed | undefined> {
  const takesNonce = 'sign' in result || 'replace' in result
  if (!takesNonce && !result.writes && !result.complete)
    return context.write({ task, change: transition(task, result) })
  return withTaskLock(context, task, async (tx) => {
    await result.writes?.(tx).catch((error: unknown) => {
      const isRefused = error instanceof Fault && 'onWritesRefused' in result
      throw isRefused && result.onWritesRefused ? new StepRefused(result.onWritesRefused(error)) : error
    })
    const whole = result.complete ? withAddition(result, await result.complete(tx)) : result
    const committed = await commitInTransaction(context, tx, task, whole)
    // A concurrent cancel rolls everything back: the nonce, the signature and the writes of the feature.
    if (!committed) throw new CommitLost()
    return committed
  }).catch((error: unknown) => {
    if (error instanceof CommitLost) return undefined
    if (error instanceof StepRefused) return commitStep(context, task, error.fallback)
    throw error
  })
}

const withAddition = (
  result: StepResult,
  { data, events = [], result: fields }: StepAddition,
): StepResult => ({
  ...result,
  ...(data && { data: { ...result.data, ...data } }),
  events: [...(result.events ?? []), ...events],
  ...('end' in result && fields && { result: { ...result.result, ...fields } }),
})

/**
 * Locks the row of the task before any other row, so that all transactions lock in one order. Commits of one
 * user lock the same rows and wait for each other in memory: if these rows are locked elsewhere, only one
 * connection waits.
 */
const withTaskLock = async <T>(
  { transactions, turns }: CommitterContext,
  task: Task,
  run: (tx: Tx) => Promise<T>,
): Promise<T | undefined> =>
  turns.run(task.user_id === systemOwner ? task.id : task.user_id, () =>
    transactions.run(async (tx) => {
      const held = await query(
        tx,
        `select id from task where id = $1 and version = $2 and status in ('pending', 'running') for update`,
        [task.id, task.version],
      )
      return held.length === 1 ? run(tx) : undefined
    }),
  )

async function commitInTransaction(
  deps: CommitterDeps,
  tx: Tx,
  task: Task,
  result: StepResult,
): Promise<Committed | undefined> {
  const change = transition(task, result)
  if (!('sign' in result)) {
    const replacement =
      'replace' in result ? { signed: { txAttempt: await replacementJson(tx, result.replace) } } : {}
    const [committed] = await writeTasks(deps, tx, [{ task, change, ...replacement }])
    return committed
  }
  const { nonceSequence, minNonce, build, onRefused } = result.sign
  const signOnce = async () => {
    const sign = await build(tx)
    return sign(await takeNonce(tx, nonceSequence, minNonce))
  }
  const built = await signOnce().catch((error: unknown) => {
    throw onRefused && error instanceof Fault && !error.retryable ? new StepRefused(onRefused(error)) : error
  })
  const effect = buildEffect(deps, built, nonceSequence, task.step)
  const signed = signedEffectJson(built, effect, nonceSequence)
  const [committed] = await writeTasks(deps, tx, [{ task, change, signed }])
  return committed && { ...committed, signed: effect }
}

const replacementJson = async (tx: Tx, { effectId, nonceSequence, build }: Replacement) =>
  txAttemptJson(await build(tx), effectId, nonceSequence)

async function commitRetry(
  { write }: CommitterContext,
  task: Task,
  afterMs: number,
  { state, outcome }: RetryState,
): Promise<Committed | undefined> {
  const change = transition(task, { park: { afterMs, next: task.step } })
  return write({ task, change: { ...change, state, outcome, attempts: task.attempts + 1 } })
}

async function rereadTask({ transactions }: CommitterDeps, taskId: string): Promise<OwnedTask | undefined> {
  const [row] = await query<TaskRow & { owner: string | null }>(
    transactions.pool,
    'select task.*, owner from task left join task_queue on task_id = id where id = $1',
    [taskId],
  )
  if (!row) return undefined
  const { owner, ...task } = row
  return { task: asTask(task), owner }
}

class CommitLost extends Error {}
/** Thrown to roll back the transaction of refused writes, or of a refused signature; `fallback` is committed instead. */
class StepRefused extends Error {
  readonly fallback: StepResult
  constructor(fallback: StepResult) {
    super('the step was refused')
    this.fallback = fallback
  }
}
