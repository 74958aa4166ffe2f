import { later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import type { Static } from '#kernel/contract/schema.ts'
import { fixedPointOne, fromFixedPoint, subtractDecimals, toFixedPoint } from '#kernel/money/money.ts'
import { type Queryable, query } from '#store/query.ts'
import type { SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { phaseOf } from './bracket.ts'
import type { fillsQuery } from './contract-schemas.ts'
import { baseLeg } from './ingest.ts'
import type { MarketKind } from './markets.ts'
import { venueName } from './order-store.ts'

/** The fill and order history from the gateway's record of the account, newest first. */

export type HistoryInput = Static<ReturnType<typeof fillsQuery>>
/** A request for history; `symbol` is the market's name in its section, undefined means every market. */
export type HistoryQuery = {
  userId: string
  kind: MarketKind
  symbol: string | undefined
  before: string | undefined
  limit: number
}

export const historyLimitDefault = 50

/** Returns the profit less the fee; null unless the fee was taken in USDC. */
const netOf = (gross: string | null, fee: string, feeToken: string): string | null =>
  gross === null || (feeToken !== 'USDC' && compareDecimals(fee, '0') !== 0)
    ? null
    : subtractDecimals(gross, fee)

type FillRecord = {
  trade_id: string
  order_id: string
  cloid: string | null
  symbol: string
  base: string | null
  is_buy: boolean
  size: string
  price: string
  fee: string
  fee_token: string
  cause: 'order' | 'liquidation' | 'venue'
  realized_pnl: string | null
  at_ms: string
  task_id: string | null
  leg: string | null
}

/**
 * Selects a page of fills by time and trade id, so that fills which arrive between two pages shift nothing. An
 * absent filter is also absent from the SQL, so that the planner uses the index of the present filters.
 */
const fillsPage = ({ symbol }: { symbol: boolean }) => `
  select f.trade_id::text, f.order_id::text, f.cloid, f.symbol, f.base, f.signed_size > 0 as is_buy,
    trim_scale(abs(f.signed_size))::text as size, trim_scale(f.price)::text as price,
    trim_scale(f.fee)::text as fee, f.fee_token, f.cause, trim_scale(f.realized_pnl)::text as realized_pnl,
    f.at_ms::text, o.task_id::text, o.leg
  from venue_fill f left join venue_order o on o.cloid = f.cloid and o.user_id = f.user_id
  where f.user_id = $1 and f.venue = $2 and (f.base is null) = $3
    ${symbol ? 'and f.symbol = $7' : ''}
    and (f.at_ms, f.trade_id) < (coalesce($4::bigint, 9223372036854775807), coalesce($5::bigint, 0))
  order by f.at_ms desc, f.trade_id desc limit $6`

const fillView = (row: FillRecord, asset: string) => ({
  fill_id: row.trade_id,
  order_id: row.order_id,
  cloid: row.cloid,
  task_id: row.task_id,
  leg: baseLeg(row.leg),
  asset,
  side: row.is_buy ? ('buy' as const) : ('sell' as const),
  size: row.size,
  price: row.price,
  fee: row.fee,
  fee_token: row.fee_token,
  realized_pnl_gross_usd: row.realized_pnl,
  realized_pnl_net_usd: netOf(row.realized_pnl, row.fee, row.fee_token),
  cause: row.cause,
  at: new Date(Number(row.at_ms)).toISOString(),
})

const spotNames = (markets: readonly SpotMarket[]) =>
  new Map(markets.map(({ coin, symbol }) => [coin, symbol]))

export async function fillHistory(
  db: Queryable,
  { userId, kind, symbol, before, limit }: HistoryQuery,
  spots: readonly SpotMarket[] = [],
) {
  const coin = kind === 'spot' ? (spots.find((each) => each.symbol === symbol)?.coin ?? symbol) : symbol
  const [atMs = null, tradeId = null] = before?.split('-') ?? []
  const values = [userId, venueName, kind === 'perp', atMs, tradeId, limit + 1]
  const rows = await (coin === undefined
    ? query<FillRecord>(db, fillsPage({ symbol: false }), values)
    : query<FillRecord>(db, fillsPage({ symbol: true }), [...values, coin]))
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const names = spotNames(spots)
  return {
    fills: page.map((row) => fillView(row, names.get(row.symbol) ?? row.base ?? row.symbol)),
    next_before: rows.length > limit && last ? `${last.at_ms}-${last.trade_id}` : null,
  }
}

type OrderRecord = {
  cloid: string
  task_id: string
  leg: string
  symbol: string
  at: Date
  venue_status: string | null
  ended_at: Date | null
  is_buy: boolean | null
  size: string | null
  price: string | null
  trigger_price: string | null
  reduce_only: boolean | null
  order_id: string | null
  filled_size: string
  worth: string
  fee: string
  fee_token: string | null
  realized_pnl: string | null
  task_outcome: string | null
}

const ordersPage = ({ symbol }: { symbol: boolean }) => `
  with found as (
    select o.* from venue_order o
    where o.user_id = $1 and o.venue = $2 and o.market = $3
      ${symbol ? 'and o.symbol = $7' : ''}
      and (o.at, o.cloid) < (coalesce($4::timestamptz, 'infinity'), coalesce($5::text, ''))
    order by o.at desc, o.cloid desc limit $6),
  page as (select found.*, t.outcome, t.result from found left join task t on t.id = found.task_id)
  select p.cloid, p.task_id::text, p.leg, p.symbol, p.at, p.status as venue_status, p.ended_at, p.is_buy,
    trim_scale(p.size)::text as size, trim_scale(p.price)::text as price,
    trim_scale(p.trigger_price)::text as trigger_price, p.reduce_only, p.outcome as task_outcome,
    coalesce(f.order_id::text, (select l ->> 'order_id' from jsonb_array_elements(p.result -> 'legs') l
       where l ->> 'role' = p.leg limit 1)) as order_id,
    coalesce(trim_scale(f.size), 0)::text as filled_size, coalesce(trim_scale(f.worth), 0)::text as worth,
    coalesce(trim_scale(f.fee), 0)::text as fee, f.fee_token, trim_scale(f.realized_pnl)::text as realized_pnl
  from page p left join lateral (
    select max(order_id) as order_id, sum(abs(signed_size)) as size, sum(abs(signed_size) * price) as worth,
      sum(fee) as fee, max(fee_token) as fee_token, sum(realized_pnl) as realized_pnl
    from venue_fill where cloid = p.cloid and user_id = p.user_id) f on true
  order by p.at desc, p.cloid desc`

/** Returns the status of an order; `unknown` if neither the venue nor the task has reported one. */
function statusOf({
  venue_status: venueStatus,
  filled_size: filled,
  size,
  task_outcome: outcome,
}: OrderRecord) {
  const phase = venueStatus === null ? undefined : phaseOf(venueStatus)
  const hasFills = compareDecimals(filled, '0') > 0
  if (phase === 'filled' || (size !== null && hasFills && compareDecimals(filled, size) >= 0))
    return 'filled' as const
  if (phase === 'cancelled') return 'cancelled' as const
  if (phase === 'rejected' || (venueStatus === null && !hasFills && outcome === 'not_executed'))
    return 'rejected' as const
  if (venueStatus === 'absent') return 'rejected' as const
  return outcome === null || outcome === 'unknown' ? ('unknown' as const) : ('open' as const)
}

const averageOf = ({ worth, filled_size: size }: OrderRecord): string | null =>
  compareDecimals(size, '0') === 0
    ? null
    : fromFixedPoint((toFixedPoint(worth) * fixedPointOne) / toFixedPoint(size))

const orderRecordView = (row: OrderRecord) => ({
  order_id: row.order_id,
  cloid: row.cloid,
  task_id: row.task_id,
  leg: baseLeg(row.leg) ?? row.leg,
  asset: row.symbol,
  side: row.is_buy === null ? null : row.is_buy ? ('buy' as const) : ('sell' as const),
  size: row.size,
  limit_price: row.price,
  trigger_price: row.trigger_price,
  reduce_only: row.reduce_only,
  status: statusOf(row),
  venue_status: row.venue_status,
  filled_size: row.filled_size,
  avg_price: averageOf(row),
  fee: row.fee,
  fee_token: row.fee_token,
  realized_pnl_gross_usd: row.realized_pnl,
  realized_pnl_net_usd: netOf(row.realized_pnl, row.fee, row.fee_token ?? 'USDC'),
  placed_at: row.at.toISOString(),
  ended_at: row.ended_at?.toISOString() ?? null,
})

export async function orderHistory(db: Queryable, { userId, kind, symbol, before, limit }: HistoryQuery) {
  const [atMs, cloid = null] = before?.split('-') ?? []
  const at = atMs === undefined ? null : later(new Date(0), Number(atMs))
  const values = [userId, venueName, kind, at, cloid, limit + 1]
  const rows = await (symbol === undefined
    ? query<OrderRecord>(db, ordersPage({ symbol: false }), values)
    : query<OrderRecord>(db, ordersPage({ symbol: true }), [...values, symbol]))
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    orders: page.map(orderRecordView),
    next_before: rows.length > limit && last ? `${last.at.getTime()}-${last.cloid}` : null,
  }
}
