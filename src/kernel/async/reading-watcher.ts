import { monotonicMs } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { type Backoff, backoffMs } from './backoff.ts'
import { createLatch } from './latch.ts'

/**
 * Reads from an upstream whatever the steps and parked tasks of this instance wait for, with one request per poll,
 * and none while nobody waits. Each reading stands alone: an earlier reading, from this node or a sibling, proves
 * nothing.
 */

export type ReadingWatch<Reading> = {
  /**
   * Returns the next reading, or one that arrived since the last call, or undefined at the timeout. With `isFresh`,
   * and at the first call, the reading begins after the call. If no reading arrives in time, throws the failure of
   * the last request.
   */
  next(options: { timeoutMs: number; isFresh?: boolean }): Promise<Reading | undefined>
} & Disposable

export type ParkedTask<Subject, Reading> = {
  taskId: string
  subject: Subject
  /** The task becomes due by itself after this time. */
  afterMs: number
  /** Whether the reading changes what the task does next. */
  isNews: (reading: Reading) => boolean
}

export type ReadingWatcher<Subject, Reading> = {
  watch(subject: Subject, signal?: AbortSignal): ReadingWatch<Reading>
  /** Wakes a parked task once a reading is news to the task. Returns false if too many tasks are waiting. */
  wakeOnNews(parked: ParkedTask<Subject, Reading>): boolean
  /** Stops watching for a task that runs now, because nothing has to wake it. */
  forget(taskId: string): void
  /** Stops waking parked tasks; the watches of running steps continue. */
  close(): void
}

export type Waiter<Subject, Reading> = {
  readonly subject: Subject
  /** Whether the waiter is a running step, and not a parked task. */
  readonly isUrgent: boolean
  /** Whether the waiter has to be read at the next poll; true again after a request for it failed. */
  isDue: boolean
  readMs: number
  onReading(reading: Reading): void
  onFailure(error: unknown): void
}

type WatcherDeps<Subject, Reading> = {
  pollMs: number
  beforePoll?(): Promise<void>
  /** Chooses the waiters whose subjects the next request reads. */
  choose(waiters: ReadonlySet<Waiter<Subject, Reading>>): Waiter<Subject, Reading>[]
  /** Returns the readings of the chosen waiters, in their order. */
  read(
    chosen: readonly Waiter<Subject, Reading>[],
    waiters: ReadonlySet<Waiter<Subject, Reading>>,
  ): Promise<Reading[]>
  /** Whether the next poll follows without a pause. */
  isPressed?(waiters: ReadonlySet<Waiter<Subject, Reading>>): boolean
  /** Makes parked tasks due, and returns the ids of the tasks that were parked. */
  wake(taskIds: readonly string[]): Promise<string[]>
  log: Log
}

const parkedMax = 5_000
const failureBackoffMaxMs = 2_000

export function createReadingWatcher<Subject, Reading>(
  deps: WatcherDeps<Subject, Reading>,
): ReadingWatcher<Subject, Reading> {
  const { pollMs } = deps
  const backoff: Backoff = { firstMs: pollMs, maxMs: failureBackoffMaxMs }
  const waiters = new Set<Waiter<Subject, Reading>>()
  let isRunning = false
  let failures = 0
  let endPause = (): void => undefined

  const pause = async (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms).unref()
    endPause = resolve
    await promise
    clearTimeout(timer)
  }

  const readOnce = async (): Promise<void> => {
    const chosen = deps.choose(waiters)
    // The waiters count as read even if the request fails, so that they have their turn after the others.
    for (const waiter of chosen) Object.assign(waiter, { isDue: false, readMs: monotonicMs() })
    try {
      const readings = await deps.read(chosen, waiters)
      failures = 0
      for (const [index, waiter] of chosen.entries()) waiter.onReading(readings[index]!)
    } catch (error) {
      failures += 1
      for (const waiter of chosen) {
        waiter.isDue = true
        waiter.onFailure(error)
      }
    }
  }

  const run = async (): Promise<void> => {
    while (waiters.size > 0) {
      await deps.beforePoll?.()
      await readOnce()
      await parked.wakeChanged()
      if (failures === 0 && deps.isPressed?.(waiters)) continue
      if (waiters.size === 0) return
      await pause(failures === 0 ? pollMs : backoffMs(backoff, failures))
    }
  }

  const start = (): void => {
    endPause()
    if (isRunning) return
    isRunning = true
    void run().finally(() => {
      isRunning = false
      // A waiter may have arrived while the last request ended.
      if (waiters.size > 0) start()
    })
  }

  const add = (waiter: Waiter<Subject, Reading>): void => {
    waiters.add(waiter)
    // A parked task waits for the next poll; only a running step ends the pause before that poll.
    if (waiter.isUrgent || !isRunning) start()
  }

  const remove = (waiter: Waiter<Subject, Reading>) => void waiters.delete(waiter)
  const parked = createParkedTasks(deps, { add, remove })
  return {
    watch: (subject, signal) => watchSubject(subject, { add, remove }, signal),
    wakeOnNews: parked.add,
    forget: parked.remove,
    close: parked.close,
  }
}

type Waiters<Subject, Reading> = Record<'add' | 'remove', (waiter: Waiter<Subject, Reading>) => void>

function watchSubject<Subject, Reading>(
  subject: Subject,
  { add, remove }: Waiters<Subject, Reading>,
  signal: AbortSignal | undefined,
): ReadingWatch<Reading> {
  let unread: Reading | undefined
  let failure: unknown
  let waiter: Waiter<Subject, Reading> | undefined
  const arrival = createLatch(signal)
  const createWaiter = (): Waiter<Subject, Reading> => {
    const created: Waiter<Subject, Reading> = {
      subject,
      isUrgent: true,
      isDue: true,
      readMs: 0,
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
  return {
    async next({ timeoutMs, isFresh = !waiter }) {
      failure = undefined
      if (isFresh) {
        unread = undefined
        // A request that is already sent may read an older state, so its reading is dropped with the former waiter.
        if (waiter) remove(waiter)
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
      if (waiter) remove(waiter)
      arrival[Symbol.dispose]()
    },
  }
}

/**
 * Holds parked tasks. Each task is woken by a reading that is news to it, and forgotten once it becomes due by
 * itself.
 */
function createParkedTasks<Subject, Reading>(
  { wake, log }: Pick<WatcherDeps<Subject, Reading>, 'wake' | 'log'>,
  waiters: Waiters<Subject, Reading>,
) {
  type Parked = { taskId: string; untilMs: number; waiter: Waiter<Subject, Reading> }
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

    add({ taskId, subject, afterMs, isNews }: ParkedTask<Subject, Reading>): boolean {
      remove(taskId)
      if (isClosed || parked.size >= parkedMax) return false
      const entry: Parked = {
        taskId,
        untilMs: monotonicMs() + afterMs,
        waiter: {
          subject,
          isUrgent: false,
          isDue: false,
          readMs: monotonicMs(),
          onReading(reading) {
            if (!isNews(reading)) withNews.delete(entry)
            else if (parked.get(taskId) === entry) withNews.add(entry)
          },
          onFailure: () => undefined,
        },
      }
      parked.set(taskId, entry)
      waiters.add(entry.waiter)
      return true
    },

    async wakeChanged(): Promise<void> {
      for (const [taskId, { untilMs }] of parked) if (monotonicMs() > untilMs) remove(taskId)
      if (withNews.size === 0) return
      // A task that has news but is not parked in the database yet is woken after the next poll.
      const woken = await wake([...withNews].map(({ taskId }) => taskId)).catch((error: unknown) => {
        log.warn({ error }, 'parked tasks not woken at their news: the next poll tries again')
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
