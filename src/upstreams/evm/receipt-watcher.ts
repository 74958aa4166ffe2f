import { setTimeout as pause } from 'node:timers/promises'
import { backoffMs } from '#kernel/async/backoff.ts'
import { createLatch } from '#kernel/async/latch.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Evm } from './evm.ts'
import type { Head, Receipt } from './wire.ts'

/**
 * Follows the head of one chain for all transactions that this instance waits for. One request per poll asks for
 * the head, and all receipts are requested together, once per block. Nothing is sent while nobody waits. Each
 * reading stands alone: what an earlier one showed, from this node or a sibling, proves nothing.
 */

/** The newest block, and the receipts in the same reply. */
export type ReceiptReading = { head: Head; receipts: (Receipt | undefined)[] }

export type ReceiptWatch = {
  /**
   * Returns the reading of the next block, or one that arrived since the last call, or undefined at the timeout.
   * With `isFresh`, and at the first call, the reading begins after the call and waits for no block. If no reading
   * arrives in time, throws the failure of the last request.
   */
  next(options: { timeoutMs: number; isFresh?: boolean }): Promise<ReceiptReading | undefined>
} & Disposable

export type ParkedTask = {
  taskId: string
  hashes: readonly string[]
  /** The task becomes due by itself after this time. */
  afterMs: number
  /** Whether the reading changes what the task does next. */
  isNews: (reading: ReceiptReading) => boolean
}

export type ReceiptWatcher = {
  watch(hashes: readonly string[], signal?: AbortSignal): ReceiptWatch
  /** Wakes a parked task once a reading is news to it. Returns false if too many are waiting. */
  wakeOnNews(parked: ParkedTask): boolean
  /** The task is running, so nothing has to wake it. */
  forget(taskId: string): void
  /** Stops waking tasks; watches continue. */
  close(): void
}

type Waiter = {
  hashes: readonly string[]
  /** The next request asks for it. */
  isDue: boolean
  readMs: number
  onReading(reading: ReceiptReading): void
  onFailure(error: unknown): void
}
type Parked = { task: ParkedTask; untilMs: number; waiter: Waiter }

type WatcherDeps = {
  chain: Pick<Evm, 'row' | 'head' | 'receipts'>
  /** Makes parked tasks due, and returns those that were parked. */
  wake: (taskIds: readonly string[]) => Promise<string[]>
  log: Log
  nowMs?: () => number
}

/** At most this many hashes per request; the head is one more call. */
const hashesMax = 48
const parkedMax = 5_000
/** A node that reports a new block may show its receipts only after this time. */
const askAgainMs = 1_000
const failureBackoffMaxMs = 2_000

export function createReceiptWatcher(deps: WatcherDeps): ReceiptWatcher {
  const { chain, nowMs = monotonicMs } = deps
  const { blockPollMs } = chain.row
  const waiters = new Set<Waiter>()
  let newestHash: string | undefined
  let isRunning = false
  let failures = 0
  let stopPause = new AbortController()

  const dueWaiters = () => [...waiters].filter(({ isDue }) => isDue)

  /** Reads the due waiters, at most as many as fit one request. */
  const readOnce = async (): Promise<void> => {
    const asked: Waiter[] = []
    let count = 0
    for (const waiter of dueWaiters()) {
      if (asked.length > 0 && count + waiter.hashes.length > hashesMax) break
      asked.push(waiter)
      count += waiter.hashes.length
    }
    for (const waiter of asked) waiter.isDue = false
    try {
      const { head, receipts } =
        asked.length > 0
          ? await chain.receipts(asked.flatMap(({ hashes }) => hashes))
          : { head: await chain.head(), receipts: [] }
      failures = 0
      noteHead(head, asked)
      let at = 0
      for (const waiter of asked) {
        const { length } = waiter.hashes
        waiter.readMs = nowMs()
        waiter.onReading({ head, receipts: receipts.slice(at, at + length) })
        at += length
      }
    } catch (error) {
      failures += 1
      for (const waiter of asked) {
        waiter.isDue = true
        waiter.onFailure(error)
      }
    }
  }

  /** Marks waiters as due that were not asked for at this block, or whose receipts may have appeared after it. */
  const noteHead = (head: Head, asked: readonly Waiter[]): void => {
    const isNew = head.hash !== newestHash
    newestHash = head.hash
    for (const waiter of waiters)
      if (!asked.includes(waiter) && (isNew || nowMs() - waiter.readMs > askAgainMs)) waiter.isDue = true
  }

  const run = async (): Promise<void> => {
    while (waiters.size > 0) {
      await readOnce()
      await parked.wakeChanged()
      if (failures === 0 && dueWaiters().length > 0) continue
      if (waiters.size === 0) return
      const waitMs =
        failures === 0
          ? blockPollMs
          : backoffMs({ firstMs: blockPollMs, maxMs: failureBackoffMaxMs }, failures)
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
    start()
  }

  const remove = (waiter: Waiter) => void waiters.delete(waiter)
  const parked = createParkedTasks(deps, { add, remove, nowMs })
  return {
    watch: (hashes, signal) => watchOf(hashes, { add, remove }, signal),
    wakeOnNews: parked.add,
    forget: parked.remove,
    close: parked.close,
  }
}

type Waiters = { add: (waiter: Waiter) => void; remove: (waiter: Waiter) => void }

function watchOf(
  hashes: readonly string[],
  { add, remove }: Waiters,
  signal: AbortSignal | undefined,
): ReceiptWatch {
  let unread: ReceiptReading | undefined
  let failure: unknown
  let isAsked = false
  const arrival = createLatch(signal)
  const waiter: Waiter = {
    hashes,
    isDue: false,
    readMs: 0,
    onReading(reading) {
      unread = reading
      arrival.set()
    },
    onFailure: (error) => {
      failure = error
    },
  }
  return {
    async next({ timeoutMs, isFresh = !isAsked }) {
      isAsked = true
      failure = undefined
      if (isFresh) {
        unread = undefined
        waiter.isDue = true
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
  const withNews = new WeakSet<Waiter>()
  let isClosed = false

  const remove = (taskId: string): void => {
    const known = parked.get(taskId)
    if (!known) return
    parked.delete(taskId)
    waiters.remove(known.waiter)
  }

  return {
    remove,

    add(task: ParkedTask): boolean {
      remove(task.taskId)
      if (isClosed || parked.size >= parkedMax) return false
      const waiter: Waiter = {
        hashes: task.hashes,
        isDue: false,
        readMs: nowMs(),
        onReading: (reading) => (task.isNews(reading) ? withNews.add(waiter) : withNews.delete(waiter)),
        onFailure: () => undefined,
      }
      parked.set(task.taskId, { task, untilMs: nowMs() + task.afterMs, waiter })
      waiters.add(waiter)
      return true
    },

    async wakeChanged(): Promise<void> {
      for (const [taskId, { untilMs }] of parked) if (nowMs() > untilMs) remove(taskId)
      const changed = [...parked.values()].filter(({ waiter }) => withNews.has(waiter))
      if (changed.length === 0) return
      // A task that is not parked yet is woken after the next poll.
      const woken = await wake(changed.map(({ task }) => task.taskId)).catch((error: unknown) => {
        log.warn({ error }, 'parked tasks not woken at their receipts: the next poll tries again')
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
