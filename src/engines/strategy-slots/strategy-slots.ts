import type { Engine } from '#durable/engine.ts'
import type { Transactions } from '#durable/transactions.ts'
import type { DueRow, DueSource } from '#durable/upkeep/due-rows.ts'
import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import type { Clock } from '#kernel/clock.ts'
import type { TaskKind, Tx } from '#kernel/task/task.ts'
import { query } from '#store/query.ts'
import type { StrategyStatus } from '#store/tables/strategies.ts'
import { type NextSlot, slotAfter } from './plan-slots.ts'
import {
  dueColumns,
  type ServeDeps,
  type StrategyDue,
  serveSlots,
  strategyWithVersion,
} from './serve-slots.ts'

/** The slots of strategies: each slot is recorded once, with the version of the strategy that was active then. */

export type StrategySlotDeps = ServeDeps & {
  transactions: Pick<Transactions, 'pool' | 'run'>
  taskEngine: ServeDeps['taskEngine'] &
    Pick<Engine, 'kindOf' | 'startDueRows' | 'announceSlots' | 'announceQueued'> & {
      events: Pick<Engine['events'], 'notify'>
      holds: Pick<Engine['holds'], 'find' | 'waitsForOperator' | 'onFree'>
    }
  /** The clock that decides when slots are due. */
  clock: Clock
}
export type StrategySlots = {
  /** Serves slots when they are due, until the returned handle is disposed of. */
  start(): AsyncDisposable
  /** Locks a strategy before an edit, and serves the slots that are due by the version before it. */
  settle(tx: Tx, strategyId: string): Promise<void>
  /** Activates a locked strategy from its next slot on; returns undefined, and changes nothing, if there is none. */
  arm(tx: Tx, strategyId: string): Promise<Date | undefined>
  /**
   * Stops a strategy; its slots that are due by then are recorded as missed. Only an active strategy is paused. Returns
   * whether it was stopped.
   */
  disarm(tx: Tx, strategyId: string, stop: StrategyStop): Promise<boolean>
  /** Notifies all instances of changed slots, after the commit of the change, so that none waits for its poll. */
  announce(): void
  /** Computes, ahead of time, the slot that follows a strategy's next one. */
  computeFollowing(strategyId: string): Promise<void>
  /** The upkeep job that computes slots again that were computed with older time zone data. */
  zoneDataJob: MaintenanceJob
}
type StrategyStop = { status: Exclude<StrategyStatus, 'active'>; reason: string | null }

/** The kind of the tasks that run a strategy. */
export const runKindName = 'schedule_run'
const batchMax = 200

export function createStrategySlots(deps: StrategySlotDeps): StrategySlots {
  const { taskEngine } = deps
  return {
    start() {
      taskEngine.holds.onFree(taskEngine.announceSlots)
      return taskEngine.startDueRows(dueStrategies(deps), deps.clock)
    },
    settle: (tx, strategyId) => serveBeforeChange(deps, tx, strategyId, { mayRun: true }),
    arm: (tx, strategyId) => arm(deps, tx, strategyId),
    async disarm(tx, strategyId, { status, reason }) {
      await serveBeforeChange(deps, tx, strategyId, { mayRun: false })
      const stopped = await query(
        tx,
        `update strategy set status = $2, status_reason = $3, next_at = null, following_at = null, updated_at = $4
         where id = $1 and ($2 <> 'paused' or status = 'active') returning id`,
        [strategyId, status, reason, deps.clock.now()],
      )
      return stopped.length > 0
    },
    announce() {
      taskEngine.announceSlots()
      taskEngine.announceQueued()
    },
    computeFollowing: (strategyId) => computeFollowing(deps, strategyId),
    zoneDataJob: { name: 'slots after a change of zone data', runBatch: () => recomputeSlots(deps) },
  }
}

/**
 * Whether due slots wait, because money is on hold for the seconds in which chains are compared with the database. A
 * hold that an operator has to end lasts longer, so slots are skipped meanwhile: after lost commits they may have run,
 * and must not run again by themselves.
 */
const waitsForComparison = ({ taskEngine: { holds } }: StrategySlotDeps): boolean =>
  holds.find() !== undefined && !holds.waitsForOperator()

/** The due strategies. An instance without the kind of their runs leaves them to instances that have it. */
const dueStrategies = (deps: StrategySlotDeps): DueSource<StrategyDue> => ({
  name: 'strategy',
  findNext: async ({ limit, except }) =>
    !waitsForComparison(deps) && deps.taskEngine.kindOf(runKindName)
      ? query<DueRow>(
          deps.transactions.pool,
          `select id, next_at as at from strategy where next_at is not null and id <> all($1::uuid[])
           order by next_at limit $2`,
          [except, limit],
        )
      : [],
  lockDue: async (tx, now, { limit, ids, except }) =>
    waitsForComparison(deps)
      ? []
      : query<StrategyDue>(
          tx,
          `select ${dueColumns} from ${strategyWithVersion}
           where s.next_at <= $1 and ($2::uuid[] is null or s.id = any($2)) and s.id <> all($3::uuid[])
           order by s.next_at limit $4 for update of s skip locked`,
          [now, ids, except, limit],
        ),
  serve: (tx, rows, now) =>
    serveSlots(deps, tx, rows, { now, kind: runKind(deps), isFrozen: isFrozen(deps) }),
  onServed(rows) {
    for (const userId of new Set(rows.map((row) => row.user_id))) deps.taskEngine.events.notify(userId)
  },
})

const isFrozen = ({ taskEngine }: StrategySlotDeps): boolean => taskEngine.holds.find() !== undefined

function runKind({ taskEngine }: StrategySlotDeps): TaskKind {
  const kind = taskEngine.kindOf(runKindName)
  if (!kind) throw new Error(`this instance has no task kind ${runKindName}`)
  return kind
}

async function serveBeforeChange(
  deps: StrategySlotDeps,
  tx: Tx,
  strategyId: string,
  { mayRun }: { mayRun: boolean },
): Promise<void> {
  // The version is read by a second statement: a statement that waited for the lock would read an earlier version.
  await query(tx, 'select id from strategy where id = $1 for update', [strategyId])
  const now = deps.clock.now()
  const rows = await query<StrategyDue>(
    tx,
    `select ${dueColumns} from ${strategyWithVersion} where s.id = $1 and s.next_at <= $2`,
    [strategyId, now],
  )
  const options = { now, kind: runKind(deps), mayRun, isFrozen: isFrozen(deps), hasLockLimit: true }
  if (rows.length > 0) await serveSlots(deps, tx, rows, options)
}

async function arm(
  { clock, nextSlot, tzVersion }: StrategySlotDeps,
  tx: Tx,
  strategyId: string,
): Promise<Date | undefined> {
  const now = clock.now()
  const [row] = await query<Omit<StrategyDue, 'next_at'>>(
    tx,
    `select ${dueColumns} from ${strategyWithVersion} where s.id = $1`,
    [strategyId],
  )
  if (!row || (row.max_runs !== null && row.run_count >= row.max_runs)) return undefined
  const next = slotAfter(row, now, nextSlot)
  if (!next) return undefined
  await query(
    tx,
    `update strategy set status = 'active', status_reason = null, next_at = $2, following_at = null, tz_version = $3,
       updated_at = $4 where id = $1`,
    [strategyId, next, tzVersion, now],
  )
  return next
}

/** Computes and stores the slot after the next one, unless the next one comes from other zone data. */
async function computeFollowing(
  { transactions: { pool }, nextSlot, tzVersion }: StrategySlotDeps,
  strategyId: string,
): Promise<void> {
  const [row] = await query<StrategyDue>(
    pool,
    `select ${dueColumns} from ${strategyWithVersion}
     where s.id = $1 and s.next_at is not null and s.following_at is null and s.tz_version = $2`,
    [strategyId, tzVersion],
  )
  const following = row && slotAfter(row, row.next_at, nextSlot)
  if (!following) return
  await query(
    pool,
    `update strategy set following_at = $3
     where id = $1 and next_at = $2 and version = $4 and tz_version = $5 and following_at is null`,
    [strategyId, row.next_at, following, row.version, tzVersion],
  )
}

/** Computes a batch of slots again with this zone data; returns true if more slots may be left. */
async function recomputeSlots(deps: StrategySlotDeps): Promise<boolean> {
  const { transactions, clock, nextSlot, tzVersion } = deps
  const now = clock.now()
  const count = await transactions.run(async (tx) => {
    const rows = await query<StrategyDue>(
      tx,
      `select ${dueColumns} from ${strategyWithVersion} where s.tz_version < $1 and s.next_at > $2
       order by s.tz_version limit $3 for update of s skip locked`,
      [tzVersion, now, batchMax],
    )
    const slots = rows.map((row) => nextOrPresent(row, now, nextSlot))
    await query(
      tx,
      `update strategy s set next_at = n.at, following_at = null, tz_version = $3,
         status = case when n.at is null then 'completed' else s.status end
       from unnest($1::uuid[], $2::timestamptz[]) n (id, at) where s.id = n.id`,
      [rows.map(({ id }) => id), slots, tzVersion],
    )
    return rows.length
  })
  if (count > 0) deps.taskEngine.announceSlots()
  return count === batchMax
}

/**
 * Returns the next slot, or the stored one if the calendar cannot be read. The error then occurs when that slot is due,
 * and concerns this strategy alone.
 */
function nextOrPresent(row: StrategyDue, now: Date, nextSlot: NextSlot): Date | null {
  try {
    return slotAfter(row, now, nextSlot) ?? null
  } catch {
    return row.next_at
  }
}
