import { createHash } from 'node:crypto'
import { minimumSize } from './catalog.ts'
import { averagePrice, priceText, unitsText } from './decimal.ts'
import { bookPrice, type Market, type OutcomeIndex } from './markets.ts'
import type { Leg, Order, OrderStatus, Trade, Version } from './state.ts'
import { bookOf, marketOf, stateOf, type Venue } from './venue.ts'

const depthMax = 1_000

export type Level = { price: string; size: string }

const levelsOf = (
  venue: Venue,
  market: Market,
  outcome: OutcomeIndex,
  { buy }: { buy: boolean },
): Level[] => {
  const isMirrored = outcome === 1
  const depth = bookOf(venue, market.conditionId).depth({ buy: isMirrored ? !buy : buy }, depthMax)
  // The best comes last on both sides, as upstream lists them.
  return depth
    .map(({ price, size }) => ({ price: priceText(bookPrice(outcome, price)), size: unitsText(size) }))
    .reverse()
}

export const bestPrice = (
  venue: Venue,
  market: Market,
  outcome: OutcomeIndex,
  { buy }: { buy: boolean },
): number | undefined => {
  const best = bookOf(venue, market.conditionId).best({ buy: outcome === 1 ? !buy : buy })
  return best === undefined ? undefined : bookPrice(outcome, best)
}

export const lastPriceOf = (venue: Venue, market: Market, outcome: OutcomeIndex): number =>
  bookPrice(outcome, stateOf(venue, market.conditionId).lastPrice)

export const bookView = (venue: Venue, market: Market, outcome: OutcomeIndex) => {
  const { tick } = stateOf(venue, market.conditionId)
  const content = {
    market: market.conditionId,
    asset_id: market.tokens[outcome],
    timestamp: String(venue.state.nowMs),
    bids: levelsOf(venue, market, outcome, { buy: true }),
    asks: levelsOf(venue, market, outcome, { buy: false }),
    min_order_size: String(minimumSize),
    tick_size: priceText(tick),
    neg_risk: market.chain.isNegRisk,
    last_trade_price: priceText(lastPriceOf(venue, market, outcome)),
  }
  const { timestamp: _, ...hashed } = content
  return { ...content, hash: createHash('sha1').update(JSON.stringify(hashed)).digest('hex') }
}

/** In 1e-4 dollars, and half of that where the spread is odd. */
export const midpointText = (venue: Venue, market: Market, outcome: OutcomeIndex): string | undefined => {
  const bid = bestPrice(venue, market, outcome, { buy: true })
  const ask = bestPrice(venue, market, outcome, { buy: false })
  if (bid === undefined && ask === undefined) return undefined
  if (bid === undefined || ask === undefined) return priceText((bid ?? ask) as number)
  return unitsText(((bid + ask) * 100) / 2)
}

export const spreadText = (venue: Venue, market: Market, outcome: OutcomeIndex): string | undefined => {
  const bid = bestPrice(venue, market, outcome, { buy: true })
  const ask = bestPrice(venue, market, outcome, { buy: false })
  return bid === undefined || ask === undefined ? undefined : priceText(ask - bid)
}

/**
 * A read that lags shows the version that was current then, or the oldest one that is kept; nothing of records that are
 * younger.
 */
export const versionAt = <T>(
  versions: readonly Version<T>[],
  { atMs, bornMs }: { atMs: number; bornMs: number },
): Version<T> | undefined =>
  versions.findLast((version) => version.atMs <= atMs) ?? (bornMs <= atMs ? versions[0] : undefined)

/** An order that waits for its match is open to those who ask. */
const statusOf = (status: OrderStatus): OrderStatus => (status === 'DELAYED' ? 'LIVE' : status)

export const orderView = (order: Order, version: { status: OrderStatus; matched: number }) => ({
  id: order.id,
  status: statusOf(version.status),
  owner: order.owner,
  maker_address: order.signed.maker,
  market: order.conditionId,
  asset_id: order.signed.tokenId,
  side: order.side,
  original_size: unitsText(order.size),
  size_matched: unitsText(version.matched),
  price: priceText(order.price),
  outcome: marketOf(order.conditionId).outcomes[order.outcome],
  expiration: order.expiration,
  order_type: order.type,
  associate_trades: version.matched === 0 ? [] : [...order.trades],
  created_at: Math.floor(order.createdMs / 1_000),
})

const feeBps = ({ fee, cash }: Leg): string =>
  fee === 0 || cash === 0 ? '0' : String(Math.round((fee * 10_000) / cash))

const makerView = (conditionId: string, leg: Leg) => ({
  order_id: leg.orderId,
  owner: leg.owner,
  maker_address: leg.signed.maker,
  matched_amount: unitsText(leg.shares),
  price: priceText(leg.price),
  fee_rate_bps: '0',
  asset_id: leg.signed.tokenId,
  outcome: marketOf(conditionId).outcomes[leg.outcome],
  outcome_index: leg.outcome,
  side: leg.side,
  builder_fee: unitsText(leg.fee),
  builder_code: leg.signed.builder,
})

const seconds = (ms: number): string => String(Math.floor(ms / 1_000))

/** Makers read the taker's row, too: a maker finds its part in `maker_orders`. */
const tradeFields = (trade: Trade, hash: string, updatedMs: number) => {
  const { taker } = trade
  return {
    id: trade.id,
    taker_order_id: taker.orderId,
    market: trade.conditionId,
    asset_id: taker.signed.tokenId,
    side: taker.side,
    size: unitsText(taker.shares),
    fee_rate_bps: feeBps(taker),
    price: averagePrice(taker.cash, taker.shares),
    match_time: seconds(trade.matchMs),
    last_update: seconds(updatedMs),
    outcome: marketOf(trade.conditionId).outcomes[taker.outcome],
    bucket_index: trade.bucket,
    owner: taker.owner,
    maker_address: taker.signed.maker,
    transaction_hash: hash,
    maker_orders: trade.makers.map((leg) => makerView(trade.conditionId, leg)),
  }
}

export type TraderSide = 'TAKER' | 'MAKER'

export const sideOf = (trade: Trade, user: string): TraderSide =>
  trade.taker.user === user ? 'TAKER' : 'MAKER'

export const tradeView = (
  trade: Trade,
  version: { status: string; hash: string; atMs: number },
  user: string,
) => ({
  ...tradeFields(trade, version.hash, version.atMs),
  status: `TRADE_STATUS_${version.status}`,
  match_time_nano: `${trade.matchMs}000000`,
  err_msg: trade.error,
  trader_side: sideOf(trade, user),
})

/** The same trade as the user socket has it, with the status in its plain form. */
export const tradeFrame = (trade: Trade, user: string, atMs: number) => {
  const { owner } = legOf(trade, user) ?? trade.taker
  return {
    event_type: 'trade',
    type: 'TRADE',
    ...tradeFields(trade, trade.hash, trade.updatedMs),
    owner,
    trade_owner: owner,
    status: trade.status,
    trader_side: sideOf(trade, user),
    timestamp: String(atMs),
  }
}

const legOf = (trade: Trade, user: string): Leg | undefined =>
  [trade.taker, ...trade.makers].find((leg) => leg.user === user)

export const orderFrame = (order: Order, change: 'PLACEMENT' | 'UPDATE' | 'CANCELLATION', atMs: number) => ({
  event_type: 'order',
  id: order.id,
  owner: order.owner,
  market: order.conditionId,
  asset_id: order.signed.tokenId,
  side: order.side,
  order_owner: order.owner,
  original_size: unitsText(order.size),
  size_matched: unitsText(order.matched),
  price: priceText(order.price),
  associate_trades: order.trades.length === 0 ? null : [...order.trades],
  outcome: marketOf(order.conditionId).outcomes[order.outcome],
  type: change,
  created_at: seconds(order.createdMs),
  expiration: order.expiration,
  order_type: order.type,
  status:
    order.status === 'CANCELED_MARKET_RESOLVED' || order.status === 'INVALID'
      ? 'CANCELED'
      : statusOf(order.status),
  maker_address: order.signed.maker,
  timestamp: String(atMs),
})

const endCursor = 'LTE='

/** A cursor is the base64 of an offset; the end has a word of its own. */
export const pageOf = <T>(rows: readonly T[], cursor: string | null, limit: number) => {
  const offset = cursor === null || cursor === '' ? 0 : Number(Buffer.from(cursor, 'base64').toString())
  const from = Number.isInteger(offset) && offset >= 0 ? offset : rows.length
  const data = rows.slice(from, from + limit)
  const next = from + limit
  return {
    limit,
    count: data.length,
    next_cursor: next < rows.length ? Buffer.from(String(next)).toString('base64') : endCursor,
    data,
  }
}
