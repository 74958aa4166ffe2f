import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { minIdAt } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'

/**
 * Deletes the events of strategy runs after a quarter of a year, and the runs after a year. Their ids contain their
 * time, so primary keys find the oldest ones; strategies and their versions are never deleted.
 */

const dayMs = 86_400_000
const batchMax = 1_000

const eventDeletionSql = `delete from strategy_event where (execution_id, seq) in
  (select execution_id, seq from strategy_event where execution_id < $1 order by execution_id, seq limit $2) returning seq`
const executionDeletionSql = `delete from strategy_execution where id in
  (select id from strategy_execution where id < $1 and ended_at is not null order by id limit $2) returning id`

export const strategyRetentionJobs = (pool: Queryable, clock: Clock): MaintenanceJob[] => {
  const job = (name: string, ageMs: number, text: string): MaintenanceJob => ({
    name,
    async runBatch() {
      const before = minIdAt(later(clock.now(), -ageMs))
      return (await query(pool, text, [before, batchMax])).length === batchMax
    },
  })
  return [
    job('retention of events of strategies', 90 * dayMs, eventDeletionSql),
    job('retention of executions of strategies', 365 * dayMs, executionDeletionSql),
  ]
}
