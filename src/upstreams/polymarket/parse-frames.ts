import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type { MarketUpdate, OrderUpdate, UserUpdate } from '#kernel/money/prediction-venue.ts'
import { dateOf, required, requiredUnits, tickOf, unitsOf, type WireNumber } from './decimals.ts'
import { type Own, parseOrderStatus, parseTrade } from './parse-account.ts'
import { parseBook, venueName } from './parse-markets.ts'
import { WireTrade } from './wire-clob.ts'
import {
  BestFrame,
  BookFrame,
  FrameHead,
  LastTradeFrame,
  OrderFrame,
  PriceChangeFrame,
  ResolvedFrame,
  TickFrame,
} from './wire-stream.ts'

/**
 * Turns a frame into updates. A frame of an unknown form returns undefined, and the listener reads over HTTP; a frame
 * of an event that the gateway does not use returns no updates.
 */
type Parsed<T> = T[] | undefined

const refOf = (marketId: string, outcomeId: string) => ({ venue: venueName, marketId, outcomeId })

function timeOf(value: WireNumber): Date {
  const at = dateOf(value)
  if (!at) throw new Fault('upstream_changed', 'Polymarket sent a frame without a time')
  return at
}

type Best = { asset_id: string; best_bid?: string | null | undefined; best_ask?: string | null | undefined }
const bestOf = (market: string, { asset_id, best_bid, best_ask }: Best, at: Date): MarketUpdate => ({
  type: 'best',
  outcome: refOf(market, asset_id),
  bidMicros: priceOf(best_bid),
  askMicros: priceOf(best_ask),
  at,
})
/** An empty side has an empty text, or 0 or 1. */
function priceOf(text: string | null | undefined): bigint | null {
  const micros = unitsOf(text)
  return micros === undefined || micros <= 0n || micros >= 1_000_000n ? null : micros
}

function marketUpdates(frame: unknown): Parsed<MarketUpdate> {
  if (fits(BookFrame, frame)) return [{ type: 'book', book: parseBook(frame) }]
  if (fits(PriceChangeFrame, frame)) {
    const at = timeOf(frame.timestamp)
    return frame.price_changes.map((change) => bestOf(frame.market, change, at))
  }
  if (fits(BestFrame, frame)) return [bestOf(frame.market, frame, timeOf(frame.timestamp))]
  if (fits(LastTradeFrame, frame))
    return [
      {
        type: 'last_trade',
        outcome: refOf(frame.market, frame.asset_id),
        priceMicros: requiredUnits(frame.price, 'price'),
        sizeUnits: unitsOf(frame.size) ?? 0n,
        at: timeOf(frame.timestamp),
      },
    ]
  if (fits(TickFrame, frame))
    return [
      {
        type: 'tick',
        outcome: refOf(frame.market, frame.asset_id),
        tickMicros: required(tickOf(frame.new_tick_size), 'tick'),
        at: timeOf(frame.timestamp),
      },
    ]
  if (fits(ResolvedFrame, frame))
    return [
      {
        type: 'resolved',
        marketId: frame.market,
        winningOutcomeId: frame.winning_asset_id || null,
        at: timeOf(frame.timestamp),
      },
    ]
  return fits(FrameHead, frame) && !marketEvents.has(frame.event_type) ? [] : undefined
}
const marketEvents: ReadonlySet<string> = new Set([
  'book',
  'price_change',
  'best_bid_ask',
  'last_trade_price',
  'tick_size_change',
  'market_resolved',
])

const changes: readonly OrderUpdate['change'][] = ['placement', 'update', 'cancellation']

function userUpdates(frame: unknown, own: Own): Parsed<UserUpdate> {
  if (fits(OrderFrame, frame)) {
    const change = changes.find((each) => each === frame.type.toLowerCase())
    if (change === undefined) return undefined
    return [
      {
        type: 'order',
        orderId: frame.id,
        change,
        outcome: refOf(frame.market, frame.asset_id),
        status: frame.status ? parseOrderStatus(frame.status) : null,
        matchedUnits: requiredUnits(frame.size_matched, 'size'),
        at: timeOf(frame.timestamp),
      },
    ]
  }
  if (!fits(FrameHead, frame)) return undefined
  if (frame.event_type !== 'trade') return frame.event_type === 'order' ? undefined : []
  return fits(WireTrade, frame)
    ? parseTrade(frame, own).map((trade) => ({ type: 'trade', trade }))
    : undefined
}

/** A word that is unknown makes the frame unreadable, and must not end the stream. */
function attempt<T>(parse: () => Parsed<T>): Parsed<T> {
  try {
    return parse()
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

export const parseMarketFrame = (frame: unknown): Parsed<MarketUpdate> => attempt(() => marketUpdates(frame))
export const parseUserFrame = (frame: unknown, own: Own): Parsed<UserUpdate> =>
  attempt(() => userUpdates(frame, own))
