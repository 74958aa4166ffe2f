import type { JsonObject } from '#kernel/wire/json.ts'
import { type Queryable, query } from '#store/query.ts'
import type { HoldReason } from './money-hold.ts'

/**
 * The statement that reads how far a database has come: its timeline and position in the write-ahead log, its last
 * heartbeat, and the money on hold.
 */

/** Which facts the server shows: the role may lack access to a fact, and a managed service may not have it. */
export type ServerFacts = { system: boolean; timeline: boolean; lsn: boolean }
export type TimeRow = {
  beat: string | number | null
  system: string | null
  timeline: number | null
  lsn: string | null
  storedLsn: string | null
  generation: number
  /** The last moment that the database has a record of; null if the database was never used. */
  point: Date | null
  holds: StoredHold[]
}
type StoredHold = {
  scope: string
  reason: HoldReason
  since: string
  detail: JsonObject
  point: string | null
  compared_at: string | null
}

export const factQueries: Record<keyof ServerFacts, string> = {
  system: 'select system_identifier from pg_control_system()',
  timeline: 'select pg_walfile_name(pg_current_wal_lsn())',
  lsn: 'select pg_current_wal_flush_lsn()',
}

/** The SQL of the server's facts. The position `lsn` is one that has reached the disk, so it never goes back. */
export const factColumns = ({ system, timeline, lsn }: ServerFacts) => ({
  system: system ? '(select system_identifier::text from pg_control_system())' : 'null::text',
  timeline: timeline
    ? `('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer`
    : 'null::integer',
  lsn: lsn ? 'pg_current_wal_flush_lsn()' : 'null::pg_lsn',
})

/** The last heartbeat in the database or, from before there were heartbeats, its newest task's last change. */
const pointSql = `coalesce((select max(seen_at) from database_witness),
    (select updated_at from task order by id desc limit 1), (select max(created_at) from app_user))`

export async function readPoint(db: Queryable): Promise<Date | null> {
  const [row] = await query<{ point: Date | null }>(db, `select ${pointSql} as point`)
  return row!.point
}

/** The columns of a `TimeRow` but `beat`. `timelineSeen` is a SQL parameter, `lsn` SQL of the stored position. */
export const timeColumns = (
  facts: ServerFacts,
  timelineSeen: string,
  lsn = factColumns(facts).lsn,
): string => {
  const { system, timeline } = factColumns(facts)
  return `${system} as system, ${timeline} as timeline, (${lsn} - '0/0'::pg_lsn)::text as lsn,
    (select (max(w.lsn) - '0/0'::pg_lsn)::text from database_witness w where w.timeline = ${timelineSeen}::integer) as "storedLsn",
    (select value::float8 from database_binding where key = 'time_generation') as generation,
    ${pointSql} as point,
    (select coalesce(jsonb_agg(to_jsonb(h)), '[]') from money_hold h) as holds`
}
