import { type Notifier, slotsTopic } from '#durable/events/notifier.ts'
import type { Transactions } from '#durable/transactions.ts'
import { startPacedJob } from '#kernel/async/paced-job.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Tx } from '#kernel/task/task.ts'
import { isConflict } from '#store/serialization-conflict.ts'
import { isLockTimeout } from '#store/timeouts.ts'
import { isDatabaseUnavailable } from '#store/unavailable.ts'

/** Serves rows of a table when they are due, once each, on any number of instances and without a leader. */

export type DueRowsDeps = {
  transactions: Transactions
  notifier: Pick<Notifier, 'on'>
  clock: Clock
  log: Log
  /** Whether this instance is on duty and serves due rows at once; the others wait to see whether it does. */
  isOnDuty: () => boolean
  /** Claims the tasks that served rows have enqueued; a hint would make all instances claim. */
  claimNow: () => void
}
export type DueRow = { id: string; at: Date }
export type Selection = {
  limit: number
  /** The ids of the only rows to serve; null serves any row. */
  ids: readonly string[] | null
  except: readonly string[]
}
/** When each served row is due next, by row id; undefined for a row that is not due again. */
export type NextDue = Map<string, Date | undefined>
export type DueSource<Row extends { id: string }> = {
  name: string
  /** Returns the earliest rows that this instance can serve. */
  findNext(selection: Pick<Selection, 'limit' | 'except'>): Promise<DueRow[]>
  /** Locks the earliest of the rows that are due, without those that another transaction has locked. */
  lockDue(tx: Tx, now: Date, selection: Selection): Promise<Row[]>
  /** Enqueues the work of the due rows, and moves each row to its next time. */
  serve(tx: Tx, rows: readonly Row[], now: Date): Promise<NextDue>
  /** Runs after the commit of rows that were served. */
  onServed?(rows: readonly Row[]): void
}

/** A row whose hint was lost is found within this time. */
const duePollMs = 10_000
const retryMs = 1_000
/** How long after a row's time an instance that is not on duty serves the row. */
const standInMs = 500
/** The pause if another instance holds the rows that are due. */
const lockedMs = 250
const batchMax = 200
/** How long a row that cannot be served is left out: after a lock or conflict, and after any other failure. */
const lockedRowMs = 1_000
const failedRowMs = 60_000

type State<Row extends { id: string }> = {
  deps: DueRowsDeps
  source: DueSource<Row>
  /** The monotonic time until which each row is left out. */
  deferred: Map<string, number>
}

export function startDueRows<Row extends { id: string }>(
  deps: DueRowsDeps,
  source: DueSource<Row>,
): AsyncDisposable {
  const state: State<Row> = { deps, source, deferred: new Map() }
  const { name } = source
  const job = startPacedJob(() => runOnce(state), {
    retryMs,
    onError: (error) => deps.log.warn({ error, name }, 'poll for due rows failed; the next poll tries again'),
  })
  const hints = deps.notifier.on(slotsTopic, () => job.runWithin())
  return {
    async [Symbol.asyncDispose]() {
      hints[Symbol.dispose]()
      await job[Symbol.asyncDispose]()
    },
  }
}

/** Serves the rows that are due, and returns the time until the next poll. */
async function runOnce<Row extends { id: string }>(state: State<Row>): Promise<number> {
  const { clock, isOnDuty } = state.deps
  const now = clock.now()
  const except = deferredRows(state)
  // One more than a batch is read, which shows the earliest of the others without another query.
  const upcoming = await state.source.findNext({ limit: batchMax + 1, except })
  const untilMs = (at: Date) => at.getTime() + (isOnDuty() ? 0 : standInMs) - now.getTime()
  const first = upcoming[0]
  const firstMs = first ? untilMs(first.at) : duePollMs
  if (firstMs > 0) return Math.min(firstMs, untilNextPollMs(state))
  const next = await serveDue(state, now, { limit: batchMax, ids: null, except })
  if (next.size === batchMax) return 0
  const others = upcoming.filter(({ id }) => !next.has(id)).map(({ at }) => untilMs(at))
  const times = [...next.values()].filter((at) => at !== undefined).map(untilMs)
  const waits = [...others, ...times].map((ms) => (ms > 0 ? ms : lockedMs))
  return Math.min(untilNextPollMs(state), ...waits)
}

/**
 * Serves the selected rows in one transaction. If it fails, each half is served by itself, down to the row that is
 * the cause: that row is left out for a while, and holds up no other. The database may also have ended the session
 * because the rows took too long, so an error of the connection is halved as well: if the database is away, the first
 * half locks no row, and its error ends the poll.
 */
async function serveDue<Row extends { id: string }>(
  state: State<Row>,
  now: Date,
  selection: Selection,
): Promise<NextDue> {
  const { deps, source } = state
  let rows: Row[] = []
  try {
    const next = await deps.transactions.run(async (tx) => {
      rows = await source.lockDue(tx, now, selection)
      return rows.length === 0 ? new Map() : source.serve(tx, rows, now)
    })
    if (next.size > 0) deps.claimNow()
    source.onServed?.(rows)
    return next
  } catch (error) {
    const ids = rows.map(({ id }) => id)
    const [first] = ids
    if (first === undefined) throw error
    if (ids.length === 1) {
      if (isDatabaseUnavailable(error)) throw error
      return defer(state, first, error)
    }
    const middle = Math.ceil(ids.length / 2)
    return new Map([
      ...(await serveDue(state, now, { ...selection, ids: ids.slice(0, middle) })),
      ...(await serveDue(state, now, { ...selection, ids: ids.slice(middle) })),
    ])
  }
}

function defer<Row extends { id: string }>(
  { deps, source, deferred }: State<Row>,
  id: string,
  error: unknown,
): NextDue {
  const isBlocked = isLockTimeout(error) || isConflict(error)
  deferred.set(id, performance.now() + (isBlocked ? lockedRowMs : failedRowMs))
  if (!isBlocked) deps.log.warn({ error, id, name: source.name }, 'due row not served; it is tried again')
  return new Map([[id, undefined]])
}

function deferredRows({ deferred }: Pick<State<never>, 'deferred'>): string[] {
  for (const [id, untilMs] of deferred) if (untilMs <= performance.now()) deferred.delete(id)
  return [...deferred.keys()]
}

const untilNextPollMs = ({ deferred }: Pick<State<never>, 'deferred'>): number =>
  Math.max(0, Math.min(duePollMs, ...[...deferred.values()].map((untilMs) => untilMs - performance.now())))
