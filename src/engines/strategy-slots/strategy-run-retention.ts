import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { minIdAt } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'

/**
 * Deletes the events and decisions of strategy runs after a quarter of a year, and the runs with their fills and the
 * worth of accounts after a year. The ids of runs contain their time, so primary keys find the oldest ones. Versions
 * are deleted that are not the newest of their strategy, that no run names any more and that no account follows.
 * Strategies are never deleted, and with them one account for each mode and what their orders were worth together.
 */

/** The newest versions that a strategy keeps whether or not a run names them. */
export const versionsMax = 20
/** The SQL condition that no run names the version `v`, and that no account follows it. */
export const isUnusedSql = `not exists (
    select from strategy_execution e where e.strategy_id = v.strategy_id and e.version = v.version)
  and not exists (select from strategy_account a where a.strategy_id = v.strategy_id and a.version = v.version)`

const dayMs = 86_400_000
const batchMax = 1_000

const eventDeletionSql = `delete from strategy_event where (execution_id, seq) in
  (select execution_id, seq from strategy_event where execution_id < $1 order by execution_id, seq limit $2) returning seq`
const decisionDeletionSql = `delete from strategy_decision where (execution_id, seq) in
  (select execution_id, seq from strategy_decision where execution_id < $1 order by execution_id, seq limit $2) returning seq`
/** Each account has an index by time of what belongs to it. */
const fillDeletionSql = `delete from strategy_fill where (strategy_id, mode, fill_id) in (
  select old.strategy_id, old.mode, old.fill_id from strategy_account a cross join lateral (
    select f.strategy_id, f.mode, f.fill_id from strategy_fill f
    where f.strategy_id = a.strategy_id and f.mode = a.mode and f.at < $1 order by f.at limit $2) old
  limit $2) returning fill_id`
const equityDeletionSql = `delete from strategy_equity where (strategy_id, mode, at) in (
  select old.strategy_id, old.mode, old.at from strategy_account a cross join lateral (
    select e.strategy_id, e.mode, e.at from strategy_equity e
    where e.strategy_id = a.strategy_id and e.mode = a.mode and e.at < $1 order by e.at limit $2) old
  limit $2) returning at`
const executionDeletionSql = `delete from strategy_execution where id in
  (select id from strategy_execution where id < $1 and ended_at is not null order by id limit $2) returning strategy_id, version`

const versionDeletionSql = `delete from strategy_version v using strategy s
  where s.id = v.strategy_id and v.version <= s.version - ${versionsMax}
    and (v.strategy_id, v.version) in (select * from unnest($1::uuid[], $2::integer[]))
    and ${isUnusedSql}`

type Named = { strategy_id: string; version: number }

export const strategyRetentionJobs = (pool: Queryable, clock: Clock): MaintenanceJob[] => {
  const before = (ageMs: number) => minIdAt(later(clock.now(), -ageMs))
  const deletion = (name: string, sql: string, ofAge: () => unknown): MaintenanceJob => ({
    name: `retention of ${name} of strategies`,
    runBatch: async () => (await query(pool, sql, [ofAge(), batchMax])).length === batchMax,
  })
  const yearAgo = () => later(clock.now(), -365 * dayMs)
  return [
    deletion('events', eventDeletionSql, () => before(90 * dayMs)),
    deletion('decisions', decisionDeletionSql, () => before(90 * dayMs)),
    deletion('fills', fillDeletionSql, yearAgo),
    deletion('worth', equityDeletionSql, yearAgo),
    {
      name: 'retention of executions of strategies',
      async runBatch() {
        const ended = await query<Named>(pool, executionDeletionSql, [before(365 * dayMs), batchMax])
        // A statement does not see what its own parts delete, so another one finds the versions without a run.
        const versions = [ended.map((each) => each.strategy_id), ended.map(({ version }) => version)]
        if (ended.length > 0) await query(pool, versionDeletionSql, versions)
        return ended.length === batchMax
      },
    },
  ]
}
