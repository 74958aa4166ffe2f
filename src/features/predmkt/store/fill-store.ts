import type { MeasuredTrade } from '#features/predmkt/measured-trades.ts'
import { builderFeeUnits } from '#kernel/money/builder-fee.ts'
import { mulDiv } from '#kernel/money/money.ts'
import type { SettlementState, TakerFee } from '#kernel/money/prediction-views.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { PredictionFillRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import { type AccountKey, lockAccount } from './account-store.ts'
import { type ChainUnits, releaseSold } from './exit-facts.ts'
import { countHeld } from './fill-costs.ts'

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
  const { role, side, feeRateBps, parts, netUnits } = trade
  const hasFee = role === 'taker' && feeRateBps !== '0'
  const fee = order.fee as TakerFee | null
  const rounding = side === 'buy' ? 'up' : 'down'
  let [feeUnits, listed] = [builderFeeUnits(fee?.builder, trade), 0n]
  for (const { priceMicros, sizeUnits } of parts) {
    if (hasFee) feeUnits += feeOf(fee, priceMicros, sizeUnits)
    listed += mulDiv(sizeUnits, priceMicros, dollarUnits, rounding)
  }
  const measured = netUnits === null ? null : side === 'buy' ? netUnits - feeUnits : netUnits + feeUnits
  return { trade, title: order.title, protocol: order.protocol, feeUnits, cashUnits: measured ?? listed }
}

export type FillChange = { before: SettlementState | null; fill: PredictionFillRow }

/**
 * Stores trades, and returns those whose state has changed. A final state does not change any more. Exits give up what
 * was sold by hand.
 */
export async function recordTrades(
  db: Queryable,
  { userId, venue }: AccountKey,
  trades: readonly NamedTrade[],
  chainUnits: ChainUnits = new Map(),
): Promise<FillChange[]> {
  if (trades.length === 0) return []
  // A task and a comparison can read the same trade at the same time.
  await lockAccount(db, { userId, venue })
  const known = await settlementsOf(
    db,
    { userId, venue },
    trades.map(({ trade }) => trade.tradeId),
  )
  const changes: FillChange[] = []
  for (const named of trades) {
    const before = known.get(keyOf(named.trade)) ?? null
    if (before !== null && (isFinal(before) || before === named.trade.settlement)) continue
    changes.push({ before, fill: await recordTrade(db, { userId, venue }, named) })
  }
  const fills = changes.map(({ fill }) => fill)
  await releaseSold(db, { userId, venue }, { fills, chainUnits })
  const confirmed = fills.flatMap((fill) => (fill.settlement === 'confirmed' ? fill.outcome_id : []))
  for (const outcomeId of new Set(confirmed)) await countHeld(db, { userId, venue }, outcomeId)
  return changes
}

async function recordTrade(
  db: Queryable,
  { userId, venue }: AccountKey,
  { trade, title, protocol, feeUnits, cashUnits }: NamedTrade,
): Promise<PredictionFillRow> {
  const { side, sizeUnits, priceMicros } = trade
  const [row] = await query<PredictionFillRow>(
    db,
    `insert into prediction_fill as f (trade_id, order_id, user_id, venue, market_id, outcome_id, outcome, title,
       protocol, side, role, price, size, cash, fee, settlement, tx_hash, matched_at, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
     on conflict (user_id, venue, trade_id, order_id) do update set settlement = excluded.settlement,
       cash = excluded.cash, fee = excluded.fee,
       tx_hash = coalesce(excluded.tx_hash, f.tx_hash), updated_at = excluded.updated_at
     returning f.*`,
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
  return row!
}

export const fillsOfOrder = (db: Queryable, orderId: string): Promise<PredictionFillRow[]> =>
  fetchAll(
    db,
    builder.selectFrom('prediction_fill').selectAll().where('order_id', '=', orderId).orderBy('matched_at'),
  )

/** The last fills, each with the task of its order; an order of another client has none. */
export const recentFills = (
  db: Queryable,
  { userId, venue }: AccountKey,
  limit: number,
): Promise<(PredictionFillRow & { task_id: string | null })[]> =>
  fetchAll(
    db,
    builder
      .selectFrom('prediction_fill as f')
      .leftJoin('prediction_order as o', 'o.order_id', 'f.order_id')
      .selectAll('f')
      .select('o.task_id')
      .where('f.user_id', '=', userId)
      .where('f.venue', '=', venue)
      .orderBy('f.matched_at', 'desc')
      .orderBy('f.trade_id')
      .limit(limit),
  )

export type FillSums = {
  outcome_id: string
  market_id: string
  outcome: string
  title: string
  protocol: string
  /** After the last confirmed fill; null without one. */
  held: string | null
  held_cost: string | null
  realized: string | null
  /** Shares that left by a redemption, and what it paid. */
  redeemed: string
  payout: string
  unsettled_buy: string
  unsettled_sell: string
}

const ofUser = 'user_id = $1 and venue = $2'
const isUnsettled = `settlement not in ('confirmed', 'failed')`
const nextTraded = (after: string) =>
  `(select outcome_id from prediction_fill where ${ofUser} and settlement = 'confirmed' ${after}
    order by outcome_id limit 1)`

/**
 * What is held per outcome, and what is on its way. Of each outcome the last confirmed fill is read, however many came
 * before; a fill of another client has no title, and takes that of any other fill.
 */
export const fillSums = (db: Queryable, { userId, venue }: AccountKey): Promise<FillSums[]> =>
  query(
    db,
    `with recursive traded as (
       ${nextTraded('')} union all
       select ${nextTraded('and outcome_id > t.outcome_id')} from traded t where t.outcome_id is not null),
     unsettled as (
       select outcome_id, max(market_id) as market_id, max(outcome) as outcome, max(title) as title,
         max(protocol) as protocol, coalesce(sum(size) filter (where side = 'buy'), 0) as buy,
         coalesce(sum(size) filter (where side = 'sell'), 0) as sell
       from prediction_fill where ${ofUser} and ${isUnsettled} group by outcome_id)
     select outcome_id, coalesce(f.market_id, u.market_id) as market_id, coalesce(f.outcome, u.outcome) as outcome,
       coalesce(nullif(f.title, ''), nullif(u.title, ''), (select title from prediction_fill
         where ${ofUser} and outcome_id = o.outcome_id and title <> '' limit 1), '') as title,
       coalesce(f.protocol, u.protocol) as protocol, f.held, f.held_cost, f.realized,
       coalesce(r.shares, 0) as redeemed, coalesce(r.payout, 0) as payout,
       coalesce(u.buy, 0) as unsettled_buy, coalesce(u.sell, 0) as unsettled_sell
     from (select outcome_id from traded where outcome_id is not null union select outcome_id from unsettled) o
     left join lateral (
       select market_id, outcome, title, protocol, held, held_cost, realized from prediction_fill
       where ${ofUser} and outcome_id = o.outcome_id and settlement = 'confirmed'
       order by matched_at desc, side desc, trade_id desc, order_id desc limit 1) f on true
     left join unsettled u using (outcome_id)
     left join (
       select outcome_id, sum(shares) as shares, sum(payout) as payout from prediction_redemption
       where ${ofUser} group by outcome_id) r using (outcome_id)`,
    [userId, venue],
  )

type FillKey = { tradeId: string; orderId: string }
export const keyOf = ({ tradeId, orderId }: FillKey): string => `${tradeId} ${orderId}`
export const isFinal = (settlement: SettlementState | undefined): boolean =>
  settlement === 'confirmed' || settlement === 'failed'

/** How far these trades are by the record. */
export async function settlementsOf(
  db: Queryable,
  { userId, venue }: AccountKey,
  tradeIds: readonly string[],
): Promise<Map<string, SettlementState>> {
  const rows = await query<FillKey & { settlement: SettlementState }>(
    db,
    `select trade_id as "tradeId", order_id as "orderId", settlement from prediction_fill
     where user_id = $1 and venue = $2 and trade_id = any($3)`,
    [userId, venue, tradeIds],
  )
  return new Map(rows.map((row) => [keyOf(row), row.settlement]))
}
