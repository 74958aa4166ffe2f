import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Random } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Log } from '#kernel/log.ts'
import type { Effect, RetryRule, StepResult, TaskKind } from '#kernel/task.ts'
import type { Committed, Committer } from './commit.ts'
import { leases } from './lease.ts'
import type { News, Told } from './news.ts'
import { effectsOf, isEnded, isLive, stepView, type Task } from './row.ts'
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
}

export type RunnerCounts = { running: number; slots: number }
export type Runner = {
  /** Room for one more task that is inserted already leased to this instance. */
  hasRoom(priority: number): boolean
  /** Takes a task that this instance has just written, with the one effect that it may have. */
  take(task: Task, signed?: Effect): void
  counts(): RunnerCounts
  start(): void
} & AsyncDisposable

const defaultRetry: RetryRule = { attemptsMax: 8, firstMs: 200, mostMs: 10_000 }
/** An unknown outcome is looked up for ever, ever more rarely. */
const reconcileRetry: RetryRule = { attemptsMax: Number.POSITIVE_INFINITY, firstMs: 500, mostMs: 60_000 }
const stepTimeoutMsDefault = 30_000
/** Exits (cancel, close, stop) find room even when everything else is busy. */
const slotsForExits = 8
/** Tasks of a kind that this version does not know belong to a newer one. */
const unknownKindMs = 30_000

export const kindKey = (kind: string, version: number): string => `${kind}@${version}`

/** A task that is being worked on; `effects` where all of them are known without asking, `signed` in the last commit. */
type Hand = {
  task: Task
  effects?: Effect[] | undefined
  signed?: Effect | undefined
  told?: Told | undefined
}

/** What was changed is read again; what was only added need not be. */
function effectsAfter(effects: Effect[], result: StepResult, { signed }: Committed): Effect[] | undefined {
  if ('replace' in result || (result.effects ?? []).length > 0) return undefined
  return signed ? [...effects, signed] : effects
}

function markedFresh({ fresh: _before, ...effect }: Effect, signed: Effect | undefined): Effect {
  return effect.id === signed?.id ? { ...effect, fresh: true } : effect
}

/** A task that ends with nothing executed gives back what its kind reserved when it was accepted. */
function releasing(result: StepResult, kind: TaskKind, taskId: string): StepResult {
  const { released } = kind
  if (!released) return result
  if ('intend' in result && result.intend.refused) {
    const { refused, ...intent } = result.intend
    return { ...result, intend: { ...intent, refused: (fault) => releasing(refused(fault), kind, taskId) } }
  }
  if (!('end' in result) || result.outcome !== 'not_executed') return result
  return {
    ...result,
    also: async (tx) => {
      await result.also?.(tx)
      await released(tx, taskId)
    },
  }
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
}: Needs): Runner {
  const inHand = new Map<string, Promise<void>>()
  let stopping = false

  const hasRoom = (priority: number) =>
    !stopping && inHand.size < options.slots + (priority === 0 ? slotsForExits : 0)

  const backoffMs = ({ firstMs, mostMs }: RetryRule, attempt: number) =>
    Math.ceil(Math.min(mostMs, firstMs * 2 ** Math.min(attempt, 30)) * (0.5 + random.fraction() / 2))

  const cancelled = (message: string): StepResult => ({
    end: 'cancelled',
    outcome: 'not_executed',
    error: { code: 'cancelled_by_user', message },
  })

  const failed = (code: string, message: string, details: Record<string, unknown> = {}): StepResult => ({
    end: 'failed',
    outcome: 'not_executed',
    error: {
      code,
      message,
      retryable: false,
      ...(Object.keys(details).length > 0 && { details: details as JsonObject }),
    },
  })

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

  const runStep = async (task: Task, effects: Effect[], kind: TaskKind): Promise<StepResult> => {
    const step = kind.steps[task.step]
    if (!step) return failed('internal', `This version has no step ${task.step}`)
    const exposed = effects.some((effect) => effect.status !== 'dropped' && effect.status !== 'rejected')
    if (task.cancel_requested && !exposed) return cancelled('Cancelled on request')
    if (clock.now() > task.deadline && !exposed)
      return failed('expired', 'The deadline passed before anything was sent')
    const signal = AbortSignal.timeout(kind.stepTimeoutMs ?? stepTimeoutMsDefault)
    return step(stepView(task, effects), { now: clock.now(), signal })
  }

  const attempt = async (hand: Hand, kind: TaskKind): Promise<Hand | undefined> => {
    const { task } = hand
    try {
      const known = hand.effects ?? (await effectsOf(transactions.pool, task.id))
      const effects = known.map((each) => markedFresh(each, hand.signed))
      const result = await runStep(task, effects, kind)
      const committed = await committer.step(task, releasing(result, kind, task.id))
      return committed && { ...committed, effects: effectsAfter(effects, result, committed) }
    } catch (error) {
      return afterThrow(task, kind, error)
    }
  }

  /** Nothing was written: a cancel came first, or the reply to an earlier commit was lost. The row tells which. */
  const advance = async (hand: Hand, kind: TaskKind): Promise<Hand | undefined> => {
    const after = await attempt(hand, kind)
    if (after) return after
    const { task } = hand
    const now = await committer.reread(task.id)
    const mine = now && now.epoch === task.epoch && now.owner === instanceId && !isEnded(now)
    return mine && (now.cancel_requested || now.commits !== task.commits) ? { task: now } : undefined
  }

  const run = async (first: Hand): Promise<void> => {
    const kind = kinds.get(kindKey(first.task.kind, first.task.kind_version))
    if (!kind)
      return void (await committer.retry(first.task, unknownKindMs, {
        state: first.task.state,
        outcome: null,
      }))
    let hand = first
    while (!stopping) {
      const next = await advance(hand, kind)
      if (!next) return
      hand = next
      const { task } = hand
      news.tell(task, hand.told)
      if (isEnded(task)) return
      if (task.owner === null) return queue.wakeAt(task.run_at)
    }
  }

  const hold = (hand: Hand) => {
    const { task } = hand
    const work = run(hand)
      // The database is away or refused: the lease runs out and another claim takes the task from its last commit.
      .catch((error: unknown) =>
        log.warn({ error, task: task.id }, 'a task was let go; its lease will run out'),
      )
      .finally(() => {
        inHand.delete(task.id)
        queue.freed()
      })
    inHand.set(task.id, work)
  }

  const queue = leases({
    ...{ pool: transactions.pool, clock, log, instanceId, options },
    room: (priority) => Math.max(0, options.slots + (priority === 0 ? slotsForExits : 0) - inHand.size),
    take: (task) => hold({ task }),
    held: () => [...inHand.keys()],
    company: wake.company,
  })
  const offReady = wake.on(readyTopic, () => queue.nudge())

  return {
    hasRoom,
    take: (task, signed) => hold({ task, effects: signed ? [signed] : [], signed }),
    counts: () => ({ running: inHand.size, slots: options.slots }),
    start: () => queue.start(),
    async [Symbol.asyncDispose]() {
      stopping = true
      offReady[Symbol.dispose]()
      await queue[Symbol.asyncDispose]()
      await Promise.all(inHand.values())
      await queue.releaseAll()
    },
  }
}
