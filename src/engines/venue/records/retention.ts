import type { MaintenanceJob } from '#durable/upkeep/maintenance.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { type Queryable, query } from '#store/query.ts'
import { venueName } from './order-store.ts'

/** Deletes old records of the venue accounts, account by account, once a day. */

const accountsMax = 20
const rowsMax = 1_000
const passName = 'retention of venue records'
const restSeconds = 86_400

/**
 * Deletes one batch for some accounts after the stored position: only fills and entries up to the baseline,
 * which has their sum. Entries with a reason record what was adjusted, and stay; an open order keeps its fills.
 */
const batchSql = `
with accounts as materialized (
    select user_id, venue, least(baseline_at_ms, $3::bigint) as until_ms from venue_account
    where venue = $2 and user_id > $4::uuid order by user_id limit ${accountsMax}),
  fills as (delete from venue_fill where ctid = any(array(
    select f.ctid from accounts a cross join lateral (select ctid from venue_fill
      where user_id = a.user_id and venue = a.venue and at_ms <= a.until_ms and not exists (
        select from venue_order o where o.cloid = venue_fill.cloid and o.ended_at is null) order by at_ms limit ${rowsMax}) f
    limit ${rowsMax})) returning 1),
  entries as (delete from venue_ledger_entry where ctid = any(array(
    select e.ctid from accounts a cross join lateral (select ctid from venue_ledger_entry
      where user_id = a.user_id and venue = a.venue and at_ms <= a.until_ms and reason is null order by at_ms limit ${rowsMax}) e
    limit ${rowsMax})) returning 1),
  orders as (delete from venue_order where ctid = any(array(
    select o.ctid from accounts a cross join unnest(array['perp', 'spot']) as m (market) cross join lateral (
      select ctid from venue_order where user_id = a.user_id and venue = a.venue and market = m.market
        and at < to_timestamp($3::bigint / 1000.0) and ended_at is not null order by at limit ${rowsMax}) o
    limit ${rowsMax})) returning 1),
  full_batch as (select greatest((select count(*) from fills), (select count(*) from entries), (select count(*) from orders))
    = ${rowsMax} as is_full),
  moved as (update maintenance_position set position = case
      when is_full then position when (select count(*) from accounts) < ${accountsMax} then ''
      else (select user_id::text from accounts order by user_id desc limit 1) end, at = clock_timestamp()
    from full_batch where name = $1)
select is_full or (select count(*) from accounts) = ${accountsMax} as has_more from full_batch`

async function positionOf(db: Queryable): Promise<string | undefined> {
  const [row] = await query<{ position: string }>(
    db,
    `insert into maintenance_position as p (name, position) values ($1, $2)
     on conflict (name) do update set position = case p.position when '' then $2 else p.position end
       where p.position <> '' or p.at < clock_timestamp() - make_interval(secs => $3)
     returning position`,
    [passName, '00000000-0000-0000-0000-000000000000', restSeconds],
  )
  return row?.position
}

export const venueRetentionJob = (db: Queryable, clock: Clock, ageMs: number): MaintenanceJob => ({
  name: passName,
  async runBatch() {
    const position = await positionOf(db)
    if (position === undefined) return false
    const beforeMs = later(clock.now(), -ageMs).getTime()
    const [row] = await query<{ has_more: boolean }>(db, batchSql, [passName, venueName, beforeMs, position])
    return row?.has_more ?? false
  },
})
