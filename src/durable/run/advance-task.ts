import type { CommittedEvents } from '#durable/events/local-events.ts'
import { isAdmitted, readEffects, stepView, type Task } from '#durable/task/task-row.ts'
import { MoneyHeld } from '#durable/time/money-hold.ts'
import type { Transactions } from '#durable/transactions.ts'
import { backoffMs, withJitter } from '#kernel/async/backoff.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import { isLookingUp } from '#kernel/task/forgotten-execution.ts'
import type { Effect, EndResult, RetryRule, StepResult, TaskKind } from '#kernel/task/task.ts'
import { isExposed, isLive, type LiveState } from '#kernel/task/task-state.ts'
import { raceAbort, StepAborted } from './step-abort.ts'
import type { Committed, Committer } from './step-committer.ts'
import { cancelled, deferToNewerVersion, failed } from './synthetic-step-results.ts'

/** The steps of one claimed task: run, commit, retry. */

export type TaskRunDeps = {
  transactions: Transactions
  committer: Committer
  clock: Clock
  random: Random
  log: Log
  instanceId: string
  decideWaiting(task: Task): Promise<Committed | undefined>
}

/**
 * A task to run. `effects` are all its effects, or undefined if they have to be queried. `signed` is the effect that the
 * last commit stored: nothing has been sent for it yet.
 */
export type LoadedTask = {
  task: Task
  effects?: Effect[] | undefined
  signed?: Effect | undefined
  committedEvents?: CommittedEvents | undefined
  parkedUntil?: Date | undefined
}

export type RunEnds = { lost: AbortSignal; stopping: AbortSignal }

const defaultRetry: RetryRule = { attemptsMax: 8, firstMs: 200, maxMs: 10_000 }
/** A task that waits for a person may be tried any number of times: the time limit of its approval ends it. */
const approvalRetry: RetryRule = { attemptsMax: Number.POSITIVE_INFINITY, firstMs: 200, maxMs: 10_000 }
/** Look-ups of an unknown outcome never end; their interval doubles up to a minute. */
const reconcileRetry: RetryRule = { attemptsMax: Number.POSITIVE_INFINITY, firstMs: 500, maxMs: 60_000 }
const stepTimeoutMsDefault = 30_000
/** A task whose step met a money hold runs again after this pause, which counts as no attempt. */
const heldRetryMs = 5_000

/**
 * Runs the next step of a task and commits its result. Returns undefined if this run must not continue. If nothing
 * was written, a cancel came first or the reply to an earlier commit was lost: the task's row decides.
 */
export async function advanceTask(
  deps: TaskRunDeps,
  loaded: LoadedTask,
  kind: TaskKind,
  ends: RunEnds,
): Promise<LoadedTask | undefined> {
  const after = await attemptStep(deps, loaded, kind, ends)
  if (after || ends.lost.aborted) return after
  const { task } = loaded
  const now = await deps.committer.reread(task.id)
  if (now?.owner !== deps.instanceId || now.task.version > task.version + 1) return undefined
  const changed = now.task.version !== task.version || now.task.cancel_requested !== task.cancel_requested
  // The task is unchanged, so the database would refuse the same commit again: the task waits until it is released.
  if (!changed) deps.log.error({ task: task.id, step: task.step }, 'commit of the lease owner refused')
  return changed ? { task: now.task } : undefined
}

async function attemptStep(
  deps: TaskRunDeps,
  loaded: LoadedTask,
  kind: TaskKind,
  ends: RunEnds,
): Promise<LoadedTask | undefined> {
  const { task } = loaded
  try {
    if (!isAdmitted(task)) return await deps.decideWaiting(task)
    const known = loaded.effects ?? (await readEffects(deps.transactions.pool, task.id))
    const effects = known.map((each) => withNeverSent(each, loaded.signed))
    const result = await runStep(deps, { task, effects }, kind, ends)
    const committed = await deps.committer.step(task, result)
    return committed && { ...committed, effects: effectsAfter(effects, result, committed) }
  } catch (error) {
    if (ends.lost.aborted) return undefined
    return handleFailure(deps, task, kind, error)
  }
}

async function runStep(
  { clock, log }: TaskRunDeps,
  { task, effects }: { task: Task; effects: Effect[] },
  kind: TaskKind,
  { lost, stopping }: RunEnds,
): Promise<StepResult> {
  // An execution that the database forgot has no effect row: while it is looked up, the task's outcome is `unknown`.
  const exposed = task.outcome === 'unknown' || effects.some(isExposed)
  const ended = exposed ? undefined : endBeforeStep(task, clock.now())
  if (ended && mayBeForgotten(task, kind, effects)) return lookUpFirst(task)
  if (ended) return kind.completeEnd?.(stepView(task, effects), ended) ?? ended
  const step = kind.steps[task.step]
  if (!step) {
    log.warn({ task: task.id, kind: task.kind, step: task.step }, 'this version has no such step')
    return deferToNewerVersion(task)
  }
  const timeoutMs = kind.stepTimeoutMs ?? stepTimeoutMsDefault
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), lost])
  return raceAbort(step(stepView(task, effects), { now: clock.now(), signal, stopping }), signal).catch(
    (error: unknown) => {
      if (!(error instanceof StepAborted) || lost.aborted) throw error
      throw new Fault('upstream_timeout', `The step ${task.step} took longer than ${timeoutMs} ms`, {
        cause: error.cause,
      })
    },
  )
}

function endBeforeStep(task: Task, now: Date): EndResult | undefined {
  if (task.cancel_requested) return cancelled('Cancelled on request')
  if (now > task.deadline) return failed('expired', 'The deadline passed before anything was sent')
  return undefined
}

/**
 * Whether the database may have forgotten an earlier task with the execution id of this task, which itself has run no
 * step yet.
 */
const mayBeForgotten = (task: Task, kind: TaskKind, effects: readonly Effect[]): boolean =>
  kind.looksUp === true && task.execution_id !== null && task.state === 'accepted' && effects.length === 0

/**
 * Parks the task with the outcome `unknown`. With this outcome, its step looks up earlier executions and signs nothing.
 */
const lookUpFirst = (task: Task): StepResult => ({
  park: { afterMs: 0, next: task.step },
  state: 'reconciling',
  outcome: 'unknown',
})

/** Retries or ends the task of a step that threw. A task never ends as failed while its bytes may still land. */
async function handleFailure(
  deps: TaskRunDeps,
  task: Task,
  kind: TaskKind,
  error: unknown,
): Promise<LoadedTask | undefined> {
  const { transactions, committer, clock, random, log } = deps
  if (error instanceof MoneyHeld)
    return committer.step(task, {
      park: { afterMs: heldRetryMs, next: task.step },
      state: task.state as LiveState,
      ...(task.outcome === 'unknown' && { outcome: 'unknown' }),
    })
  const fault = error instanceof Fault ? error : undefined
  if (!fault) log.error({ error, task: task.id, step: task.step }, 'step threw an unexpected error')
  const effects = await readEffects(transactions.pool, task.id)
  const sought = isLookingUp({ effects, outcome: task.outcome })
  const live = sought || effects.some((effect) => isLive(effect) || effect.status === 'confirmed')
  const attempts = task.attempts + 1
  if (live) {
    const unknown = sought || attempts >= 3
    return committer.retry(task, withJitter(backoffMs(reconcileRetry, task.attempts), random), {
      state: unknown ? (clock.now() > task.deadline ? 'review' : 'reconciling') : task.state,
      outcome: unknown ? 'unknown' : null,
    })
  }
  const rule = isAdmitted(task) ? (kind.retry ?? defaultRetry) : approvalRetry
  const isFinal = fault && !fault.retryable
  if (!isFinal && attempts < rule.attemptsMax && clock.now() < task.deadline)
    return committer.retry(task, withJitter(backoffMs(rule, task.attempts), random), {
      state: task.state,
      outcome: null,
    })
  const end = failed(
    fault?.code ?? 'internal',
    fault?.message ?? 'An internal error stopped the task',
    fault?.extras,
  )
  const whole = isAdmitted(task) ? kind.completeEnd?.(stepView(task, []), end) : undefined
  return committer.step(task, whole ?? end)
}

/** Returns the effects after a step, a new signed one appended; undefined if the step changed an effect. */
function effectsAfter(effects: Effect[], result: StepResult, { signed }: Committed): Effect[] | undefined {
  if ('replace' in result || (result.effects ?? []).length > 0) return undefined
  return signed ? [...effects, signed] : effects
}

function withNeverSent({ neverSent: _before, ...effect }: Effect, signed: Effect | undefined): Effect {
  return effect.id === signed?.id ? { ...effect, neverSent: true } : effect
}
