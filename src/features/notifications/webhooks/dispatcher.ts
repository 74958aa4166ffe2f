import { LRUCache } from 'lru-cache'
import { createKeyedMutex, type KeyedMutex } from '#kernel/async/keyed-mutex.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import { type Claimed, type ClaimSource, claimWebhooks, usersWithWebhooks } from './claims.ts'
import { type CursorCounts, createSweep, type Sweep, slicePauseFactor } from './cursor-sweep.ts'
import type { RunEnd, RunStop } from './delivery-run.ts'
import { type Counts, countKinds, isFull, type Kind, kinds } from './delivery-slots.ts'
import { createDeliveryTime, type DeliveryTime } from './delivery-time-budget.ts'

/**
 * This module claims webhooks that have events to deliver. A commit of this instance is a hint that its user has an
 * event; such hints cost nothing for users without a webhook. The polls of the instance on duty find what no hint has
 * announced: each poll finds the retries that are due, and reads one slice of all cursors, where events of instances
 * that died may wait.
 */

export type DispatcherDeps = {
  db: Queryable
  clock: Clock
  log: Log
  instanceId: string
  isOnDuty: () => boolean
  /** False before the first heartbeat, and whenever another instance may take over the webhooks of this one. */
  isLeaseHeld: () => boolean
  deliver: (claim: Claimed, stop: RunStop) => Promise<RunEnd>
  pollMs: number
  sliceMax?: number | undefined
}
export type Dispatcher = {
  start(): AsyncDisposable
  onEvents(userId: string): void
  onWebhooks(userId: string): void
  /** Forgets which users have webhooks; it is called when calls of `onWebhooks` may have been lost. */
  forget(): void
  running(): Counts
  /** Counts the webhooks of all instances, as the last round of polls found them. */
  counts(): CursorCounts
}

const collectMs = 20
const usersPerClaim = 1_000
/** At most this many users with hints are remembered; the poll finds the events of the others. */
const pendingMax = 10_000
const knownUsersMax = 50_000
const knownMs = 600_000
/** A retry with a longer delay than this gets no timer; the poll finds it. */
const timerMsMax = 60_000
const timersMax = 1_000
/** A round of polls reads all cursors. The pause after it is at least this many times as long as its last poll took. */
const pollPauseFactor = 50
/** An instance that is off duty polls this many times less often. It helps if the instance on duty has no free slot. */
const offDutyFactor = 6
/**
 * A pause is at most this many times `pollMs`, because a slow database must not delay the next poll without limit.
 */
const pauseFactorMax = 6
/** The pause before the first heartbeat, and after a poll that found all slots of a kind taken. */
const pollAgainMs = 250
const drainMs = 2_000

type RunningClaim = { userId: string; kind: Kind; isHinted: boolean; done: Promise<void> }
type State = {
  deps: DispatcherDeps
  running: Map<string, RunningClaim>
  /**
   * `pending` holds users with a hint. `waiting` holds users whose webhooks got no slot; the end of a run moves them to
   * `pending`.
   */
  pending: Set<string>
  waiting: Set<string>
  ends: number
  deliveryTime: DeliveryTime
  known: LRUCache<string, boolean>
  timers: Set<NodeJS.Timeout>
  claims: KeyedMutex
  sweep: Sweep
  /** An instance that is not on duty does not poll before this time. */
  offDutyUntilMs: number
  cutOff: AbortController
  isStarted: boolean
  claiming: Promise<void> | undefined
  collecting: NodeJS.Timeout | undefined
  poll: PacedJob | undefined
}

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  const state: State = {
    deps,
    running: new Map(),
    pending: new Set(),
    waiting: new Set(),
    ends: 0,
    deliveryTime: createDeliveryTime(() => deps.clock.now().getTime()),
    known: new LRUCache({ max: knownUsersMax, ttl: knownMs }),
    timers: new Set(),
    claims: createKeyedMutex(),
    sweep: createSweep(deps),
    offDutyUntilMs: 0,
    cutOff: new AbortController(),
    isStarted: false,
    claiming: undefined,
    collecting: undefined,
    poll: undefined,
  }
  return {
    start() {
      state.isStarted = true
      state.poll = startPacedJob(() => poll(state), {
        retryMs: deps.pollMs,
        onError: (error) =>
          deps.log.warn({ error }, 'the poll for webhooks failed; the next one tries again'),
      })
      return { [Symbol.asyncDispose]: () => stop(state) }
    },
    onEvents: (userId) => wake(state, userId),
    onWebhooks(userId) {
      state.known.delete(userId)
      wake(state, userId)
    },
    forget: () => state.known.clear(),
    running: () => countKinds(state.running.values()),
    counts: state.sweep.counts,
  }
}

const fullKinds = ({ running }: State): number => {
  const counts = countKinds(running.values())
  return kinds.filter((kind) => isFull(counts, kind)).length
}

function wake(state: State, userId: string): void {
  if (!state.isStarted || state.known.get(userId) === false) return
  for (const each of state.running.values()) if (each.userId === userId) each.isHinted = true
  if (state.pending.size < pendingMax) state.pending.add(userId)
  claimSoon(state)
}

/** Claims after a short time, so that hints and ends of runs within that time share one claim. */
function claimSoon(state: State): void {
  state.collecting ??= setTimeout(() => {
    state.collecting = undefined
    claimPending(state)
  }, collectMs).unref()
}

/** Runs one claim at a time. A user whose webhooks get no slot waits for the end of a run. */
function claimPending(state: State): void {
  state.claiming ??= claimAllPending(state)
    .catch((error: unknown) => {
      state.deps.log.warn({ error }, 'webhooks could not be claimed; the poll tries again')
    })
    .finally(() => {
      state.claiming = undefined
    })
}

async function claimAllPending(state: State): Promise<void> {
  while (state.pending.size > 0 && fullKinds(state) < kinds.length && state.isStarted) {
    const users = state.pending.values().take(usersPerClaim).toArray()
    for (const user of users) state.pending.delete(user)
    const withWebhooks = await selectKnown(state, users)
    if (withWebhooks.length > 0) await claim(state, { users: withWebhooks })
  }
}

async function selectKnown({ known, deps }: State, users: readonly string[]): Promise<string[]> {
  const unknown = users.filter((user) => !known.has(user))
  if (unknown.length > 0) {
    const found = await usersWithWebhooks(deps.db, unknown)
    for (const user of unknown) known.set(user, found.has(user))
  }
  return users.filter((user) => known.get(user) !== false)
}

/**
 * Claims run one at a time. A claim also takes webhooks that this instance owns but does not run, because the reply to
 * the statement that claimed them may be lost. A second, concurrent claim would therefore take the webhooks of the
 * first one again.
 */
const claim = (state: State, source: ClaimSource): Promise<void> =>
  state.claims.run('', () => claimNow(state, source))

async function claimNow(state: State, source: ClaimSource): Promise<void> {
  const { deps, running, waiting, deliveryTime, ends } = state
  if (fullKinds(state) === kinds.length || !deps.isLeaseHeld()) {
    if (source !== 'retries' && 'users' in source) addAll(waiting, source.users)
    return
  }
  const entries = [...running.values()]
  const claims = await claimWebhooks(deps.db, {
    instanceId: deps.instanceId,
    now: deps.clock.now(),
    source,
    running: {
      webhooks: [...running.keys()],
      users: entries.map(({ userId }) => userId),
      kinds: entries.map(({ kind }) => kind),
    },
    counts: countKinds(entries),
    spent: deliveryTime.spent(),
  })
  for (const each of claims.claimed) run(state, each)
  addAll(waiting, claims.waiting)
  // A run that ended during the claim has freed a slot that the claim did not see.
  if (state.ends !== ends) wakeWaiting(state)
}

function addAll(set: Set<string>, users: Iterable<string>): void {
  for (const userId of users) if (set.size < pendingMax) set.add(userId)
}

function wakeWaiting(state: State): void {
  addAll(state.pending, state.waiting)
  state.waiting.clear()
  if (state.pending.size > 0 && state.isStarted) claimSoon(state)
}

function run(state: State, claimed: Claimed): void {
  const { deps, running, cutOff, deliveryTime } = state
  const { webhook_id: webhookId, user_id: userId, kind } = claimed
  const entry: RunningClaim = { userId, kind, isHinted: false, done: Promise.resolve() }
  running.set(webhookId, entry)
  const startedAt = deps.clock.now()
  entry.done = deps
    .deliver(claimed, { isStopping: () => !state.isStarted || !deps.isLeaseHeld(), cutOff: cutOff.signal })
    .catch((error: unknown): RunEnd => {
      deps.log.error({ error, webhook: webhookId }, 'the delivery of a webhook failed; the poll tries again')
      return { hasMore: false }
    })
    .then(({ hasMore, retryMs }) => {
      running.delete(webhookId)
      deliveryTime.add(userId, deps.clock.now().getTime() - startedAt.getTime())
      if (retryMs !== undefined && retryMs <= timerMsMax) wakeAfter(state, userId, retryMs)
      if (hasMore || entry.isHinted) wake(state, userId)
      state.ends += 1
      wakeWaiting(state)
    })
}

function wakeAfter(state: State, userId: string, afterMs: number): void {
  if (state.timers.size >= timersMax || !state.isStarted) return
  const timer = setTimeout(() => {
    state.timers.delete(timer)
    wake(state, userId)
  }, afterMs + 1).unref()
  state.timers.add(timer)
}

/** An instance that comes on duty polls at the next call, because webhooks of its predecessor may wait. */
async function poll(state: State): Promise<number> {
  const { isOnDuty, isLeaseHeld, pollMs } = state.deps
  if (!isLeaseHeld()) return pollAgainMs
  const startedMs = performance.now()
  if (!isOnDuty() && startedMs < state.offDutyUntilMs)
    return Math.min(pollMs, state.offDutyUntilMs - startedMs)
  await claim(state, 'retries')
  const isRoundOver = await state.sweep.next((range) => claim(state, { range }))
  const isAnyFull = fullKinds(state) > 0
  const now = performance.now()
  const tookMs = now - startedMs
  const pauseMs = isRoundOver
    ? Math.max(isAnyFull ? pollAgainMs : pollMs, tookMs * pollPauseFactor)
    : tookMs * slicePauseFactor
  const boundedMs = Math.min(pauseMs, pollMs * pauseFactorMax)
  state.offDutyUntilMs = now + boundedMs * (isAnyFull ? 1 : offDutyFactor)
  return boundedMs
}

async function stop(state: State): Promise<void> {
  state.isStarted = false
  await state.poll?.[Symbol.asyncDispose]()
  clearTimeout(state.collecting)
  for (const timer of state.timers) clearTimeout(timer)
  await state.claiming
  const cutOff = setTimeout(() => state.cutOff.abort(), drainMs)
  await Promise.all(state.running.values().map(({ done }) => done))
  clearTimeout(cutOff)
}
