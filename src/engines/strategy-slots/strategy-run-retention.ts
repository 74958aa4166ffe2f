import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { minIdAt } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'

/**
 * Deletes the events of strategy runs after a quarter of a year, and the runs after a year. Their ids contain their
 * time, so primary keys find the oldest ones. Versions are deleted that are not the newest of their strategy and that
 * no run names any more; strategies are never deleted.
 */

/** The newest versions that a strategy keeps whether or not a run names them. */
export const versionsMax = 20

const dayMs = 86_400_000
const batchMax = 1_000

const eventDeletionSql = `delete from strategy_event where (execution_id, seq) in
  (select execution_id, seq from strategy_event where execution_id < $1 order by execution_id, seq limit $2) returning seq`
const executionDeletionSql = `delete from strategy_execution where id in
  (select id from strategy_execution where id < $1 and ended_at is not null order by id limit $2) returning strategy_id, version`

const versionDeletionSql = `delete from strategy_version v using strategy s
  where s.id = v.strategy_id and v.version <= s.version - ${versionsMax}
    and (v.strategy_id, v.version) in (select * from unnest($1::uuid[], $2::integer[]))
    and not exists (select from strategy_execution e where e.strategy_id = v.strategy_id and e.version = v.version)`

type Named = { strategy_id: string; version: number }

export const strategyRetentionJobs = (pool: Queryable, clock: Clock): MaintenanceJob[] => {
  const before = (ageMs: number) => minIdAt(later(clock.now(), -ageMs))
  return [
    {
      name: 'retention of events of strategies',
      runBatch: async () =>
        (await query(pool, eventDeletionSql, [before(90 * dayMs), batchMax])).length === batchMax,
    },
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
