import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type { PredictionEvent } from '#kernel/money/prediction-venue.ts'
import type { Book, BookLevel, PredictionMarket, TakerFee } from '#kernel/money/prediction-views.ts'
import { parseJson } from '#kernel/wire/json.ts'
import type { Protocol } from './contracts.ts'
import { dateOf, requiredUnits, unitsOf, type WireNumber } from './decimals.ts'
import { labelMax, lineOf, titleMax } from './foreign-text.ts'
import type { WireBook } from './wire-clob.ts'
import { GammaEvent, GammaMarket } from './wire-gamma.ts'

export const venueName = 'polymarket'

/** Receives each record that was skipped because its form is unknown. */
export type OnSkipped = (list: string, record: unknown) => void

/** Returns the texts of a list, which is also written as JSON inside of a string. */
function textsOf(list: string | WireNumber[] | null | undefined): string[] {
  const value = typeof list === 'string' ? parseJson(list) : list
  return Array.isArray(value) ? value.map(String) : []
}

const protocolOfVersion = (version: string | null | undefined): Protocol | undefined => {
  // Markets of before the second protocol have no version.
  if (version === null || version === undefined || version === '' || version === 'v1') return 'v1'
  return version === 'v2' ? 'v2' : undefined
}

export const feeOf = (
  schedule: { rate: WireNumber; exponent: WireNumber } | null | undefined,
): TakerFee | null => {
  if (!schedule || Number(schedule.rate) === 0) return null
  return { rate: String(schedule.rate), exponent: String(schedule.exponent) }
}

const positive = (units: bigint | undefined): bigint | null =>
  units === undefined || units <= 0n ? null : units

const lineOrNull = (text: string | null | undefined): string | null => lineOf(text ?? '', titleMax) || null

type EventReference = { id: string; slug: string | null; title: string | null }

/** Returns a market, or undefined if its outcomes or its protocol are of no known form. */
function marketOf(market: GammaMarket, event: EventReference | undefined): PredictionMarket | undefined {
  const protocol = protocolOfVersion(market.version)
  const positionIds = textsOf(market.positionIds)
  const ids = protocol === 'v2' && positionIds.length > 0 ? positionIds : textsOf(market.clobTokenIds)
  const labels = textsOf(market.outcomes).map((label) => lineOf(label, labelMax))
  const prices = textsOf(market.outcomePrices).map(unitsOf)
  if (!protocol || ids.length < 2 || labels.length !== ids.length) return undefined
  const isClosed = market.closed === true
  const isResolved = isClosed && market.umaResolutionStatus === 'resolved' && prices.length === ids.length
  const payouts = prices.map((price) => price ?? 0n)
  return {
    venue: venueName,
    marketId: market.conditionId,
    protocol,
    isNegRisk: market.negRisk === true,
    slug: market.slug,
    question: lineOf(market.question, titleMax),
    description: market.description ?? '',
    category: lineOrNull(market.category),
    image: market.image || null,
    eventId: event?.id ?? null,
    eventSlug: event?.slug ?? null,
    eventTitle: lineOrNull(event?.title),
    outcomes: ids.map((outcomeId, index) => ({
      outcomeId,
      label: labels[index]!,
      priceMicros: prices[index] ?? null,
    })),
    tickMicros: unitsOf(market.orderPriceMinTickSize) ?? 0n,
    minSizeUnits: unitsOf(market.orderMinSize) ?? 0n,
    acceptsOrders: !isClosed && market.acceptingOrders === true && market.enableOrderBook !== false,
    isClosed,
    matchDelaySeconds: market.secondsDelay ?? 0,
    fee: market.feesEnabled === false ? null : feeOf(market.feeSchedule),
    bestBidMicros: positive(unitsOf(market.bestBid)),
    bestAskMicros: positive(unitsOf(market.bestAsk)),
    lastPriceMicros: positive(unitsOf(market.lastTradePrice)),
    volumeUnits: unitsOf(market.volume) ?? 0n,
    volume24hUnits: unitsOf(market.volume24hr) ?? 0n,
    liquidityUnits: unitsOf(market.liquidity) ?? 0n,
    endsAt: dateOf(market.endDate),
    payoutMicros: isResolved ? payouts : null,
  }
}

/** Skips markets of an unknown form, because one of them must not hide the others. */
export function parseMarkets(
  records: readonly unknown[],
  onSkipped: OnSkipped,
  event?: EventReference,
): PredictionMarket[] {
  return records.flatMap((record) => {
    const known = fits(GammaMarket, record) ? record : undefined
    const [reference] = known?.events ?? []
    const own = reference && {
      id: String(reference.id),
      slug: reference.slug ?? null,
      title: reference.title ?? null,
    }
    const market = known && marketOf(known, event ?? own)
    if (!market) onSkipped('markets', record)
    return market ?? []
  })
}

export function parseEvents(records: readonly unknown[], onSkipped: OnSkipped): PredictionEvent[] {
  return records.flatMap((record) => {
    if (!fits(GammaEvent, record)) {
      onSkipped('events', record)
      return []
    }
    const { slug, title, negRisk, closed } = record
    const eventId = String(record.id)
    return {
      venue: venueName,
      eventId,
      slug,
      title: lineOf(title, titleMax),
      description: record.description ?? '',
      category: lineOrNull(record.category),
      image: record.image || null,
      isNegRisk: negRisk === true,
      isClosed: closed === true,
      endsAt: dateOf(record.endDate),
      volumeUnits: unitsOf(record.volume) ?? 0n,
      markets: parseMarkets(record.markets ?? [], onSkipped, { id: eventId, slug, title }),
    }
  })
}

const levelOf = ({ price, size }: { price: string; size: string }): BookLevel => ({
  priceMicros: requiredUnits(price, 'price'),
  sizeUnits: requiredUnits(size, 'size'),
})

/** Sorts the levels itself: the order of the wire has changed before, and a quote depends on it. */
const sorted = (levels: BookLevel[], sign: 1 | -1): BookLevel[] =>
  levels.sort((a, b) => (a.priceMicros < b.priceMicros ? -sign : sign))

export function parseBook(book: WireBook): Book {
  const at = dateOf(book.timestamp)
  if (!at) throw new Fault('upstream_changed', 'Polymarket sent an order book without a time')
  return {
    venue: venueName,
    marketId: book.market,
    outcomeId: book.asset_id,
    bids: sorted(book.bids.map(levelOf), -1),
    asks: sorted(book.asks.map(levelOf), 1),
    tickMicros: requiredUnits(book.tick_size, 'tick'),
    minSizeUnits: requiredUnits(book.min_order_size, 'least size'),
    isNegRisk: book.neg_risk,
    lastPriceMicros: unitsOf(book.last_trade_price) ?? null,
    hash: book.hash ?? '',
    at,
  }
}
