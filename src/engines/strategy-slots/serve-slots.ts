import type { Engine } from '#durable/engine.ts'
import { createLoopTurns } from '#kernel/async/event-loop-turns.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import type { NewEvent, TaskKind, Tx } from '#kernel/task/task.ts'
import { jsonText, query } from '#store/query.ts'
import type { StrategyExecutionRow, StrategyRow, StrategyVersionRow } from '#store/tables/strategies.ts'
import {
  type NextSlot,
  planSlots,
  punctualMs,
  type SlotPlan,
  type SlotRules,
  withMissed,
} from './plan-slots.ts'

/** Records the slots of strategies that are due, enqueues their runs, and moves the strategies to their next slots. */

export type ServeDeps = {
  taskEngine: Pick<Engine, 'enqueueOnce' | 'appendEvents'>
  /** The clock of tasks and of the event log, which may differ from the clock of the slots. */
  taskClock: Clock
  /** Returns the events of skipped slots; `previousReason` is why the slot before was skipped, if it was. */
  skipEvents: (
    strategy: Pick<StrategyRow, 'id' | 'title' | 'notify'>,
    execution: NewExecution,
    before: { previousReason: string | null },
  ) => NewEvent[]
  nextSlot: NextSlot
  random: Random
  /** The version of the time zone data of this process. */
  tzVersion: string
}
export type StrategyDue = SlotRules &
  Pick<
    StrategyRow,
    | 'id'
    | 'user_id'
    | 'title'
    | 'notify'
    | 'version'
    | 'following_at'
    | 'tz_version'
    | 'execution_count'
    | 'run_count'
  > &
  Pick<StrategyVersionRow, 'type' | 'mode' | 'max_runs'> & {
    next_at: Date
    /** Why the strategy's newest record was skipped; null if it was not skipped. */
    previous_reason: string | null
  }
type ServeOptions = {
  now: Date
  kind: TaskKind
  /** Whether slots may run; false for a strategy that stops, whose slots are recorded as missed. */
  mayRun?: boolean
  /**
   * Whether money is on hold after lost commits. Slots that would run are then skipped, because the lost commits may
   * have served them.
   */
  isFrozen?: boolean
  /** Whether the caller's transaction has a limit of its own for the wait for a lock, which then stays as it is. */
  hasLockLimit?: boolean
}
type Planned = { row: StrategyDue; plan: SlotPlan; overlapReason: 'overlap' | 'frozen' }
export type NewExecution = Pick<
  StrategyExecutionRow,
  | 'id'
  | 'strategy_id'
  | 'user_id'
  | 'version'
  | 'number'
  | 'execution_type'
  | 'mode'
  | 'slot'
  | 'first_slot'
  | 'skipped_slots'
  | 'status'
  | 'outcome'
  | 'skip_reason'
  | 'created_at'
  | 'ended_at'
>

export const dueColumns = `s.id, s.user_id, s.title, s.notify, s.version, s.next_at,
  (select e.skip_reason from strategy_execution e where e.strategy_id = s.id order by e.number desc limit 1) as previous_reason, s.following_at, s.tz_version, s.execution_count,
  s.run_count, v.type, v.mode, v.calendar, v.max_runs, v.on_missed, v.catch_up_seconds`
export const strategyWithVersion = `strategy s join strategy_version v on v.strategy_id = s.id and v.version = s.version`

/** The priority of runs that ask no model, and trade when their slot is due. */
export const tradePriority = 1

/** Many strategies have the same slot, so runs that ask a model begin spread over this time after the slot. */
const promptSpreadMs = 10_000
const loopTurn = createLoopTurns()

/** Serves the due slots of strategies whose rows the caller has locked. Returns the next slot of each strategy. */
export async function serveSlots(
  deps: ServeDeps,
  tx: Tx,
  rows: readonly StrategyDue[],
  options: ServeOptions,
): Promise<Map<string, Date | undefined>> {
  const { now, kind, mayRun = true, isFrozen = false, hasLockLimit } = options
  const running = await findRunning(tx, rows)
  const planned = await planAll(deps, rows, { now, mayRun, isFrozen, running })
  const executions = planned.flatMap((each) => newExecutions(each, now, deps.random))
  const inserted = await insertExecutions(tx, executions)
  const byId = new Map(rows.map((row) => [row.id, row]))
  const runs = executions.filter(({ id, status }) => status === 'pending' && inserted.has(id))
  const enqueued = await deps.taskEngine.enqueueOnce(
    tx,
    runs.map((execution) => runTask(deps, byId.get(execution.strategy_id)!, { execution, kind })),
    hasLockLimit ? {} : undefined,
  )
  const repeated = runs.filter((_, n) => enqueued[n] === undefined).map(({ id }) => id)
  // The record of a run can be deleted before its task, so a run whose task exists gets no second record.
  if (repeated.length > 0)
    await query(tx, 'delete from strategy_execution where id = any($1::uuid[])', [repeated])
  const recorded = executions.filter(({ id }) => inserted.has(id) && !repeated.includes(id))
  await moveSlots(deps, tx, { planned, recorded, now })
  await addSkipEvents(
    deps,
    tx,
    byId,
    recorded.filter(({ status }) => status === 'cancelled'),
  )
  return new Map(planned.map(({ row, plan }) => [row.id, plan.next]))
}

/** Returns the ids of the strategies of which a run has not ended. */
async function findRunning(tx: Tx, rows: readonly StrategyDue[]): Promise<ReadonlySet<string>> {
  const found = await query<{ strategy_id: string }>(
    tx,
    `select e.strategy_id from strategy_execution e join task_queue q on q.task_id = e.id
     where e.strategy_id = any($1::uuid[]) and e.status in ('pending', 'running') and e.execution_type <> 'backtest'`,
    [rows.map(({ id }) => id)],
  )
  return new Set(found.map(({ strategy_id }) => strategy_id))
}

type PlanOptions = { now: Date; mayRun: boolean; isFrozen: boolean; running: ReadonlySet<string> }

async function planAll(
  { nextSlot }: ServeDeps,
  rows: readonly StrategyDue[],
  { now, mayRun, isFrozen, running }: PlanOptions,
): Promise<Planned[]> {
  const planned: Planned[] = []
  for (const row of rows) {
    // The search of this row's calendar takes one step for each missed slot, so waiting work of the event loop runs
    // before it.
    if (row.following_at === null || row.following_at <= now) await loopTurn()
    const isRunning = running.has(row.id)
    // While money is on hold, a slot does not run, as if the run of an earlier slot had not ended.
    const plan = planSlots({ ...row, isRunning: isRunning || isFrozen }, now, nextSlot)
    const overlapReason = isRunning ? 'overlap' : 'frozen'
    planned.push({ row, plan: mayRun ? plan : withoutRun(plan), overlapReason })
  }
  return planned
}

const withoutRun = ({ run, ...plan }: SlotPlan): SlotPlan =>
  run ? { ...plan, missed: withMissed(plan.missed, run) } : plan

function newExecutions({ row, plan, overlapReason }: Planned, now: Date, random: Random): NewExecution[] {
  const { run, overlap, missed } = plan
  let number = row.execution_count
  const execution = (slot: Date, fields: Partial<NewExecution>): NewExecution => ({
    id: uuidv7(now, random),
    strategy_id: row.id,
    user_id: row.user_id,
    version: row.version,
    number: ++number,
    execution_type: now.getTime() - slot.getTime() > punctualMs ? 'catch_up' : 'scheduled',
    mode: row.mode,
    slot,
    first_slot: null,
    skipped_slots: 0,
    status: 'pending',
    outcome: null,
    skip_reason: null,
    created_at: now,
    ended_at: null,
    ...fields,
  })
  const skipped = { status: 'cancelled', outcome: 'not_executed', ended_at: now } as const
  return [
    ...(missed
      ? [
          execution(missed.last, {
            ...skipped,
            execution_type: 'scheduled',
            skip_reason: 'missed',
            first_slot: missed.first,
            skipped_slots: missed.count,
          }),
        ]
      : []),
    ...(overlap
      ? [
          execution(overlap, {
            ...skipped,
            skip_reason: overlapReason,
            first_slot: overlap,
            skipped_slots: 1,
          }),
        ]
      : []),
    ...(run ? [execution(run, {})] : []),
  ]
}

/** Inserts records of slots and returns the ids of the new ones; a slot that has a record is left as it is. */
async function insertExecutions(tx: Tx, executions: readonly NewExecution[]): Promise<ReadonlySet<string>> {
  const columns = `id, strategy_id, user_id, version, number, execution_type, mode, slot, first_slot, skipped_slots,
    status, outcome, skip_reason, created_at, ended_at`
  const inserted = await query<{ id: string }>(
    tx,
    `insert into strategy_execution (${columns})
       select ${columns} from jsonb_populate_recordset(null::strategy_execution, $1::jsonb) order by strategy_id, number
     on conflict do nothing returning id`,
    [jsonText(executions)],
  )
  return new Set(inserted.map(({ id }) => id))
}

/** Adds the events of skipped slots. Event logs are locked last and in the order of user ids, against deadlocks. */
async function addSkipEvents(
  { skipEvents, taskEngine, taskClock }: ServeDeps,
  tx: Tx,
  strategies: ReadonlyMap<string, StrategyDue>,
  executions: readonly NewExecution[],
): Promise<void> {
  const byUser = new Map<string, NewEvent[]>()
  const reasons = new Map<string, string | null>()
  for (const execution of executions) {
    const strategy = strategies.get(execution.strategy_id)!
    const previousReason = reasons.get(strategy.id) ?? strategy.previous_reason
    const events = skipEvents(strategy, execution, { previousReason })
    byUser.set(strategy.user_id, [...(byUser.get(strategy.user_id) ?? []), ...events])
    reasons.set(strategy.id, execution.skip_reason)
  }
  for (const userId of [...byUser.keys()].sort())
    await taskEngine.appendEvents(tx, userId, byUser.get(userId)!, taskClock.now())
}

type NewRun = { execution: NewExecution; kind: TaskKind }
function runTask(
  { taskClock }: ServeDeps,
  { id, user_id: userId, version, type }: StrategyDue,
  { execution, kind }: NewRun,
) {
  const slot = execution.slot!
  const input = {
    schedule_id: id,
    version,
    slot: slot.toISOString(),
    ...(type !== 'prompt' && { priority: tradePriority }),
  }
  const spreadMs = type === 'prompt' ? Number.parseInt(id.slice(-6), 16) % promptSpreadMs : 0
  return {
    id: execution.id,
    userId,
    kind,
    input,
    admission: { data: {}, first: Object.keys(kind.steps)[0]! },
    key: {
      key: internalKey('sched', `${id} ${input.slot}`),
      operation: `schedule:${kind.kind}`,
      hash: bodyHash(kind.kind, input),
    },
    runAt: later(taskClock.now(), spreadMs),
  }
}

type Moved = { planned: readonly Planned[]; recorded: readonly NewExecution[]; now: Date }

/** Moves strategies to their next slots, and counts new records; a strategy without a next slot is completed. */
async function moveSlots({ tzVersion }: ServeDeps, tx: Tx, { planned, recorded, now }: Moved): Promise<void> {
  const records = Map.groupBy(recorded, ({ strategy_id: id }) => id)
  const moves = planned.map(({ row, plan: { next } }) => {
    const added = records.get(row.id) ?? []
    return {
      id: row.id,
      next_at: next,
      tz_version: next && next === row.following_at ? row.tz_version : tzVersion,
      has_run: added.some(({ status }) => status === 'pending'),
      last_number: Math.max(row.execution_count, ...added.map(({ number }) => number)),
      skipped: added.reduce((sum, { skipped_slots: count }) => sum + count, 0),
    }
  })
  await query(
    tx,
    `update strategy s set next_at = m.next_at, following_at = null, tz_version = m.tz_version,
       status = case when m.next_at is null then 'completed' else s.status end,
       execution_count = m.last_number, skipped_count = s.skipped_count + m.skipped,
       last_run_at = case when m.has_run then $2 else s.last_run_at end, updated_at = $2
     from jsonb_to_recordset($1::jsonb) m (id uuid, next_at timestamptz, tz_version text, has_run boolean,
       last_number integer, skipped integer) where s.id = m.id`,
    [jsonText(moves), now],
  )
}
