import type { MeasuredTrade } from '#features/predmkt/measured-trades.ts'
import { mulDiv } from '#kernel/money/money.ts'
import type { SettlementState, TakerFee } from '#kernel/money/prediction-views.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { PredictionFillRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'

/** The account's own legs of trades, as the venue lists them. Only a confirmed one is money or shares. */

const dollarUnits = 1_000_000n

export type NamedTrade = {
  trade: MeasuredTrade
  title: string
  protocol: string
  feeUnits: bigint
  /** Dollars without the fee. */
  cashUnits: bigint
}
type FeeOf = (fee: TakerFee | null, priceMicros: bigint, sizeUnits: bigint) => bigint

/** Adds what the venue's list of trades leaves out, from the order that the gateway signed. */
export function namedTrade(
  trade: MeasuredTrade,
  order: Pick<PredictionOrderRow, 'title' | 'protocol' | 'fee'>,
  feeOf: FeeOf,
): NamedTrade {
  const { role, side, feeRateBps, priceMicros, sizeUnits, netUnits } = trade
  const hasFee = role === 'taker' && feeRateBps !== '0'
  const feeUnits = hasFee ? feeOf(order.fee as TakerFee | null, priceMicros, sizeUnits) : 0n
  const listed = mulDiv(sizeUnits, priceMicros, dollarUnits, side === 'buy' ? 'up' : 'down')
  const measured = netUnits === null ? null : side === 'buy' ? netUnits - feeUnits : netUnits + feeUnits
  return { trade, title: order.title, protocol: order.protocol, feeUnits, cashUnits: measured ?? listed }
}

export type FillChange = { before: SettlementState | null; fill: PredictionFillRow }

/** Stores trades, and returns those whose state has changed. A final state does not change any more. */
export async function recordTrades(
  db: Queryable,
  { userId, venue }: AccountKey,
  trades: readonly NamedTrade[],
): Promise<FillChange[]> {
  const changes: FillChange[] = []
  for (const named of trades) {
    const change = await recordTrade(db, { userId, venue }, named)
    if (change) changes.push(change)
  }
  return changes
}

async function recordTrade(
  db: Queryable,
  { userId, venue }: AccountKey,
  { trade, title, protocol, feeUnits, cashUnits }: NamedTrade,
): Promise<FillChange | undefined> {
  const { side, sizeUnits, priceMicros } = trade
  const [row] = await query<PredictionFillRow & { before: SettlementState | null }>(
    db,
    `with earlier as (select settlement from prediction_fill
         where user_id = $3 and venue = $4 and trade_id = $1 and order_id = $2 for update)
     insert into prediction_fill as f (trade_id, order_id, user_id, venue, market_id, outcome_id, outcome, title,
       protocol, side, role, price, size, cash, fee, settlement, tx_hash, matched_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
     on conflict (user_id, venue, trade_id, order_id) do update set settlement = excluded.settlement,
       cash = excluded.cash, fee = excluded.fee,
       tx_hash = coalesce(excluded.tx_hash, f.tx_hash), updated_at = excluded.updated_at
     where f.settlement not in ('confirmed', 'failed') and f.settlement <> excluded.settlement
     returning f.*, (select settlement from earlier) as before`,
    [
      trade.tradeId,
      trade.orderId,
      userId,
      venue,
      trade.marketId,
      trade.outcomeId,
      trade.outcome,
      title,
      protocol,
      side,
      trade.role,
      priceMicros,
      String(sizeUnits),
      String(cashUnits),
      String(feeUnits),
      trade.settlement,
      trade.txHash,
      trade.matchedAt,
      trade.updatedAt,
    ],
  )
  if (!row) return undefined
  const { before, ...fill } = row
  return { before, fill }
}

export const fillsOfOrder = (db: Queryable, orderId: string): Promise<PredictionFillRow[]> =>
  fetchAll(
    db,
    builder.selectFrom('prediction_fill').selectAll().where('order_id', '=', orderId).orderBy('matched_at'),
  )

/** What the confirmed trades of an order have bought or sold. */
export async function settledOfOrder(db: Queryable, orderId: string): Promise<bigint> {
  const [row] = await query<{ units: string }>(
    db,
    `select coalesce(sum(size), 0) as units from prediction_fill
     where order_id = $1 and settlement = 'confirmed'`,
    [orderId],
  )
  return BigInt(row?.units ?? 0)
}

export const recentFills = (
  db: Queryable,
  { userId, venue }: AccountKey,
  limit: number,
): Promise<PredictionFillRow[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('prediction_fill')
      .selectAll()
      .where('user_id', '=', userId)
      .where('venue', '=', venue)
      .orderBy('matched_at', 'desc')
      .orderBy('trade_id')
      .limit(limit),
  )

export type FillSums = {
  outcome_id: string
  market_id: string
  outcome: string
  title: string
  protocol: string
  bought: string
  bought_cash: string
  sold: string
  sold_cash: string
  unsettled_buy: string
  unsettled_sell: string
}

/** Sums per outcome over all fills; only confirmed ones are bought or sold. */
export const fillSums = (db: Queryable, { userId, venue }: AccountKey): Promise<FillSums[]> =>
  query(
    db,
    `select outcome_id, max(market_id) as market_id, max(outcome) as outcome, max(title) as title,
       max(protocol) as protocol,
       coalesce(sum(size) filter (where side = 'buy' and settlement = 'confirmed'), 0) as bought,
       coalesce(sum(cash + fee) filter (where side = 'buy' and settlement = 'confirmed'), 0) as bought_cash,
       coalesce(sum(size) filter (where side = 'sell' and settlement = 'confirmed'), 0) as sold,
       coalesce(sum(cash - fee) filter (where side = 'sell' and settlement = 'confirmed'), 0) as sold_cash,
       coalesce(sum(size) filter (where side = 'buy' and settlement not in ('confirmed', 'failed')), 0) as unsettled_buy,
       coalesce(sum(size) filter (where side = 'sell' and settlement not in ('confirmed', 'failed')), 0) as unsettled_sell
     from prediction_fill where user_id = $1 and venue = $2 group by outcome_id`,
    [userId, venue],
  )

/** The trades among these whose state is final already. */
export async function finalTradeIds(
  db: Queryable,
  { userId, venue }: AccountKey,
  tradeIds: readonly string[],
): Promise<Set<string>> {
  const rows = await query<{ id: string }>(
    db,
    `select trade_id || ' ' || order_id as id from prediction_fill
     where user_id = $1 and venue = $2 and trade_id = any($3) and settlement in ('confirmed', 'failed')`,
    [userId, venue, tradeIds],
  )
  return new Set(rows.map(({ id }) => id))
}
