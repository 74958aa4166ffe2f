import { bestPrice, bookView, spreadText } from './clob-views.ts'
import { averagePrice, priceText, unitsText } from './decimal.ts'
import { bookPrice, type Market, type OutcomeIndex } from './markets.ts'
import type { Trade } from './state.ts'
import { bookOf, stateOf, type Venue } from './venue.ts'

type Frame = Record<string, unknown>

const atText = (venue: Venue): string => String(venue.state.nowMs)

export const bookFrame = (venue: Venue, market: Market, outcome: OutcomeIndex): Frame => ({
  event_type: 'book',
  ...bookView(venue, market, outcome),
})

/** The sizes of the book of the first outcome, by price and side. */
export type Depth = Map<string, { price: number; buy: boolean; size: number }>

export const depthOf = (venue: Venue, market: Market): Depth => {
  const depth: Depth = new Map()
  const book = bookOf(venue, market.conditionId)
  for (const buy of [true, false])
    for (const { price, size } of book.depth({ buy }, 1_000))
      depth.set(`${price} ${buy}`, { price, buy, size })
  return depth
}

type Change = { price: number; buy: boolean; size: number }

export const changesBetween = (before: Depth, after: Depth): Change[] => {
  const changes: Change[] = []
  for (const [key, level] of after) if (before.get(key)?.size !== level.size) changes.push(level)
  for (const [key, { price, buy }] of before) if (!after.has(key)) changes.push({ price, buy, size: 0 })
  return changes
}

const bestText = (venue: Venue, market: Market, outcome: OutcomeIndex, side: { buy: boolean }): string => {
  const best = bestPrice(venue, market, outcome, side)
  return best === undefined ? '' : priceText(best)
}

/** Each change shows on both outcomes: the other one is the mirror of the book. */
export const priceChangeFrame = (venue: Venue, market: Market, changes: readonly Change[]): Frame => ({
  event_type: 'price_change',
  market: market.conditionId,
  price_changes: changes.flatMap(({ price, buy, size }) =>
    ([0, 1] as const).map((outcome) => ({
      asset_id: market.tokens[outcome],
      price: priceText(bookPrice(outcome, price)),
      size: unitsText(size),
      side: buy === (outcome === 0) ? 'BUY' : 'SELL',
      hash: bookView(venue, market, outcome).hash,
      best_bid: bestText(venue, market, outcome, { buy: true }),
      best_ask: bestText(venue, market, outcome, { buy: false }),
    })),
  ),
  timestamp: atText(venue),
})

export const bestFrame = (venue: Venue, market: Market, outcome: OutcomeIndex): Frame => ({
  event_type: 'best_bid_ask',
  market: market.conditionId,
  asset_id: market.tokens[outcome],
  best_bid: bestText(venue, market, outcome, { buy: true }),
  best_ask: bestText(venue, market, outcome, { buy: false }),
  spread: spreadText(venue, market, outcome) ?? '',
  timestamp: atText(venue),
})

export const lastTradeFrame = (market: Market, { taker, hash }: Trade, atMs: number): Frame => ({
  event_type: 'last_trade_price',
  market: market.conditionId,
  asset_id: market.tokens[taker.outcome],
  price: averagePrice(taker.cash, taker.shares),
  size: unitsText(taker.shares),
  fee_rate_bps: '0',
  side: taker.side,
  timestamp: String(atMs),
  transaction_hash: hash,
})

export const tickFrame = (
  market: Market,
  outcome: OutcomeIndex,
  { from, to, atMs }: { from: number; to: number; atMs: number },
): Frame => ({
  event_type: 'tick_size_change',
  market: market.conditionId,
  asset_id: market.tokens[outcome],
  old_tick_size: priceText(from),
  new_tick_size: priceText(to),
  timestamp: String(atMs),
})

const eventMessage = ({ event }: Market) => ({
  id: event.id,
  ticker: event.slug,
  slug: event.slug,
  title: event.title,
  description: event.title,
})

export const resolvedFrame = (venue: Venue, market: Market): Frame => {
  const { payout } = stateOf(venue, market.conditionId)
  const isVoid = payout === 5_000
  const winner: OutcomeIndex = payout === 0 ? 1 : 0
  return {
    event_type: 'market_resolved',
    id: market.id,
    market: market.conditionId,
    assets_ids: [...market.tokens],
    winning_asset_id: isVoid ? null : market.tokens[winner],
    winning_outcome: isVoid ? null : market.outcomes[winner],
    event_message: eventMessage(market),
    timestamp: atText(venue),
    tags: market.event.tags.map(({ label }) => label),
  }
}

export const newMarketFrame = (venue: Venue, market: Market): Frame => ({
  event_type: 'new_market',
  id: market.id,
  question: market.question,
  market: market.conditionId,
  slug: market.slug,
  description: market.question,
  assets_ids: [...market.tokens],
  outcomes: [...market.outcomes],
  event_message: eventMessage(market),
  timestamp: atText(venue),
  tags: market.event.tags.map(({ label }) => label),
  condition_id: market.conditionId,
  active: true,
  clob_token_ids: [...market.tokens],
  sports_market_type: '',
  line: '',
  game_start_time: null,
  order_price_min_tick_size: priceText(stateOf(venue, market.conditionId).tick),
  group_item_title: market.title,
  taker_base_fee: '0',
  fees_enabled: market.fee !== null,
  fee_schedule: market.fee,
})
