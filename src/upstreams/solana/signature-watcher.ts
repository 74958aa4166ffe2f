import { setTimeout as pause } from 'node:timers/promises'
import { backoffMs } from '#kernel/async/backoff.ts'
import { createLatch } from '#kernel/async/latch.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { type SignatureStatus, type Solana, statusesMax } from './solana.ts'

/**
 * Reads the statuses of all signatures that this instance waits for, with one request per poll. Nothing is sent
 * while nobody waits. Each reading stands alone: what an earlier one showed, from this node or a sibling, proves
 * nothing.
 */

/** `status` is undefined if the node that answered does not know the signature. */
export type SignatureReading = { slot: bigint; status: SignatureStatus | undefined }

export type SignatureWatch = {
  /**
   * Returns the next reading, or one that arrived since the last call, or undefined at the timeout. With
   * `isFresh`, and at the first call, the reading begins after the call. If none arrives in time, throws the
   * failure of the last request.
   */
  next(options: { timeoutMs: number; isFresh?: boolean }): Promise<SignatureReading | undefined>
} & Disposable

export type ParkedTask = {
  taskId: string
  signature: string
  /** The task becomes due by itself after this time. */
  afterMs: number
  /** Whether the reading changes what the task does next. */
  isNews: (reading: SignatureReading) => boolean
}

export type SignatureWatcher = {
  watch(signature: string, signal?: AbortSignal): SignatureWatch
  /** Wakes a parked task once a reading is news to it. Returns false if too many are waiting. */
  wakeOnNews(parked: ParkedTask): boolean
  /** The task is running, so nothing has to wake it. */
  forget(taskId: string): void
  /** Stops waking tasks; watches continue. */
  close(): void
}

type Waiter = {
  signature: string
  /** A running step waits for it, so it is read before those of parked tasks. */
  isUrgent: boolean
  /** The number of the last poll that read it. */
  readAt: number
  onReading(reading: SignatureReading): void
  onFailure(error: unknown): void
}
type Parked = { task: ParkedTask; untilMs: number; waiter: Waiter }

type WatcherDeps = {
  chain: Pick<Solana, 'row' | 'statuses'>
  /** Makes parked tasks due, and returns those that were parked. */
  wake: (taskIds: readonly string[]) => Promise<string[]>
  log: Log
  nowMs?: () => number
}

const parkedMax = 5_000
const pollsPerPeriodMax = 4
const failureBackoffMaxMs = 2_000

export function createSignatureWatcher(deps: WatcherDeps): SignatureWatcher {
  const { chain, nowMs = monotonicMs } = deps
  const { statusPollMs } = chain.row
  const waiters = new Set<Waiter>()
  let isRunning = false
  let failures = 0
  let polls = 0
  let startedMs = Number.NEGATIVE_INFINITY
  let stopPause = new AbortController()

  /** Returns those of waiting steps first, and then those that were read longest ago. */
  const nextToRead = (): Waiter[] =>
    [...waiters]
      .sort((a, b) => Number(b.isUrgent) - Number(a.isUrgent) || a.readAt - b.readAt)
      .slice(0, statusesMax)

  const readOnce = async (): Promise<void> => {
    const asked = nextToRead()
    polls += 1
    for (const waiter of asked) waiter.readAt = polls
    try {
      const { slot, statuses } = await chain.statuses(asked.map(({ signature }) => signature))
      failures = 0
      for (const [index, waiter] of asked.entries()) waiter.onReading({ slot, status: statuses[index] })
    } catch (error) {
      failures += 1
      for (const waiter of asked) waiter.onFailure(error)
    }
  }

  const run = async (): Promise<void> => {
    while (waiters.size > 0) {
      // Steps that arrive one after another share a request, too.
      const earlyMs = statusPollMs / pollsPerPeriodMax - (nowMs() - startedMs)
      if (earlyMs > 0) await pause(earlyMs, undefined, { ref: false })
      startedMs = nowMs()
      await readOnce()
      await parked.wakeChanged()
      if (waiters.size === 0) return
      const waitMs =
        failures === 0
          ? statusPollMs
          : backoffMs({ firstMs: statusPollMs, maxMs: failureBackoffMaxMs }, failures)
      stopPause = new AbortController()
      await pause(waitMs, undefined, { signal: stopPause.signal, ref: false }).catch(() => undefined)
    }
  }

  const start = (): void => {
    stopPause.abort()
    if (isRunning) return
    isRunning = true
    void run().finally(() => {
      isRunning = false
      // A waiter may have arrived while the last request ended.
      if (waiters.size > 0) start()
    })
  }

  const add = (waiter: Waiter): void => {
    waiters.add(waiter)
    // A parked task waits for the next poll of the others.
    if (waiter.isUrgent || !isRunning) start()
  }

  const remove = (waiter: Waiter) => void waiters.delete(waiter)
  const parked = createParkedTasks(deps, { add, remove, nowMs })
  return {
    watch: (signature, signal) => watchOf(signature, { add, remove }, signal),
    wakeOnNews: parked.add,
    forget: parked.remove,
    close: parked.close,
  }
}

type Waiters = { add: (waiter: Waiter) => void; remove: (waiter: Waiter) => void }

function watchOf(
  signature: string,
  { add, remove }: Waiters,
  signal: AbortSignal | undefined,
): SignatureWatch {
  let unread: SignatureReading | undefined
  let failure: unknown
  let isAsked = false
  const arrival = createLatch(signal)
  const createWaiter = (): Waiter => {
    const created: Waiter = {
      signature,
      isUrgent: true,
      readAt: 0,
      onReading(reading) {
        if (created !== waiter) return
        unread = reading
        arrival.set()
      },
      onFailure(error) {
        if (created === waiter) failure = error
      },
    }
    return created
  }
  let waiter = createWaiter()
  return {
    async next({ timeoutMs, isFresh = !isAsked }) {
      isAsked = true
      failure = undefined
      if (isFresh) {
        unread = undefined
        // A request that is already sent belongs to the former waiter.
        remove(waiter)
        waiter = createWaiter()
        add(waiter)
      }
      if (!unread) {
        arrival.reset()
        await arrival.wait(timeoutMs)
      }
      const reading = unread
      unread = undefined
      if (!reading && failure !== undefined) throw failure
      return reading
    },
    [Symbol.dispose]() {
      remove(waiter)
      arrival[Symbol.dispose]()
    },
  }
}

/** Holds the tasks that no run waits for. Each is woken by its news, and forgotten once it becomes due by itself. */
function createParkedTasks({ wake, log }: WatcherDeps, waiters: Waiters & { nowMs: () => number }) {
  const { nowMs } = waiters
  const parked = new Map<string, Parked>()
  const withNews = new Set<Parked>()
  let isClosed = false

  const remove = (taskId: string): void => {
    const known = parked.get(taskId)
    if (!known) return
    parked.delete(taskId)
    withNews.delete(known)
    waiters.remove(known.waiter)
  }

  return {
    remove,

    add(task: ParkedTask): boolean {
      remove(task.taskId)
      if (isClosed || parked.size >= parkedMax) return false
      const entry: Parked = {
        task,
        untilMs: nowMs() + task.afterMs,
        waiter: {
          signature: task.signature,
          isUrgent: false,
          readAt: 0,
          onReading(reading) {
            if (!task.isNews(reading)) withNews.delete(entry)
            else if (parked.get(task.taskId) === entry) withNews.add(entry)
          },
          onFailure: () => undefined,
        },
      }
      parked.set(task.taskId, entry)
      waiters.add(entry.waiter)
      return true
    },

    async wakeChanged(): Promise<void> {
      for (const [taskId, { untilMs }] of parked) if (nowMs() > untilMs) remove(taskId)
      if (withNews.size === 0) return
      const changed = [...withNews].map(({ task }) => task.taskId)
      // A task that is not parked yet is woken after the next poll.
      const woken = await wake(changed).catch((error: unknown) => {
        log.warn({ error }, 'parked tasks not woken at their statuses: the next poll tries again')
        return []
      })
      for (const taskId of woken) remove(taskId)
    },

    close() {
      for (const taskId of [...parked.keys()]) remove(taskId)
      isClosed = true
    },
  }
}
