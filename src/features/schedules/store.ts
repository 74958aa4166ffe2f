import { isUnusedSql, versionsMax } from '#engines/strategy-slots/strategy-run-retention.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { GuardConfig } from '#market/strategies/guards.ts'
import { builder, fetchAll, jsonText, type Queryable, query } from '#store/query.ts'
import type {
  StrategyRow,
  StrategyStatus,
  StrategyType,
  StrategyVersionRow,
} from '#store/tables/strategies.ts'
import type { Calendar } from './recurrence/calendar-types.ts'
import { isHeldSql } from './strategy-assets.ts'
import { type StrategyColumns, strategyColumns } from './strategy-columns.ts'

/** A schedule with its present version, and the statuses of its newest runs, the newest first. */
export type ScheduleRow = StrategyRow &
  Pick<
    StrategyVersionRow,
    | 'type'
    | 'query'
    | 'agent'
    | 'mode'
    | 'config'
    | 'budget_usd'
    | 'paper_balance_usd'
    | 'calendar'
    | 'max_runs'
    | 'guards'
    | 'on_missed'
    | 'catch_up_seconds'
    | 'compiled'
    | 'authority'
  > &
  StrategyColumns & {
    recent: string[]
    /** The end of the last backtest of the configuration and its guards; null as well for what does not trade. */
    backtested_at: Date | null
    /** The end of the last run on paper that has decided by both, with candles. */
    papered_at: Date | null
    /** The markets that another strategy of the user trades live, with the id of that one. */
    markets_in_use: Readonly<Record<string, string>> | null
    /** The guards of the newest version that was active live with the configuration. */
    live_guards: GuardConfig | null
    /** Whether the live account of the strategy has something open or resting. */
    is_open: boolean | null
  }

/** The success rate counts this many of the newest runs. */
const recentMax = 50

const versionColumns = `v.type, v.query, v.agent, v.mode, v.calendar, v.config, v.budget_usd::text,
  v.paper_balance_usd::text, v.max_runs, v.guards, v.on_missed, v.catch_up_seconds, v.compiled, v.authority`
/** A user may make many backtests; this many of the newest are looked at. */
const backtestsMax = 200
/** Only a run of the last days counts, and a strategy may have a year of them; this many of the newest are looked at. */
const paperRunsMax = 200
const ofLive = (text: string, name: string) =>
  `case when v.mode = 'live' and v.type <> 'prompt' then (${text}) end as ${name}`
const evidence = [
  ofLive(
    `select max(t.completed_at) from (select status, completed_at, data from task
       where user_id = s.user_id and kind = 'strategy_backtest' order by id desc limit ${backtestsMax}) t
     where t.status = 'completed' and t.data #> '{plan,strategy}' = v.compiled -> 'strategy'
       and t.data #> '{plan,guards}' = v.compiled -> 'guards'`,
    'backtested_at',
  ),
  ofLive(
    `select e.ended_at from (select * from strategy_execution
         where strategy_id = s.id order by number desc limit ${paperRunsMax}) e
       join strategy_version p on p.strategy_id = e.strategy_id and p.version = e.version
     where e.mode = 'paper' and e.status = 'completed' and p.type = v.type
       and e.execution_type <> 'exit' and e.decision ->> 'reason' is distinct from 'not_enough_history'
       and p.compiled -> 'strategy' = v.compiled -> 'strategy' and p.compiled -> 'guards' = v.compiled -> 'guards'
       and exists (select from strategy_decision d where d.execution_id = e.id)
     order by e.number desc limit 1`,
    'papered_at',
  ),
  ofLive(
    `select coalesce(jsonb_object_agg(a.market, a.strategy_id), '{}') from strategy_asset a
     where a.user_id = s.user_id and a.strategy_id <> s.id and v.compiled -> 'assets' ? a.market
       and ${isHeldSql('a.strategy_id')}`,
    'markets_in_use',
  ),
  ofLive(
    `select p.compiled -> 'guards' from strategy_version p where p.strategy_id = s.id and p.mode = 'live'
       and p.authority is not null and p.compiled -> 'strategy' = v.compiled -> 'strategy'
     order by p.version desc limit 1`,
    'live_guards',
  ),
  ofLive(
    `exists (select from strategy_account a
       where a.strategy_id = s.id and a.mode = 'live' and a.watch_at is not null)`,
    'is_open',
  ),
].join(', ')
const selection = `select s.*, ${versionColumns}, ${evidence}, ${strategyColumns}, array(
    select case when e.status = 'cancelled' and e.skip_reason is not null then 'skipped' else e.status end
    from strategy_execution e where e.strategy_id = s.id order by e.number desc limit ${recentMax}) as recent
  from strategy s join strategy_version v on v.strategy_id = s.id and v.version = s.version`

export async function findSchedule(
  db: Queryable,
  userId: string,
  id: string,
): Promise<ScheduleRow | undefined> {
  const [row] = await query<ScheduleRow>(db, `${selection} where s.id = $1 and s.user_id = $2`, [id, userId])
  return row
}

type Filter = {
  statuses: readonly StrategyStatus[] | null
  type?: StrategyType | null
  skip: number
  limit: number
}

export async function schedulesOf(
  db: Queryable,
  userId: string,
  { statuses, type = null, skip, limit }: Filter,
): Promise<{ rows: ScheduleRow[]; total: number }> {
  const matching = `s.user_id = $1 and ($2::text[] is null or s.status = any($2))
    and ($3::text is null or v.type = $3)`
  const [rows, [counted]] = await Promise.all([
    query<ScheduleRow>(
      db,
      `${selection} where ${matching} order by s.id desc offset $4::bigint limit $5::integer`,
      [userId, statuses, type, skip, limit],
    ),
    query<{ total: number }>(
      db,
      `select count(*)::integer as total from strategy s
         join strategy_version v on v.strategy_id = s.id and v.version = s.version where ${matching}`,
      [userId, statuses, type],
    ),
  ])
  return { rows, total: counted?.total ?? 0 }
}

/** The tasks of the runs of a user that have not ended, and of their chats. */
const openTasksSql = `select id from task where id in (
  select unnest(array[e.id, e.chat_id]) from strategy s join strategy_execution e on e.strategy_id = s.id
  where s.user_id = $1 and e.status in ('pending', 'running'))`
/** Runs that begin while their schedules are locked are locked in another attempt; few begin in one moment. */
const lockAttemptsMax = 5

/**
 * Locks the open runs of a user and then the schedules, in the order in which the end of a run locks both, for a change
 * that cancels runs.
 */
export async function lockRunsAndSchedules(tx: Tx, userId: string): Promise<StrategyRow[]> {
  const locked = new Set<string>()
  for (let attempt = 1; ; attempt++) {
    const runs = await query<{ id: string }>(tx, `${openTasksSql} order by id for no key update`, [userId])
    for (const { id } of runs) locked.add(id)
    await query(tx, 'savepoint schedules_locked')
    const schedules = await lockSchedules(tx, userId)
    const open = await query<{ id: string }>(tx, openTasksSql, [userId])
    if (attempt === lockAttemptsMax || open.every(({ id }) => locked.has(id))) return schedules
    await query(tx, 'rollback to savepoint schedules_locked')
  }
}

/** Locks the schedules of a user; changes that count schedules or end several of them wait for each other here. */
export async function lockSchedules(tx: Tx, userId: string): Promise<StrategyRow[]> {
  return query<StrategyRow>(tx, 'select * from strategy where user_id = $1 order by id for no key update', [
    userId,
  ])
}

export type NewVersion = Pick<
  StrategyVersionRow,
  | 'strategy_id'
  | 'version'
  | 'type'
  | 'query'
  | 'agent'
  | 'mode'
  | 'config'
  | 'budget_usd'
  | 'paper_balance_usd'
  | 'max_runs'
  | 'on_missed'
  | 'catch_up_seconds'
  | 'created_at'
> & { calendar: Calendar | null; guards: object; compiled: object }

export async function insertVersion(tx: Tx, version: NewVersion): Promise<void> {
  const text = `insert into strategy_version select * from jsonb_populate_record(null::strategy_version, $1)`
  await query(tx, text, [jsonText(version)])
  await query(tx, versionDeletionSql, [version.strategy_id, version.version - versionsMax])
}

/** Each edit deletes the version that it makes too old; one that a run names is deleted with its last run. */
const versionDeletionSql = `delete from strategy_version v where strategy_id = $1 and version = $2
  and ${isUnusedSql}`

export type NewSchedule = Pick<
  StrategyRow,
  'id' | 'user_id' | 'title' | 'thread_id' | 'notify' | 'created_at'
>

export const insertSchedule = (tx: Tx, { id, user_id, title, thread_id, notify, created_at }: NewSchedule) =>
  query(
    tx,
    `insert into strategy (id, user_id, title, version, status, thread_id, notify, created_at, updated_at)
     values ($1, $2, $3, 1, 'draft', $4, $5, $6, $6)`,
    [id, user_id, title, thread_id, notify, created_at],
  )

export const updateSchedule = (tx: Tx, id: string, values: Partial<StrategyRow>) =>
  fetchAll(tx, builder.updateTable('strategy').set(values).where('id', '=', id))

/** Stores the authority in whose name a version runs; each activation replaces it. */
export const storeAuthority = (
  tx: Tx,
  { id, version }: Pick<StrategyRow, 'id' | 'version'>,
  authority: object,
) =>
  query(tx, 'update strategy_version set authority = $3 where strategy_id = $1 and version = $2', [
    id,
    version,
    jsonText(authority),
  ])

/**
 * Returns the ids of open runs: those that wait or, with `hasStarted`, those that run as well. A run that closes
 * positions is none of them: a strategy that is stopped, or that runs by hand, still closes what it has to.
 */
export async function openRuns(
  tx: Tx,
  scheduleIds: readonly string[],
  { hasStarted }: { hasStarted: boolean },
): Promise<string[]> {
  const statuses = hasStarted ? "('pending', 'running')" : "('pending')"
  const rows = await query<{ id: string }>(
    tx,
    `select id from strategy_execution where strategy_id = any($1::uuid[]) and status in ${statuses}
       and execution_type <> 'exit'`,
    [scheduleIds],
  )
  return rows.map(({ id }) => id)
}

/** Counts schedules in a statement after the lock, because the locking one does not see rows inserted meanwhile. */
export async function countSchedules(tx: Tx, userId: string): Promise<{ all: number; active: number }> {
  const text = `select count(*)::integer as all, (count(*) filter (where status = 'active'))::integer as active
    from strategy where user_id = $1`
  const [row] = await query<{ all: number; active: number }>(tx, text, [userId])
  return row ?? { all: 0, active: 0 }
}

export async function insertManualRun(
  tx: Tx,
  { id, row, authority, at }: { id: string; row: ScheduleRow; authority: object; at: Date },
): Promise<void> {
  const [counted] = await query<{ number: number }>(
    tx,
    'update strategy set execution_count = execution_count + 1 where id = $1 returning execution_count as number',
    [row.id],
  )
  await query(
    tx,
    `insert into strategy_execution (id, strategy_id, user_id, version, number, execution_type, mode, status, authority, created_at)
     values ($1, $2, $3, $4, $5, 'manual', $6, 'pending', $7, $8)`,
    [id, row.id, row.user_id, row.version, counted?.number, row.mode, jsonText(authority), at],
  )
}
