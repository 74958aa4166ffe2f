import { Fault } from '#kernel/fault.ts'
import type { Intent, Replacement, StepResult, Tx } from '#kernel/task.ts'
import { query, settleAll } from '#store/query.ts'
import type { TaskRow } from '#store/tables/durable.ts'
import { takeNonce } from './nonces.ts'
import { buildEffect, signedEffectJson, txAttemptJson } from './signed-effect.ts'
import { transition } from './step-transition.ts'
import { asTask, type Task } from './task-row.ts'
import { type Committed, type TaskWriteDeps, writeTask } from './task-write.ts'
import { retryOnConflict, type Transactions } from './transactions.ts'

export type { Committed } from './task-write.ts'

type CommitterDeps = TaskWriteDeps & { transactions: Transactions }
type SigningResult = Extract<StepResult, { sign: unknown }>
/** A step that only signs, and so can be committed together with the acceptance of its task. */
export type SignOnAccept = SigningResult & { sign: { signOnAccept: NonNullable<Intent['signOnAccept']> } }
export const canSignOnAccept = (result: StepResult): result is SignOnAccept => {
  if (!('sign' in result) || !result.sign.signOnAccept || result.writes) return false
  return (
    result.spent === undefined && (result.moves ?? []).length === 0 && (result.effects ?? []).length === 0
  )
}

type RetryState = { state: string; outcome: 'unknown' | null }
/** Writes the results of steps, fenced by the version. */
export type Committer = {
  /** Undefined where the task was claimed again, or where a cancel came first. */
  step(task: Task, result: StepResult): Promise<Committed | undefined>
  /** Commits the acceptance and the first step in one transaction. */
  acceptAndSign(task: Task, result: SignOnAccept, acceptance: object): Promise<Committed>
  /** Schedules the same step again after a failed attempt. */
  retry(task: Task, afterMs: number, retryState: RetryState): Promise<Committed | undefined>
  /** The task and the instance that runs it now. */
  reread(taskId: string): Promise<OwnedTask | undefined>
}
export type OwnedTask = { task: Task; owner: string | null }

export const createCommitter = (deps: CommitterDeps): Committer => ({
  step: (task, result) => commitStep(deps, task, result),
  acceptAndSign: (task, result, acceptance) => acceptAndSign(deps, task, result, acceptance),
  retry: (task, afterMs, retryState) => commitRetry(deps, task, afterMs, retryState),
  reread: (taskId) => rereadTask(deps, taskId),
})

async function commitStep(
  deps: CommitterDeps,
  task: Task,
  result: StepResult,
): Promise<Committed | undefined> {
  const takesNonce = 'sign' in result || 'replace' in result
  if (!takesNonce && !result.writes) {
    return retryOnConflict(() =>
      writeTask(deps, deps.transactions.pool, { task, change: transition(task, result) }),
    )
  }
  return withTaskLock(deps, task, async (tx) => {
    await result.writes?.(tx)
    const committed = await commitInTransaction(deps, tx, task, result)
    // A concurrent cancel rolls everything back: the nonce, the signature and the writes of the feature.
    if (!committed) throw new CommitLost()
    return committed
  }).catch((error: unknown) => {
    if (error instanceof CommitLost) return undefined
    if (error instanceof SigningRefused) return commitStep(deps, task, error.fallback)
    throw error
  })
}

/** Locks the row of the task before any other row, so that all transactions lock in one order. */
const withTaskLock = async <T>(
  { transactions }: CommitterDeps,
  task: Task,
  run: (tx: Tx) => Promise<T>,
): Promise<T | undefined> =>
  transactions.run(async (tx) => {
    const held = await query(
      tx,
      `select id from task where id = $1 and version = $2 and status in ('pending', 'running') for update`,
      [task.id, task.version],
    )
    return held.length === 1 ? run(tx) : undefined
  })

async function commitInTransaction(
  deps: CommitterDeps,
  tx: Tx,
  task: Task,
  result: StepResult,
): Promise<Committed | undefined> {
  const change = transition(task, result)
  if (!('sign' in result)) {
    const extra = 'replace' in result ? { txAttempt: await replacementJson(tx, result.replace) } : {}
    return writeTask(deps, tx, { task, change, extra })
  }
  const { nonceSequence, minNonce, build, onRefused } = result.sign
  const signOnce = async () => {
    const sign = await build(tx)
    return sign(await takeNonce(tx, nonceSequence, minNonce))
  }
  const built = await signOnce().catch((error: unknown) => {
    throw onRefused && error instanceof Fault && !error.retryable
      ? new SigningRefused(onRefused(error))
      : error
  })
  const signed = buildEffect(deps, built, nonceSequence, task.step)
  const after = await writeTask(deps, tx, {
    task,
    change,
    extra: signedEffectJson(built, signed, nonceSequence),
  })
  return after && { ...after, signed }
}

const replacementJson = async (tx: Tx, { effectId, nonceSequence, build }: Replacement) =>
  txAttemptJson(await build(tx), effectId, nonceSequence)

/**
 * Takes the nonce before any other lock, so that a transaction that waits for it blocks no other. All writes then go out
 * in one round trip.
 */
const acceptAndSign = (
  deps: CommitterDeps,
  task: Task,
  result: SignOnAccept,
  acceptance: object,
): Promise<Committed> => {
  const { nonceSequence, minNonce, signOnAccept } = result.sign
  return deps.transactions.pipelined(
    (tx) => settleAll([takeNonce(tx, nonceSequence, minNonce), signOnAccept(tx)]),
    async (tx, [nonce, sign], commit) => {
      const built = await sign(nonce)
      const signed = buildEffect(deps, built, nonceSequence, task.step)
      const extra = signedEffectJson(built, signed, nonceSequence)
      const change = transition(task, result)
      const [, after] = await settleAll([
        built.writes(),
        writeTask(deps, tx, { task, change, extra, acceptance }),
        commit(),
      ])
      if (!after) throw new Error(`task ${task.id} is missing in the transaction that inserted it`)
      return { ...after, signed }
    },
  )
}

async function commitRetry(
  deps: CommitterDeps,
  task: Task,
  afterMs: number,
  { state, outcome }: RetryState,
): Promise<Committed | undefined> {
  const change = transition(task, { park: { afterMs, next: task.step } })
  return writeTask(deps, deps.transactions.pool, {
    task,
    change: { ...change, state, outcome, attempts: task.attempts + 1 },
  })
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
/** Rolls the transaction back, the nonce included; `fallback` is committed instead. */
class SigningRefused extends Error {
  readonly fallback: StepResult
  constructor(fallback: StepResult) {
    super('the signature was refused')
    this.fallback = fallback
  }
}
