import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { minIdAt } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'

/** The events of runs are deleted by age, because the row of a run has its answer and its end. */

const eventsMs = 90 * 86_400_000
const batchMax = 1_000

const deletionSql = `delete from strategy_event where (execution_id, seq) in
  (select execution_id, seq from strategy_event where execution_id < $1 order by execution_id, seq limit $2)
  returning seq`

export const runRetentionJob = (pool: Queryable, clock: Clock): MaintenanceJob => ({
  name: 'retention of events of runs',
  async runBatch() {
    const before = minIdAt(later(clock.now(), -eventsMs))
    return (await query(pool, deletionSql, [before, batchMax])).length === batchMax
  },
})
