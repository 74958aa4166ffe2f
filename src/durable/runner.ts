import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Effect, RetryRule, StepResult, TaskKind } from '#kernel/task.ts'
import { raceAbort, StepAborted } from './abort.ts'
import type { Committed, Committer } from './commit.ts'
import { kindKey } from './kinds.ts'
import { createLeases } from './lease.ts'
import type { CommittedEvents, LocalEvents } from './local-events.ts'
import { type Notifier, readyTopic } from './notifier.ts'
import { slotsByUser } from './slots-by-user.ts'
import { cancelled, deferToNewerVersion, failed, withNotExecutedHook } from './step-result.ts'
import { isEnded, isLive, readEffects, stepView, type Task } from './task-row.ts'
import type { Transactions } from './transactions.ts'

export type RunnerOptions = { slots: number; leaseMs: number; pollMs: number }
type RunnerDeps = {
  transactions: Transactions
  committer: Committer
  kinds: ReadonlyMap<string, TaskKind>
  notifier: Notifier
  localEvents: LocalEvents
  clock: Clock
  random: Random
  log: Log
  instanceId: string
  options: RunnerOptions
  /** Renews leases over connections of its own, so that no amount of work can delay it. */
  heartbeats: pg.Pool
}

export type RunnerCounts = { running: number; slots: number }
export type Slot = {
  /** Runs a task that this instance has just written, with the one effect that it may have. */
  take(task: Task, signed?: Effect): void
} & Disposable
export type Runner = {
  /**
   * A slot for a task that is inserted already leased to this instance; undefined where none is free, or where the user
   * has its share of them.
   */
  reserve(priority: number, userId: string): Slot | undefined
  counts(): RunnerCounts
  start(): void
} & AsyncDisposable

const defaultRetry: RetryRule = { attemptsMax: 8, firstMs: 200, maxMs: 10_000 }
/** An unknown outcome is looked up for ever, ever more rarely. */
const reconcileRetry: RetryRule = { attemptsMax: Number.POSITIVE_INFINITY, firstMs: 500, maxMs: 60_000 }
const stepTimeoutMsDefault = 30_000
/** Exits (cancel, close, stop) find room even when everything else is busy. */
const exitSlots = 8
/** The part of the slots that one user fills at most; of those for exits it is a half. */
const userShare = 0.75
/** A task that is being worked on; `effects` where all of them are known without asking, `signed` in the last commit. */
type LoadedTask = {
  task: Task
  effects?: Effect[] | undefined
  signed?: Effect | undefined
  committedEvents?: CommittedEvents | undefined
}

/** The run of one claim; `abort` ends it where the lease is lost. */
type RunningTask = { epoch: number; abort: AbortController; work: Promise<void> }

/** What was changed is read again; what was only added need not be. */
function effectsAfter(effects: Effect[], result: StepResult, { signed }: Committed): Effect[] | undefined {
  if ('replace' in result || (result.effects ?? []).length > 0) return undefined
  return signed ? [...effects, signed] : effects
}

function withNeverSent({ neverSent: _before, ...effect }: Effect, signed: Effect | undefined): Effect {
  return effect.id === signed?.id ? { ...effect, neverSent: true } : effect
}

export function createRunner({
  transactions,
  committer,
  kinds,
  notifier,
  localEvents,
  clock,
  random,
  log,
  instanceId,
  options,
  heartbeats,
}: RunnerDeps): Runner {
  const running = new Map<string, RunningTask>()
  let reserved = 0
  let stopping = false

  const capacity = (priority: number) =>
    Math.max(0, options.slots + (priority === 0 ? exitSlots : 0) - running.size - reserved)

  const slotCounts = slotsByUser()
  const userSlotsMax = (priority: number) =>
    Math.ceil(options.slots * userShare) + (priority === 0 ? exitSlots / 2 : 0)

  const backoffMs = ({ firstMs, maxMs }: RetryRule, attempt: number) =>
    Math.ceil(Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 30)) * (0.5 + random.fraction() / 2))

  /** What a step that threw makes of its task. Nothing is called failed while bytes of it may be under way. */
  const handleFailure = async (
    task: Task,
    kind: TaskKind,
    error: unknown,
  ): Promise<LoadedTask | undefined> => {
    const fault = error instanceof Fault ? error : undefined
    if (!fault) log.error({ error, task: task.id, step: task.step }, 'a step threw what it should not')
    const live = (await readEffects(transactions.pool, task.id)).some(
      (effect) => isLive(effect) || effect.status === 'confirmed',
    )
    const attempts = task.attempts + 1
    if (live) {
      const unknown = attempts >= 3
      return committer.retry(task, backoffMs(reconcileRetry, task.attempts), {
        state: unknown ? (clock.now() > task.deadline ? 'review' : 'reconciling') : task.state,
        outcome: unknown ? 'unknown' : null,
      })
    }
    const rule = kind.retry ?? defaultRetry
    const isFinal = fault && !fault.retryable
    if (!isFinal && attempts < rule.attemptsMax && clock.now() < task.deadline)
      return committer.retry(task, backoffMs(rule, task.attempts), { state: task.state, outcome: null })
    const end = failed(
      fault?.code ?? 'internal',
      fault?.message ?? 'An internal error stopped the task',
      fault?.extras,
    )
    return committer.step(task, withNotExecutedHook(end, kind, task.id))
  }

  const runStep = async (
    task: Task,
    effects: Effect[],
    kind: TaskKind,
    lost: AbortSignal,
  ): Promise<StepResult> => {
    const exposed = effects.some((effect) => effect.status !== 'dropped' && effect.status !== 'rejected')
    if (task.cancel_requested && !exposed) return cancelled('Cancelled on request')
    if (clock.now() > task.deadline && !exposed)
      return failed('expired', 'The deadline passed before anything was sent')
    const step = kind.steps[task.step]
    if (!step) {
      log.warn({ task: task.id, kind: task.kind, step: task.step }, 'this version has no such step')
      return deferToNewerVersion(task)
    }
    const timeoutMs = kind.stepTimeoutMs ?? stepTimeoutMsDefault
    const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), lost])
    return raceAbort(step(stepView(task, effects), { now: clock.now(), signal }), signal).catch(
      (error: unknown) => {
        if (!(error instanceof StepAborted) || lost.aborted) throw error
        throw new Fault('upstream_timeout', `The step ${task.step} took longer than ${timeoutMs} ms`, {
          cause: error.cause,
        })
      },
    )
  }

  const attempt = async (
    loaded: LoadedTask,
    kind: TaskKind,
    lost: AbortSignal,
  ): Promise<LoadedTask | undefined> => {
    const { task } = loaded
    try {
      const known = loaded.effects ?? (await readEffects(transactions.pool, task.id))
      const effects = known.map((each) => withNeverSent(each, loaded.signed))
      const result = await runStep(task, effects, kind, lost)
      const committed = await committer.step(task, withNotExecutedHook(result, kind, task.id))
      return committed && { ...committed, effects: effectsAfter(effects, result, committed) }
    } catch (error) {
      if (lost.aborted) return undefined
      return handleFailure(task, kind, error)
    }
  }

  /** Nothing was written: a cancel came first, or the reply to an earlier commit was lost. The row tells which. */
  const advance = async (
    loaded: LoadedTask,
    kind: TaskKind,
    lost: AbortSignal,
  ): Promise<LoadedTask | undefined> => {
    const after = await attempt(loaded, kind, lost)
    if (after || lost.aborted) return after
    const { task } = loaded
    const now = await committer.reread(task.id)
    const mine = now && now.epoch === task.epoch && now.owner === instanceId && !isEnded(now)
    if (!mine) return undefined
    const changed = now.commits !== task.commits || now.cancel_requested !== task.cancel_requested
    // What was refused once without a reason is refused again: the task waits until its lease has run out.
    if (!changed) log.error({ task: task.id, step: task.step }, 'the database refused a commit of its owner')
    return changed ? { task: now } : undefined
  }

  const run = async (first: LoadedTask, lost: AbortSignal): Promise<void> => {
    const kind = kinds.get(kindKey(first.task.kind, first.task.kind_version))
    if (!kind) return void (await committer.step(first.task, deferToNewerVersion(first.task)))
    let loaded = first
    while (!stopping && !lost.aborted) {
      const next = await advance(loaded, kind, lost)
      if (!next) return
      loaded = next
      const { task } = loaded
      localEvents.publish(task, loaded.committedEvents)
      if (isEnded(task)) return
      if (task.owner === null) return queue.claimAt(task.run_at)
    }
  }

  const track = (loaded: LoadedTask) => {
    const { id, epoch, user_id: userId } = loaded.task
    // A claim of one's own task has raised its epoch: nothing that the earlier run does can be committed.
    running.get(id)?.abort.abort()
    if (!running.has(id)) slotCounts.add(userId)
    const abort = new AbortController()
    const work = run(loaded, abort.signal)
      // The database is away or refused: the lease runs out and another claim takes the task from its last commit.
      .catch((error: unknown) => log.warn({ error, task: id }, 'a task was let go; its lease will run out'))
      .finally(() => {
        if (running.get(id) === entry) {
          running.delete(id)
          slotCounts.remove(userId)
        }
        queue.slotFreed()
      })
    const entry: RunningTask = { epoch, abort, work }
    running.set(id, entry)
  }

  const queue = createLeases({
    pool: transactions.pool,
    heartbeats,
    clock,
    log,
    instanceId,
    options,
    capacity,
    usersAtShare: (priority) => slotCounts.withAtLeast(userSlotsMax(priority)),
    kinds: () => [...kinds.keys()],
    onClaimed: (task) => track({ task }),
    leased: () => [...running].map(([id, { epoch }]) => ({ id, epoch })),
    onLost: ({ id, epoch }) => {
      const entry = running.get(id)
      if (entry?.epoch === epoch) entry.abort.abort()
    },
    onPeerCount: notifier.setPeerCount,
  })
  const readySubscription = notifier.on(readyTopic, () => queue.claimNow())

  const reserve = (priority: number, userId: string): Slot | undefined => {
    if (stopping || capacity(priority) === 0 || slotCounts.count(userId) >= userSlotsMax(priority))
      return undefined
    reserved += 1
    slotCounts.add(userId)
    let isReserved = true
    const release = () => {
      if (!isReserved) return
      isReserved = false
      reserved -= 1
      slotCounts.remove(userId)
    }
    return {
      take(task, signed) {
        release()
        track({ task, effects: signed ? [signed] : [], signed })
      },
      [Symbol.dispose]() {
        if (!isReserved) return
        release()
        queue.slotFreed()
      },
    }
  }

  return {
    reserve,
    counts: () => ({ running: running.size, slots: options.slots }),
    start: () => queue.start(),
    async [Symbol.asyncDispose]() {
      stopping = true
      readySubscription[Symbol.dispose]()
      await queue[Symbol.asyncDispose]()
      await Promise.all([...running.values()].map(({ work }) => work))
      await queue.releaseAll()
    },
  }
}
