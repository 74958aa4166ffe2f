import type pg from 'pg'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { Log } from '#kernel/log.ts'
import type { Effect, RetryRule, StepResult, TaskKind } from '#kernel/task.ts'
import { orAborted, StepAborted } from './abort.ts'
import type { Committed, Committer } from './commit.ts'
import { kindKey } from './kinds.ts'
import { leases } from './lease.ts'
import type { News, Told } from './news.ts'
import { effectsOf, isEnded, isLive, stepView, type Task } from './row.ts'
import { slotsByUser } from './slots-by-user.ts'
import { cancelled, failed, leftToNewer, releasing } from './step-result.ts'
import type { Transactions } from './transactions.ts'
import { readyTopic, type Wake } from './wake.ts'

export type RunnerOptions = { slots: number; leaseMs: number; pollMs: number }
type Needs = {
  transactions: Transactions
  committer: Committer
  kinds: ReadonlyMap<string, TaskKind>
  wake: Wake
  news: News
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

const defaultRetry: RetryRule = { attemptsMax: 8, firstMs: 200, mostMs: 10_000 }
/** An unknown outcome is looked up for ever, ever more rarely. */
const reconcileRetry: RetryRule = { attemptsMax: Number.POSITIVE_INFINITY, firstMs: 500, mostMs: 60_000 }
const stepTimeoutMsDefault = 30_000
/** Exits (cancel, close, stop) find room even when everything else is busy. */
const slotsForExits = 8
/** The part of the slots that one user fills at most; of those for exits it is a half. */
const shareOfUser = 0.75
/** A task that is being worked on; `effects` where all of them are known without asking, `signed` in the last commit. */
type Hand = {
  task: Task
  effects?: Effect[] | undefined
  signed?: Effect | undefined
  told?: Told | undefined
}

/** The run of one claim; `abort` ends it where the lease is lost. */
type RunningTask = { epoch: number; abort: AbortController; work: Promise<void> }

/** What was changed is read again; what was only added need not be. */
function effectsAfter(effects: Effect[], result: StepResult, { signed }: Committed): Effect[] | undefined {
  if ('replace' in result || (result.effects ?? []).length > 0) return undefined
  return signed ? [...effects, signed] : effects
}

function markedFresh({ fresh: _before, ...effect }: Effect, signed: Effect | undefined): Effect {
  return effect.id === signed?.id ? { ...effect, fresh: true } : effect
}

export function runner({
  transactions,
  committer,
  kinds,
  wake,
  news,
  clock,
  random,
  log,
  instanceId,
  options,
  heartbeats,
}: Needs): Runner {
  const running = new Map<string, RunningTask>()
  let reserved = 0
  let stopping = false

  const room = (priority: number) =>
    Math.max(0, options.slots + (priority === 0 ? slotsForExits : 0) - running.size - reserved)

  const slotsOf = slotsByUser()
  const share = (priority: number) =>
    Math.ceil(options.slots * shareOfUser) + (priority === 0 ? slotsForExits / 2 : 0)

  const backoffMs = ({ firstMs, mostMs }: RetryRule, attempt: number) =>
    Math.ceil(Math.min(mostMs, firstMs * 2 ** Math.min(attempt, 30)) * (0.5 + random.fraction() / 2))

  /** What a step that threw makes of its task. Nothing is called failed while bytes of it may be under way. */
  const afterThrow = async (task: Task, kind: TaskKind, error: unknown): Promise<Hand | undefined> => {
    const fault = error instanceof Fault ? error : undefined
    if (!fault) log.error({ error, task: task.id, step: task.step }, 'a step threw what it should not')
    const live = (await effectsOf(transactions.pool, task.id)).some(
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
    const hopeless = fault && !fault.retryable
    if (!hopeless && attempts < rule.attemptsMax && clock.now() < task.deadline)
      return committer.retry(task, backoffMs(rule, task.attempts), { state: task.state, outcome: null })
    const end = failed(
      fault?.code ?? 'internal',
      fault?.message ?? 'An internal error stopped the task',
      fault?.extras,
    )
    return committer.step(task, releasing(end, kind, task.id))
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
      return leftToNewer(task)
    }
    const timeoutMs = kind.stepTimeoutMs ?? stepTimeoutMsDefault
    const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), lost])
    return orAborted(step(stepView(task, effects), { now: clock.now(), signal }), signal).catch(
      (error: unknown) => {
        if (!(error instanceof StepAborted) || lost.aborted) throw error
        throw new Fault('upstream_timeout', `The step ${task.step} took longer than ${timeoutMs} ms`, {
          cause: error.cause,
        })
      },
    )
  }

  const attempt = async (hand: Hand, kind: TaskKind, lost: AbortSignal): Promise<Hand | undefined> => {
    const { task } = hand
    try {
      const known = hand.effects ?? (await effectsOf(transactions.pool, task.id))
      const effects = known.map((each) => markedFresh(each, hand.signed))
      const result = await runStep(task, effects, kind, lost)
      const committed = await committer.step(task, releasing(result, kind, task.id))
      return committed && { ...committed, effects: effectsAfter(effects, result, committed) }
    } catch (error) {
      if (lost.aborted) return undefined
      return afterThrow(task, kind, error)
    }
  }

  /** Nothing was written: a cancel came first, or the reply to an earlier commit was lost. The row tells which. */
  const advance = async (hand: Hand, kind: TaskKind, lost: AbortSignal): Promise<Hand | undefined> => {
    const after = await attempt(hand, kind, lost)
    if (after || lost.aborted) return after
    const { task } = hand
    const now = await committer.reread(task.id)
    const mine = now && now.epoch === task.epoch && now.owner === instanceId && !isEnded(now)
    if (!mine) return undefined
    const changed = now.commits !== task.commits || now.cancel_requested !== task.cancel_requested
    // What was refused once without a reason is refused again: the task waits until its lease has run out.
    if (!changed) log.error({ task: task.id, step: task.step }, 'the database refused a commit of its owner')
    return changed ? { task: now } : undefined
  }

  const run = async (first: Hand, lost: AbortSignal): Promise<void> => {
    const kind = kinds.get(kindKey(first.task.kind, first.task.kind_version))
    if (!kind) return void (await committer.step(first.task, leftToNewer(first.task)))
    let hand = first
    while (!stopping && !lost.aborted) {
      const next = await advance(hand, kind, lost)
      if (!next) return
      hand = next
      const { task } = hand
      news.tell(task, hand.told)
      if (isEnded(task)) return
      if (task.owner === null) return queue.wakeAt(task.run_at)
    }
  }

  const track = (hand: Hand) => {
    const { id, epoch, user_id: userId } = hand.task
    // A claim of one's own task has raised its epoch: nothing that the earlier run does can be committed.
    running.get(id)?.abort.abort()
    if (!running.has(id)) slotsOf.add(userId)
    const abort = new AbortController()
    const work = run(hand, abort.signal)
      // The database is away or refused: the lease runs out and another claim takes the task from its last commit.
      .catch((error: unknown) => log.warn({ error, task: id }, 'a task was let go; its lease will run out'))
      .finally(() => {
        if (running.get(id) === entry) {
          running.delete(id)
          slotsOf.remove(userId)
        }
        queue.freed()
      })
    const entry: RunningTask = { epoch, abort, work }
    running.set(id, entry)
  }

  const queue = leases({
    pool: transactions.pool,
    heartbeats,
    clock,
    log,
    instanceId,
    options,
    room,
    served: (priority) => slotsOf.withAtLeast(share(priority)),
    kinds: () => [...kinds.keys()],
    take: (task) => track({ task }),
    held: () => [...running].map(([id, { epoch }]) => ({ id, epoch })),
    lost: ({ id, epoch }) => {
      const entry = running.get(id)
      if (entry?.epoch === epoch) entry.abort.abort()
    },
    company: wake.company,
  })
  const offReady = wake.on(readyTopic, () => queue.nudge())

  const reserve = (priority: number, userId: string): Slot | undefined => {
    if (stopping || room(priority) === 0 || slotsOf.count(userId) >= share(priority)) return undefined
    reserved += 1
    slotsOf.add(userId)
    let isReserved = true
    const release = () => {
      if (!isReserved) return
      isReserved = false
      reserved -= 1
      slotsOf.remove(userId)
    }
    return {
      take(task, signed) {
        release()
        track({ task, effects: signed ? [signed] : [], signed })
      },
      [Symbol.dispose]() {
        if (!isReserved) return
        release()
        queue.freed()
      },
    }
  }

  return {
    reserve,
    counts: () => ({ running: running.size, slots: options.slots }),
    start: () => queue.start(),
    async [Symbol.asyncDispose]() {
      stopping = true
      offReady[Symbol.dispose]()
      await queue[Symbol.asyncDispose]()
      await Promise.all([...running.values()].map(({ work }) => work))
      await queue.releaseAll()
    },
  }
}
