import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { minIdAt } from '#kernel/id.ts'
import { type Queryable, query } from '#store/query.ts'

/**
 * The events of a turn are deleted by age, because its row has the answer and the last event. The ids of turns contain
 * their time, so the primary key finds the oldest events; no turn runs so long that its events are deleted before it
 * ends.
 */

const eventsMs = 90 * 86_400_000
const batchMax = 1_000

export const eventDeletionSql = `delete from chat_event where (chat_id, seq) in
  (select chat_id, seq from chat_event where chat_id < $1 order by chat_id, seq limit $2) returning seq`

export const chatRetentionJob = (pool: Queryable, clock: Clock): MaintenanceJob => ({
  name: 'retention of chat events',
  async runBatch() {
    const before = minIdAt(later(clock.now(), -eventsMs))
    return (await query(pool, eventDeletionSql, [before, batchMax])).length === batchMax
  },
})
