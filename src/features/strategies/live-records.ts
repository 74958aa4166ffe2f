import { venueName } from '#engines/venue/records/order-store.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'

/** What the record of the venue's account says about the orders of one strategy: their fills, and those that are open. */

/** A fill of an order that a run of the strategy has placed. */
export type OwnFill = {
  fill_id: string
  execution_id: string
  task_id: string
  /** The order's role in its task: entry, close, tp or sl; a number says which of several it is. */
  leg: string
  asset: string
  is_buy: boolean
  size: string
  price: string
  fee_usd: string
  at_ms: number
  leverage: number
  is_cross: boolean
  stop: StoredExit | null
  target: StoredExit | null
  /** The reason of the decision that the order carries out. */
  reason: string | null
}
export type StoredExit = { price: string; isMarket: boolean }

type OwnQuery = { userId: string; strategyId: string }
type FillsQuery = OwnQuery & { assets: readonly string[]; sinceMs: number }

const fillsMax = 500

/**
 * Returns the fills that no account of the strategy has yet, oldest first: those that were imported, and those that a
 * task has seen before the import.
 */
export async function unappliedFills(
  db: Queryable,
  { userId, strategyId, assets, sinceMs }: FillsQuery,
): Promise<OwnFill[]> {
  const values = [userId, venueName, strategyId, sinceMs, assets]
  const rows = await query<OwnFill>(db, fillsSql, values)
  return rows.map((row) => ({ ...row, at_ms: Number(row.at_ms) }))
}

/** Returns up to when the record of an account has been compared with the venue, so that no older fill is missing. */
export async function comparedThroughMs(db: Queryable, userId: string): Promise<number> {
  const [row] = await query<{ at_ms: string }>(
    db,
    'select reconciled_through_ms::text as at_ms from venue_account where user_id = $1 and venue = $2',
    [userId, venueName],
  )
  return Number(row?.at_ms ?? 0)
}

/** $1 is the user, $2 the venue, $3 the strategy, $4 the time of the oldest fill, and $5 the markets. */
const fillsSql = `
with unsettled as (
    select * from venue_order where user_id = $1 and venue = $2 and market = 'perp' and symbol = any($5::text[])
      and ended_at is null
    union all
    select * from venue_order where user_id = $1 and venue = $2 and market = 'perp' and symbol = any($5::text[])
      and ended_at > to_timestamp($4::bigint / 1000.0)),
  imported as (
    select f.trade_id, e.id as execution_id, t.id as task_id, o.leg, f.symbol as asset, f.signed_size > 0 as is_buy,
      abs(f.signed_size) as size, f.price, f.fee, f.at_ms
    from venue_fill f join venue_order o on o.cloid = f.cloid and o.user_id = f.user_id
      join task t on t.id = o.task_id join strategy_execution e on e.id = t.parent_id
    where f.user_id = $1 and f.venue = $2 and f.base is null and f.at_ms > $4 and e.strategy_id = $3),
  seen as (
    select distinct on (trade_id) (fill ->> 'fill_id')::bigint as trade_id, e.id as execution_id, t.id as task_id,
      case when t.kind = 'perp_open' and (fill ->> 'side' = 'buy') = (t.data ->> 'is_buy')::boolean then 'entry'
        else 'close' end as leg,
      t.data ->> 'symbol' as asset, fill ->> 'side' = 'buy' as is_buy, (fill ->> 'size')::numeric as size,
      (fill ->> 'price')::numeric as price, (fill ->> 'fee')::numeric as fee,
      (extract(epoch from (fill ->> 'at')::timestamptz) * 1000)::bigint as at_ms
    from unsettled o join task t on t.id = o.task_id join strategy_execution e on e.id = t.parent_id,
      jsonb_array_elements(case jsonb_typeof(t.data -> 'fills') when 'array' then t.data -> 'fills' end) fill
    where e.strategy_id = $3),
  found as (
    select * from imported
    union all
    select * from seen s where not exists (
      select from venue_fill where user_id = $1 and venue = $2 and trade_id = s.trade_id))
select f.trade_id::text as fill_id, f.execution_id, f.task_id, f.leg, f.asset, f.is_buy, trim_scale(f.size)::text as size,
  trim_scale(f.price)::text as price, trim_scale(f.fee)::text as fee_usd, f.at_ms,
  coalesce((t.input ->> 'leverage')::integer, 1) as leverage, coalesce((t.input ->> 'is_cross')::boolean, false) as is_cross,
  nullif(t.data -> 'sl', 'null'::jsonb) as stop, nullif(t.data -> 'tp', 'null'::jsonb) as target,
  (select d.decision::jsonb ->> 'reason' from strategy_decision d
    where d.execution_id = f.execution_id and d.decision::jsonb ->> 'action' <> 'hold' order by d.seq desc limit 1) as reason
from found f join task t on t.id = f.task_id
where not exists (select from strategy_fill s where s.strategy_id = $3 and s.mode = 'live' and s.fill_id = f.trade_id)
order by f.at_ms, f.trade_id limit ${fillsMax}`

/** Returns the price of a liquidation of a market since a time, or undefined if the venue has liquidated nothing of it. */
export async function liquidationSince(
  db: Queryable,
  { userId, asset, sinceMs }: { userId: string; asset: string; sinceMs: number },
): Promise<string | undefined> {
  const [row] = await query<{ price: string }>(
    db,
    `select trim_scale(price)::text as price from venue_fill
     where user_id = $1 and venue = $2 and symbol = $3 and at_ms >= $4 and cause = 'liquidation'
     order by at_ms desc, trade_id desc limit 1`,
    [userId, venueName, asset, sinceMs],
  )
  return row?.price
}

/**
 * An open order of a strategy, by the record: an exit, or an entry that rests. The record of an entry that was filled at once
 * may be closed much later.
 */
export type OwnOrder = {
  cloid: string
  task_id: string
  leg: string
  asset: string
  is_buy: boolean
  size: string
  price: string
  trigger_price: string | null
  reduce_only: boolean
  at: Date
}

export const openOrdersOf = (
  db: Queryable,
  { userId, strategyId, assets }: OwnQuery & { assets: readonly string[] },
): Promise<OwnOrder[]> =>
  query<OwnOrder>(
    db,
    `select o.cloid, o.task_id, o.leg, o.symbol as asset, o.is_buy, trim_scale(o.size)::text as size,
       trim_scale(o.price)::text as price, trim_scale(o.trigger_price)::text as trigger_price, o.reduce_only, o.at
     from venue_order o join task t on t.id = o.task_id join strategy_execution e on e.id = t.parent_id
     where o.user_id = $1 and o.venue = $2 and o.market = 'perp' and o.symbol = any($3::text[]) and o.ended_at is null
       and e.strategy_id = $4
       and (o.reduce_only or o.trigger_price is not null or coalesce((t.result ->> 'resting')::boolean, false))`,
    [userId, venueName, assets, strategyId],
  )

/** How many stops a strategy has placed in a market so far. */
export async function countStops(
  db: Queryable,
  { userId, strategyId, asset }: OwnQuery & { asset: string },
): Promise<number> {
  const [row] = await query<{ count: number }>(
    db,
    `select count(*)::integer as count from venue_order o join task t on t.id = o.task_id
       join strategy_execution e on e.id = t.parent_id
     where o.user_id = $1 and o.venue = $2 and o.market = 'perp' and o.symbol = $3 and o.leg like 'sl%'
       and e.strategy_id = $4`,
    [userId, venueName, asset, strategyId],
  )
  return row?.count ?? 0
}

export type ChildTask = {
  id: string
  kind: string
  status: 'pending' | 'running' | 'completed' | 'failed' | 'cancelled'
  outcome: 'executed' | 'partial' | 'not_executed' | 'unknown' | null
  error: { code?: string; message?: string; retryable?: boolean } | null
}
export const isOpen = ({ status }: Pick<ChildTask, 'status'>): boolean =>
  status === 'pending' || status === 'running'

export async function readTasks(db: Queryable, ids: readonly string[]): Promise<Map<string, ChildTask>> {
  if (ids.length === 0) return new Map()
  const text = 'select id, kind, status, outcome, error from task where id = any($1::uuid[])'
  const rows = await query<ChildTask>(db, text, [ids])
  return new Map(rows.map((row) => [row.id, row]))
}

const orderKinds = ['perp_open', 'perp_close', 'perp_tp_sl'] as const

/** The markets in which a task of a strategy that places orders has not ended. */
export async function marketsOfOpenTasks(
  db: Queryable,
  { userId, strategyId }: OwnQuery,
  kinds: readonly (typeof orderKinds)[number][] = orderKinds,
): Promise<Set<string>> {
  const rows = await query<{ asset: string }>(
    db,
    `select distinct t.data ->> 'symbol' as asset from task_queue q join task t on t.id = q.task_id
       join strategy_execution e on e.id = t.parent_id
     where q.user_id = $1 and t.kind = any($3::text[]) and e.strategy_id = $2 and t.data ->> 'symbol' is not null`,
    [userId, strategyId, kinds],
  )
  return new Set(rows.map(({ asset }) => asset))
}

/** The orders of the last run of a completed strategy still rest; a draft opens nothing. */
export const isStoppedSql = (status: string): string => `${status} not in ('active', 'completed')`

export async function isStopped(db: Queryable, strategyId: string): Promise<boolean> {
  const text = `select id from strategy where id = $1 and ${isStoppedSql('status')}`
  return (await query(db, text, [strategyId])).length > 0
}

/** Whether a run, or a task that it has started, has not ended. */
export async function isActing(db: Queryable, executionId: string): Promise<boolean> {
  const text = `select q.task_id from task_queue q join task t on t.id = q.task_id
     where t.id = $1 or t.parent_id = $1 limit 1`
  return (await query(db, text, [executionId])).length > 0
}

/**
 * Whether an exit of the strategy began after a run that has sent no order. Such a run does nothing: the exit waits for
 * runs whose decision it finds. A run looks here after the commit of its decision, and an exit looks for decisions after
 * the commit of its own row, so at least one of the two finds the other. What is done between runs also has the last run
 * as its parent, and opens nothing.
 */
export async function isBeforeExit(db: Queryable, executionId: string): Promise<boolean> {
  const text = `select x.id from strategy_execution e
       join strategy_execution x on x.strategy_id = e.strategy_id and x.mode = e.mode and x.number > e.number
     where e.id = $1 and x.execution_type = 'exit' and not exists (
       select from task where parent_id = $1 and kind in ('perp_open', 'perp_close')) limit 1`
  return (await query(db, text, [executionId])).length > 0
}

/** Returns the task that an earlier call under the same key has started. */
export async function taskOfKey(db: Queryable, userId: string, key: string): Promise<string | undefined> {
  const text = 'select task_id from idempotency where user_id = $1 and key = $2'
  const [row] = await query<{ task_id: string | null }>(db, text, [userId, key])
  return row?.task_id ?? undefined
}

export async function spentMicros(db: Queryable, strategyId: string): Promise<bigint> {
  const text = 'select strategy_spent($1)::text as micros'
  const [row] = await query<{ micros: string }>(db, text, [strategyId])
  return BigInt(row?.micros ?? 0)
}

/** Counts what the ended orders of a strategy were worth against its budget, in place of what they reserved. */
export const settleSpend = (tx: Tx, strategyId: string, at: Date) =>
  query(tx, 'select strategy_spend_settle($1, $2)', [strategyId, at])

/** The run whose name the orders between runs bear, and the access of its version. */
export type LastRun = { execution_id: string; started_at: Date | null; agent_id: string; scheme: string }

export async function lastRunOf(db: Queryable, strategyId: string): Promise<LastRun | undefined> {
  const [row] = await query<LastRun>(
    db,
    `select e.id as execution_id, e.started_at, a.authority ->> 'agentId' as agent_id, a.authority ->> 'scheme' as scheme
     from strategy_execution e
       join strategy_version v on v.strategy_id = e.strategy_id and v.version = e.version
       cross join lateral (select coalesce(e.authority, v.authority) as authority) a
     where e.strategy_id = $1 and e.mode = 'live' and e.started_at is not null and a.authority is not null
     order by e.number desc limit 1`,
    [strategyId],
  )
  return row
}

export const startedAtOf = async (db: Queryable, executionId: string): Promise<Date | null> => {
  const text = 'select started_at from strategy_execution where id = $1'
  const [row] = await query<{ started_at: Date | null }>(db, text, [executionId])
  return row?.started_at ?? null
}
