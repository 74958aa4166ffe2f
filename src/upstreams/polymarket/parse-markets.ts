import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import { decimalOfSource } from '#kernel/money/money.ts'
import type { PredictionEvent } from '#kernel/money/prediction-venue.ts'
import type { Book, BookLevel, PredictionMarket, TakerFee } from '#kernel/money/prediction-views.ts'
import { parseJson } from '#kernel/wire/json.ts'
import type { Protocol } from './contracts.ts'
import { amountOf, dateOf, priceOf, required, tickOf, type WireNumber } from './decimals.ts'
import { labelMax, lineOf, titleMax } from './foreign-text.ts'
import { protocolOf } from './outcome-ids.ts'
import type { WireBook } from './wire-clob.ts'
import { GammaEvent, GammaMarket } from './wire-gamma.ts'

export const venueName = 'polymarket'

/** Receives each record that was skipped because its form is unknown. */
export type OnSkipped = (list: string, record: unknown) => void

/** Markets of both protocols have two outcomes, and redemptions pay for two. */
const outcomesOfMarket = 2
/** Further markets of an event are left out. */
const marketsOfEventMax = 1_000
/** The finest tick has 9,999 prices. */
const levelsMax = 10_000
const delaySecondsMax = 3_600
const dollar = 1_000_000n
/** What a float loses of a payout. */
const payoutToleranceMicros = 10n
const possiblePayouts = [0n, dollar / 2n, dollar]
const conditionForm = /^0x(?:[0-9a-f]{62}|[0-9a-f]{64})$/i

/** Returns the texts of a list, which is also written as JSON inside of a string; a list of another form is empty. */
function textsOf(list: string | WireNumber[] | null | undefined): string[] {
  const value = typeof list === 'string' ? parseJson(list) : list
  const isList = Array.isArray(value) && value.length === outcomesOfMarket
  return isList && value.every((each) => typeof each === 'string' || typeof each === 'number')
    ? value.map(String)
    : []
}

const protocolOfVersion = (version: string | null | undefined): Protocol | undefined => {
  // Markets of before the second protocol have no version.
  if (version === null || version === undefined || version === '' || version === 'v1') return 'v1'
  return version === 'v2' ? 'v2' : undefined
}

export const feeOf = (
  schedule: { rate: WireNumber; exponent: WireNumber } | null | undefined,
): TakerFee | null => {
  if (!schedule) return null
  // A rate that is no number is kept: an order with it is refused, where none would be without a fee.
  const [rate, exponent] = [schedule.rate, schedule.exponent].map((wire) => {
    const source = String(wire).slice(0, labelMax)
    return decimalOfSource(source) ?? source
  })
  return rate === '0' ? null : { rate: rate!, exponent: exponent! }
}

/** Seconds between acceptance and match, during which a task waits. */
export const delayOf = (seconds: number | null | undefined): number =>
  Math.min(Math.max(seconds ?? 0, 0), delaySecondsMax)

const positive = (units: bigint | undefined): bigint | null =>
  units === undefined || units <= 0n ? null : units

const lineOrNull = (text: string | null | undefined): string | null => lineOf(text ?? '', titleMax) || null

type EventReference = { id: string; slug: string | null; title: string | null }

/**
 * Returns the payouts, or null if they are none that a market of the venue has: the last prices of trades stay for a
 * while after the result.
 */
function payoutsOf(prices: readonly (bigint | undefined)[]): bigint[] | null {
  const payouts = prices.map((price) =>
    possiblePayouts.find((payout) => {
      const apart = (price ?? -dollar) - payout
      return apart >= -payoutToleranceMicros && apart <= payoutToleranceMicros
    }),
  )
  const known = payouts.filter((payout) => payout !== undefined)
  const isDollar = known.reduce((sum, payout) => sum + payout, 0n) === dollar
  return known.length === outcomesOfMarket && isDollar ? known : null
}

/** Returns a market, or undefined if its ids, its outcomes or its protocol are of no known form. */
function marketOf(market: GammaMarket, event: EventReference | undefined): PredictionMarket | undefined {
  const protocol = protocolOfVersion(market.version)
  const positionIds = textsOf(market.positionIds)
  const ids = protocol === 'v2' && positionIds.length > 0 ? positionIds : textsOf(market.clobTokenIds)
  const labels = textsOf(market.outcomes).map((label) => lineOf(label, labelMax))
  const prices = textsOf(market.outcomePrices).map(priceOf)
  const areIds = new Set(ids).size === outcomesOfMarket && ids.every((id) => protocolOf(id) !== undefined)
  if (!protocol || !areIds || labels.length !== ids.length || !conditionForm.test(market.conditionId))
    return undefined
  const isClosed = market.closed === true
  const isResolved = isClosed && market.umaResolutionStatus === 'resolved'
  return {
    venue: venueName,
    marketId: market.conditionId,
    protocol,
    isNegRisk: market.negRisk === true,
    slug: lineOf(market.slug, titleMax),
    question: lineOf(market.question, titleMax),
    description: market.description ?? '',
    category: lineOrNull(market.category),
    image: market.image || null,
    eventId: event?.id ?? null,
    eventSlug: lineOrNull(event?.slug),
    eventTitle: lineOrNull(event?.title),
    outcomes: ids.map((outcomeId, index) => ({
      outcomeId,
      label: labels[index]!,
      priceMicros: prices[index] ?? null,
    })),
    tickMicros: tickOf(market.orderPriceMinTickSize) ?? 0n,
    minSizeUnits: amountOf(market.orderMinSize) ?? 0n,
    acceptsOrders: !isClosed && market.acceptingOrders === true && market.enableOrderBook !== false,
    isClosed,
    matchDelaySeconds: delayOf(market.secondsDelay),
    fee: market.feesEnabled === false ? null : feeOf(market.feeSchedule),
    bestBidMicros: positive(priceOf(market.bestBid)),
    bestAskMicros: positive(priceOf(market.bestAsk)),
    lastPriceMicros: positive(priceOf(market.lastTradePrice)),
    volumeUnits: amountOf(market.volume) ?? 0n,
    volume24hUnits: amountOf(market.volume24hr) ?? 0n,
    liquidityUnits: amountOf(market.liquidity) ?? 0n,
    endsAt: dateOf(market.endDate),
    payoutMicros: isResolved ? payoutsOf(prices) : null,
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
      slug: lineOf(slug, titleMax),
      title: lineOf(title, titleMax),
      description: record.description ?? '',
      category: lineOrNull(record.category),
      image: record.image || null,
      isNegRisk: negRisk === true,
      isClosed: closed === true,
      endsAt: dateOf(record.endDate),
      volumeUnits: amountOf(record.volume) ?? 0n,
      markets: parseMarkets((record.markets ?? []).slice(0, marketsOfEventMax), onSkipped, {
        id: eventId,
        slug,
        title,
      }),
    }
  })
}

/** A quote divides by the price, which is above 0 and below 1. */
function levelOf({ price, size }: { price: string; size: string }): BookLevel {
  const priceMicros = required(priceOf(price), 'price')
  if (priceMicros === 0n || priceMicros === dollar)
    throw new Fault('upstream_changed', 'Polymarket sent an order book with a price that is none')
  return { priceMicros, sizeUnits: required(amountOf(size), 'size') }
}

/** Sorts the levels itself: the order of the wire has changed before, and a quote depends on it. */
const sorted = (levels: BookLevel[], sign: 1 | -1): BookLevel[] =>
  levels.sort((a, b) => (a.priceMicros < b.priceMicros ? -sign : sign))

export function parseBook(book: WireBook): Book {
  const at = dateOf(book.timestamp)
  if (!at) throw new Fault('upstream_changed', 'Polymarket sent an order book without a time')
  if (book.bids.length > levelsMax || book.asks.length > levelsMax)
    throw new Fault('upstream_changed', 'Polymarket sent an order book with more prices than there are')
  return {
    venue: venueName,
    marketId: book.market,
    outcomeId: book.asset_id,
    bids: sorted(book.bids.map(levelOf), -1),
    asks: sorted(book.asks.map(levelOf), 1),
    tickMicros: required(tickOf(book.tick_size), 'tick'),
    minSizeUnits: required(amountOf(book.min_order_size), 'least size'),
    isNegRisk: book.neg_risk,
    lastPriceMicros: priceOf(book.last_trade_price) ?? null,
    hash: book.hash ?? '',
    at,
  }
}
