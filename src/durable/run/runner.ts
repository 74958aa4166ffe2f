import type pg from 'pg'
import type { LocalEvents } from '#durable/events/local-events.ts'
import { type Notifier, readyTopic } from '#durable/events/notifier.ts'
import { isConversation, isUnattended, kindKey, movesMoney, taskPriority } from '#durable/task/task-kinds.ts'
import { isEnded, type Task } from '#durable/task/task-row.ts'
import type { DatabaseTime } from '#durable/time/detect-lost-commits.ts'
import type { MoneyHolds } from '#durable/time/money-hold.ts'
import { createKeyCounts, type KeyCounts } from '#kernel/async/key-counts.ts'
import type { Effect, TaskKind } from '#kernel/task/task.ts'
import { advanceTask, type LoadedTask, type RunEnds, type TaskRunDeps } from './advance-task.ts'
import type { Capacity } from './claims.ts'
import { createLeases, type Leases } from './lease.ts'
import { deferToNewerVersion } from './synthetic-step-results.ts'

export type RunnerOptions = { slots: number; leaseMs: number; pollMs: number }
type RunnerDeps = TaskRunDeps & {
  kinds: ReadonlyMap<string, TaskKind>
  notifier: Notifier
  localEvents: LocalEvents
  options: RunnerOptions
  /** Connections for lease renewals only, so that no load on the pool delays one. */
  heartbeats: pg.Pool
  time: DatabaseTime
  holds: MoneyHolds
}

export type RunnerCounts = { running: number; slots: number }
export type Slot = {
  /**
   * Runs a task that this instance has just inserted; `signed` is its only effect, if any. Resolves with the task
   * as the run left it, or with undefined if the task is another instance's or the run has failed.
   */
  take(task: Task, signed?: Effect): Promise<Task | undefined>
} & Disposable
export type Runner = {
  /**
   * Reserves a slot for a task that is inserted as one that this instance runs. Returns undefined if no slot is
   * free, if the user holds a full share of them, or while this instance has no lease.
   */
  reserve(priority: number, userId: string): Slot | undefined
  counts(): RunnerCounts
  isOnDuty(): boolean
  isLeaseHeld(): boolean
  claimNow(): void
  start(): void
} & AsyncDisposable

/** Extra slots for exits (cancel, close, stop), which run even while all other slots are busy. */
const exitSlots = 8
/** Background tasks (audits, snapshots) take at most half of the slots, and two that no other task takes. */
const backgroundShare = 0.5
const backgroundSlots = 2
/** Chats and images wait long for a service. They have separate slots, so that they never take those of other tasks. */
const conversationSlots = 64
/** Runs of schedules and their chats: many are due at one moment, and then no person's chat waits for them. */
const unattendedSlots = 64
/**
 * The largest share of the ordinary slots that one user may hold. The share is half for exit slots, and for
 * conversations half of the slots that other users leave, so that a user who asks rarely finds a slot.
 */
const userShare = 0.75

/** The run of a claimed task. `lost` ends the run when another instance has the task; `stopping` ends its waits. */
type RunningTask = {
  priority: number
  isResumable: boolean
  lost: AbortController
  stopping: AbortController
  work: Promise<unknown>
}
type SlotUse = { counts: KeyCounts; reserved: number }
type RunnerState = {
  deps: RunnerDeps
  leases: Leases
  running: Map<string, RunningTask>
  conversations: SlotUse
  unattended: SlotUse
  others: SlotUse
  stopping: boolean
  /**
   * Set while this instance notifies the other instances of ready tasks, so that it does not react to its own
   * notification by a claim.
   */
  isHandingOver: boolean
}

export function createRunner(deps: RunnerDeps): Runner {
  const runner: RunnerState = {
    deps,
    leases: createRunnerLeases(deps, () => runner),
    running: new Map(),
    conversations: { counts: createKeyCounts(), reserved: 0 },
    unattended: { counts: createKeyCounts(), reserved: 0 },
    others: { counts: createKeyCounts(), reserved: 0 },
    stopping: false,
    isHandingOver: false,
  }
  const readySubscription = deps.notifier.on(readyTopic, () => {
    if (!runner.isHandingOver) runner.leases.claimNow()
  })
  deps.holds.onFree(() => runner.leases.claimNow())
  return {
    reserve: (priority, userId) => reserveSlot(runner, priority, userId),
    counts: () => ({ running: runningOf(runner, isOther).length, slots: deps.options.slots }),
    isOnDuty: () => runner.leases.isOnDuty(),
    isLeaseHeld: () => runner.leases.isHeld(),
    claimNow: () => runner.leases.claimNow(),
    start: () => runner.leases.start(),
    async [Symbol.asyncDispose]() {
      readySubscription[Symbol.dispose]()
      await stopRunner(runner)
    },
  }
}

/** Builds the leases before the runner exists: `state`, which returns the runner, is first called by a claim. */
const createRunnerLeases = (deps: RunnerDeps, state: () => RunnerState): Leases =>
  createLeases({
    pool: deps.transactions.pool,
    heartbeats: deps.heartbeats,
    time: deps.time,
    clock: deps.clock,
    log: deps.log,
    instanceId: deps.instanceId,
    options: deps.options,
    capacity: () => capacityOf(state()),
    priorityOf: (task) => priorityOf(deps, task),
    userShares: (priority) => {
      const share = userSlotsMax(state(), priority)
      const { counts } = slotUseOf(state(), priority)
      return { full: counts.withAtLeast(share), left: share - counts.highestBelow(share) }
    },
    kinds: () => [...deps.kinds.keys()],
    onClaimed: (task) => void track(state(), { task }),
    runs: () => state().running,
    onFreed: () => deps.notifier.notify([readyTopic]),
    onSaturated() {
      const runner = state()
      if (deps.holds.find()) return
      runner.isHandingOver = true
      deps.notifier.notify([readyTopic])
      runner.isHandingOver = false
    },
  })

const priorityOf = (
  { kinds }: Pick<RunnerDeps, 'kinds'>,
  task: Pick<Task, 'kind' | 'kind_version' | 'parent_id' | 'input'>,
): number => {
  const kind = kinds.get(kindKey(task.kind, task.kind_version))
  return kind ? taskPriority(kind, task) : 1
}
const isOther = (priority: number): boolean => !isConversation(priority)
function slotUseOf(runner: RunnerState, priority: number): SlotUse {
  if (isOther(priority)) return runner.others
  return isUnattended(priority) ? runner.unattended : runner.conversations
}
const runningOf = ({ running }: RunnerState, isWanted: (priority: number) => boolean): RunningTask[] =>
  [...running.values()].filter(({ priority }) => isWanted(priority))

function capacityOf(runner: RunnerState): Capacity {
  const { options } = runner.deps
  const left = (slots: number, use: SlotUse, isWanted: (priority: number) => boolean) =>
    Math.max(0, slots - runningOf(runner, isWanted).length - use.reserved)
  const isAttended = (priority: number) => isConversation(priority) && !isUnattended(priority)
  const conversations = {
    conversations: left(conversationSlots, runner.conversations, isAttended),
    unattended: left(unattendedSlots, runner.unattended, isUnattended),
  }
  // While money is on hold, no task that moves money runs: such a task could expire although a chain has executed it.
  if (runner.deps.holds.find())
    return { exits: 0, ordinary: 0, backgroundMax: 0, backgroundMin: 0, ...conversations }
  const taken = runningOf(runner, isOther).length + runner.others.reserved
  const background = runningOf(runner, (priority) => priority === 2).length
  return {
    exits: Math.max(0, options.slots + exitSlots - taken),
    ordinary: Math.max(0, options.slots - taken),
    backgroundMax: Math.max(0, Math.ceil(options.slots * backgroundShare) - background),
    backgroundMin: Math.max(0, backgroundSlots - background),
    ...conversations,
  }
}

function userSlotsMax(runner: RunnerState, priority: number): number {
  if (!isOther(priority)) return freeSlotsOf(runner, priority)
  return Math.ceil(runner.deps.options.slots * userShare) + (priority === 0 ? exitSlots / 2 : 0)
}

function freeSlotsOf(runner: RunnerState, priority: number): number {
  const { exits, ordinary, conversations, unattended } = capacityOf(runner)
  if (isUnattended(priority)) return unattended
  if (!isOther(priority)) return conversations
  return priority === 0 ? exits : ordinary
}

function reserveSlot(runner: RunnerState, priority: number, userId: string): Slot | undefined {
  const use = slotUseOf(runner, priority)
  const isUserFull = use.counts.get(userId) >= userSlotsMax(runner, priority)
  const isFull = freeSlotsOf(runner, priority) === 0
  if (runner.stopping || isFull || isUserFull || !runner.leases.isHeld()) return undefined
  use.reserved += 1
  use.counts.add(userId)
  let isReserved = true
  const release = () => {
    if (!isReserved) return
    isReserved = false
    use.reserved -= 1
    use.counts.remove(userId)
  }
  return {
    take(task, signed) {
      release()
      return track(runner, { task, effects: signed ? [signed] : [], signed })
    },
    [Symbol.dispose]() {
      if (!isReserved) return
      release()
      runner.leases.slotFreed()
    },
  }
}

/** Runs a claimed task in the background; `running` has an entry for the task as long as the run lasts. */
function track(runner: RunnerState, loaded: LoadedTask): Promise<Task | undefined> {
  const { running, deps, leases } = runner
  const { id, kind, kind_version, user_id: userId } = loaded.task
  const { isResumable = false } = deps.kinds.get(kindKey(kind, kind_version)) ?? {}
  const priority = priorityOf(deps, loaded.task)
  const { counts } = slotUseOf(runner, priority)
  // A second claim of the same task raised its version, so the earlier run can no longer commit anything.
  running.get(id)?.lost.abort()
  if (!running.has(id)) counts.add(userId)
  const lost = new AbortController()
  const stopping = new AbortController()
  const work = runTask(runner, loaded, { lost: lost.signal, stopping: stopping.signal })
    // The database is away or refused a commit: heartbeats release the task, and a later claim resumes at the last
    // commit.
    .catch((error: unknown) => {
      deps.log.warn({ error, task: id }, 'run failed; the task will be claimed again')
      return undefined
    })
    .finally(() => {
      if (running.get(id) === entry) {
        running.delete(id)
        counts.remove(userId)
      }
      leases.slotFreed()
    })
  const entry: RunningTask = { priority, isResumable, lost, stopping, work }
  running.set(id, entry)
  return work
}

async function runTask(runner: RunnerState, first: LoadedTask, ends: RunEnds): Promise<Task | undefined> {
  const { deps, leases } = runner
  const kind = deps.kinds.get(kindKey(first.task.kind, first.task.kind_version))
  if (!kind) {
    await deps.committer.step(first.task, deferToNewerVersion(first.task))
    return undefined
  }
  let loaded = first
  // While money is on hold, the run of a task that moves money stops, and the heartbeats release the task.
  const isHeld = () => movesMoney(kind) && deps.holds.find() !== undefined
  while (!runner.stopping && !ends.lost.aborted && !isHeld()) {
    const next = await advanceTask(deps, loaded, kind, ends)
    if (!next) return undefined
    loaded = next
    const { task } = loaded
    deps.localEvents.publish(task, loaded.committedEvents)
    if (loaded.parkedUntil && !isEnded(task)) leases.claimAt(loaded.parkedUntil)
    if (loaded.parkedUntil || isEnded(task)) return task
  }
  return undefined
}

async function stopRunner(runner: RunnerState): Promise<void> {
  runner.stopping = true
  await runner.leases.stopClaims()
  // Resumable tasks, such as chats, take longer than an instance has for its shutdown. Their runs are aborted, and
  // another instance continues them.
  for (const { isResumable, lost, stopping } of runner.running.values()) {
    stopping.abort()
    if (isResumable) lost.abort()
  }
  await Promise.all([...runner.running.values()].map(({ work }) => work))
  await runner.leases[Symbol.asyncDispose]()
  await runner.leases.release()
}
