import { later } from '#kernel/clock.ts'
import { Fault, invalid, notFound } from '#kernel/contract/fault.ts'
import type { Static } from '#kernel/contract/schema.ts'
import { uuidv7 } from '#kernel/id.ts'
import { fromUnits, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import { type PriceWindow, pricePointsMax } from '#kernel/money/prediction-venue.ts'
import type { BookLevel, PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import type { marketEntries } from './market-contract.ts'
import { marketOf, outcomeIdOf } from './order-request.ts'
import { addQuote } from './store/quote-store.ts'
import type { VenueViews } from './venue-views.ts'
import type { Market } from './wire-types.ts'

/** What can be found and priced, in the form of the interface. */

type MarketView = Static<typeof Market>
type QuoteView = Static<(typeof marketEntries)['quote']['output']>
type MarketDeps = Pick<PredmktDeps, 'venue' | 'clock' | 'db' | 'random'> & { views: VenueViews }

export const usd = (units: bigint): string => fromUnits(units, usdcDecimals)
const usdOrNull = (units: bigint | null): string | null => (units === null ? null : usd(units))

export const protocolView = (protocol: string): 'v1' | 'v2' => (protocol === 'v2' ? 'v2' : 'v1')

export const marketView = (market: PredictionMarket): MarketView => ({
  venue: 'polymarket',
  market_id: market.marketId,
  condition_id: market.marketId,
  event_id: market.eventId,
  slug: market.slug,
  question: market.question,
  description: market.description,
  status: market.payoutMicros !== null ? 'resolved' : market.isClosed ? 'closed' : 'open',
  accepting_orders: market.acceptsOrders,
  protocol: protocolView(market.protocol),
  neg_risk: market.isNegRisk,
  tick_size: usd(market.tickMicros),
  min_order_shares: usd(market.minSizeUnits),
  outcomes: market.outcomes.map(({ outcomeId, label, priceMicros }, index) => ({
    outcome_id: outcomeId,
    outcome: label,
    price: usdOrNull(priceMicros),
    payout: usdOrNull(market.payoutMicros?.[index] ?? null),
  })),
  volume_24h_usd: usd(market.volume24hUnits),
  liquidity_usd: usd(market.liquidityUnits),
  ends_at: market.endsAt?.toISOString() ?? null,
})

const levelView = ({ priceMicros, sizeUnits }: BookLevel) => ({
  price: usd(priceMicros),
  size: usd(sizeUnits),
})

const quoteMs = 30_000

export const createMarketViews = (deps: MarketDeps) => {
  const { views, clock } = deps
  const asOf = () => clock.now().toISOString()
  return {
    async markets(
      { search_text: text, status = 'open', limit = 20, after }: PredmktInput<'markets'>,
      userId: string,
    ) {
      const words = text?.trim()
      const page = await views
        .markets(userId, {
          ...(words && { text: words }),
          isClosed: status === 'closed',
          order: 'volume_24h',
          limit,
          ...(after !== undefined && { cursor: after }),
        })
        .catch((error: unknown) => {
          // The venue can refuse nothing else of this request than the cursor.
          const isRefused = error instanceof Fault && error.code === 'upstream_rejected'
          if (!isRefused || after === undefined) throw error
          throw invalid('after', 'cursor_invalid', 'Input should be `next_after` of the previous page')
        })
      return { markets: page.items.map(marketView), next_after: page.nextCursor, as_of: asOf() }
    },
    async event({ id }: PredmktInput<'event'>, userId: string) {
      const event = await views.event(userId, id)
      if (!event) throw notFound('event', 'predmkt_markets')
      return {
        venue: 'polymarket' as const,
        event_id: event.eventId,
        slug: event.slug,
        title: event.title,
        description: event.description,
        neg_risk: event.isNegRisk,
        markets: event.markets.map(marketView),
        ends_at: event.endsAt?.toISOString() ?? null,
        as_of: asOf(),
      }
    },
    async book({ outcome_id: outcomeId }: PredmktInput<'book'>, userId: string) {
      const book = await views.book(userId, outcomeId)
      return {
        venue: 'polymarket' as const,
        market_id: book.marketId,
        outcome_id: book.outcomeId,
        bids: book.bids.map(levelView),
        asks: book.asks.map(levelView),
        tick_size: usd(book.tickMicros),
        min_order_shares: usd(book.minSizeUnits),
        last_trade_price: usdOrNull(book.lastPriceMicros),
        as_of: book.at.toISOString(),
      }
    },
    async prices(
      { outcome_id: outcomeId, interval = '1d', resolution_minutes }: PredmktInput<'prices'>,
      userId: string,
    ) {
      const points = await views.prices(
        userId,
        outcomeId,
        interval,
        stepMinutesOf(interval, resolution_minutes),
      )
      return {
        venue: 'polymarket' as const,
        outcome_id: outcomeId,
        points: points.map(({ at, priceMicros }) => ({ at: at.toISOString(), price: usd(priceMicros) })),
        as_of: asOf(),
      }
    },
    quote: (input: PredmktInput<'quote'>, userId: string) => quoteOf(deps, input, userId),
  }
}

const windowMinutes: Readonly<Record<PriceWindow, number>> = {
  '1h': 60,
  '6h': 360,
  '1d': 1_440,
  '1w': 10_080,
  '1m': 44_640,
  max: 525_600,
}
const stepMinutesDefault = 10

/** Returns the minutes between two prices, of which a window has a bounded number. */
export function stepMinutesOf(window: PriceWindow, asked: number | undefined): number {
  const least = Math.ceil(windowMinutes[window] / pricePointsMax)
  if (asked === undefined) return Math.max(least, stepMinutesDefault)
  if (asked >= least) return asked
  throw invalid(
    'resolution_minutes',
    'greater_than_equal',
    `Input should be at least ${least} for \`interval\` ${window}, which has at most ${pricePointsMax} prices`,
  )
}

/** What of the book a quote counts, by its input. */
export function quoteRequestOf(input: PredmktInput<'quote'>) {
  const { amount_usd: amountUsd, amount_shares: amountShares, worst_price: worstPrice } = input
  const outcomeId = outcomeIdOf(input)
  const side = input.side === 'BUY' ? ('buy' as const) : ('sell' as const)
  if ((amountUsd === undefined) === (amountShares === undefined))
    throw invalid(
      'amount_usd',
      'exactly_one_of',
      'Exactly one of `amount_usd` and `amount_shares` is required',
    )
  if (side === 'sell' && amountUsd !== undefined)
    throw invalid('amount_usd', 'extra_forbidden', 'A sale takes `amount_shares`')
  const spend =
    amountUsd !== undefined
      ? { type: 'all_in' as const, cashUnits: toUnits(amountUsd, usdcDecimals) }
      : { type: side, sizeUnits: toUnits(amountShares!, usdcDecimals) }
  const worstPriceMicros = worstPrice === undefined ? null : toUnits(worstPrice, usdcDecimals)
  return { outcomeId, spend, worstPriceMicros }
}

async function quoteOf(deps: MarketDeps, input: PredmktInput<'quote'>, userId: string): Promise<QuoteView> {
  const { views, clock, db, random } = deps
  const request = quoteRequestOf(input)
  const { outcomeId, spend } = request
  const allInUnits = spend.type === 'all_in' ? spend.cashUnits : null
  const wanted = spend.type === 'all_in' ? null : spend.sizeUnits
  views.takeQuote(userId)
  const market = await marketOf(deps, outcomeId)
  const quote = await deps.venue.quote(request)
  const now = clock.now()
  const expiresAt = later(now, quoteMs)
  const id = uuidv7(now, random)
  // An order by this quote buys all shares that were asked for, so that it may cost their highest fee.
  const costUnits = allInUnits ?? quote.orderCashUnits + quote.maxFeeUnits
  await addQuote(db, { id, userId, quote, allInUnits: costUnits, expiresAt })
  const isEmpty = quote.sizeUnits === 0n
  return {
    quote_id: id,
    venue: 'polymarket',
    market_id: market.marketId,
    condition_id: market.marketId,
    outcome_id: outcomeId,
    protocol: protocolView(market.protocol),
    side: input.side,
    order_type: input.order_type ?? 'FOK',
    shares: usd(quote.sizeUnits),
    avg_price: isEmpty ? null : usd(quote.averagePriceMicros),
    worst_price: isEmpty ? null : usd(quote.worstPriceMicros),
    fee_usd: usd(quote.feeUnits),
    max_fee_usd: usd(quote.maxFeeUnits),
    total_usd: usd(quote.allInUnits),
    payout_usd: usd(quote.payoutUnits),
    complete: quote.isComplete,
    unfilled_usd:
      allInUnits === null ? null : usd(quote.isComplete ? 0n : positive(allInUnits - quote.allInUnits)),
    unfilled_shares: wanted === null ? null : usd(positive(wanted - quote.sizeUnits)),
    book_as_of: quote.book.at.toISOString(),
    expires_at: expiresAt.toISOString(),
  }
}

const positive = (units: bigint): bigint => (units > 0n ? units : 0n)
