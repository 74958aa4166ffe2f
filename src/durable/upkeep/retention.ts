import type pg from 'pg'
import { type Clock, later } from '#kernel/clock.ts'
import { query } from '#store/query.ts'
import type { MaintenanceJob } from './maintenance.ts'

export const dayMs = 86_400_000
/** The most rows that one statement deletes, so that no statement runs long. */
const batchMax = 1_000

export type Deletion = {
  name: string
  ageMs: number
  /** The SQL that deletes at most $2 rows older than $1, by an index, and returns the deleted rows. */
  text: string
}

export const logDeletions = ({
  eventsMs,
  repliesMs,
}: {
  eventsMs: number
  repliesMs: number
}): Deletion[] => [
  {
    name: 'retention of events',
    ageMs: eventsMs,
    text: `delete from user_event where (user_id, seq) in
      (select user_id, seq from user_event where at < $1 order by at limit $2) returning seq`,
  },
  {
    // Only keys of acts are deleted here: the idempotency keys of tasks are deleted with their tasks.
    name: 'retention of replies',
    ageMs: repliesMs,
    text: `delete from idempotency where (user_id, key) in
      (select user_id, key from idempotency where task_id is null and at < $1 order by at limit $2) returning key`,
  },
]

/**
 * A market without a lease for a day has no open orders, or no gateway. There is no index, which every renewal
 * of a lease would have to change: the table only has the markets of one day.
 */
export const marketLeaseDeletion: Deletion = {
  name: 'retention of market leases',
  ageMs: dayMs,
  text: `delete from market_lease where market in
    (select market from market_lease where lease_until < $1 limit $2 for update skip locked) returning market`,
}

/** How long heartbeats of a stopped gateway are stored; one that comes back later compares the chains again. */
export const witnessAgeMs = 30 * dayMs
export const witnessDeletion: Deletion = {
  name: 'retention of heartbeats',
  ageMs: witnessAgeMs,
  text: `delete from database_witness where id in
    (select id from database_witness where seen_at < $1 order by seen_at limit $2) returning id`,
}

export const deletionJobs = (
  { pool, clock }: { pool: pg.Pool; clock: Clock },
  deletions: readonly Deletion[],
): MaintenanceJob[] =>
  deletions.map(({ name, ageMs, text }) => ({
    name,
    runBatch: async () =>
      (await query(pool, text, [later(clock.now(), -ageMs), batchMax])).length === batchMax,
  }))
