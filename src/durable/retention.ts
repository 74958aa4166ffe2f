import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { query } from '#store/query.ts'
import type { MaintenanceJob } from './maintenance.ts'

const dayMs = 86_400_000
const eventRetentionMs = 7 * dayMs
/** Stored replies without a task; idempotency keys of tasks never expire. */
const replyRetentionMs = 30 * dayMs
const batchMax = 1_000

type RetentionDeps = { pool: pg.Pool; clock: Clock }
type Deletion = {
  name: string
  ageMs: number
  /** Deletes at most `batchMax` rows older than $1, by an index, and returns them. */
  text: string
}

const deletions: readonly Deletion[] = [
  {
    name: 'retention of events',
    ageMs: eventRetentionMs,
    text: `delete from user_event where (user_id, seq) in
      (select user_id, seq from user_event where at < $1 order by at limit ${batchMax}) returning seq`,
  },
  {
    name: 'retention of replies',
    ageMs: replyRetentionMs,
    text: `delete from idempotency where (user_id, key) in
      (select user_id, key from idempotency where task_id is null and at < $1 order by at limit ${batchMax}) returning key`,
  },
  {
    name: 'retention of instances',
    ageMs: dayMs,
    text: `delete from instance where id in (select id from instance where seen_at < $1 limit ${batchMax}) returning id`,
  },
]

/** Deletes what is older than its retention. */
export const retentionJobs = ({ pool, clock }: RetentionDeps): MaintenanceJob[] =>
  deletions.map(({ name, ageMs, text }) => ({
    name,
    runBatch: async () => (await query(pool, text, [later(clock.now(), -ageMs)])).length === batchMax,
  }))
