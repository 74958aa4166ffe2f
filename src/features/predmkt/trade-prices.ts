import { Fault } from '#kernel/contract/fault.ts'
import type { Book } from '#kernel/money/prediction-views.ts'
import type { PredmktDeps } from './deps.ts'
import { dollar, type OrderTerms } from './order-request.ts'
import { averageCostMicros } from './store/fill-costs.ts'
import { boundPurchase, boundSale, type KnownPrices, marketPriceMicros, middleMicros } from './trade-bound.ts'

/** Reads what a share is worth, and bounds an order by it. */

/** An hour of the venue's prices, of which a day has so many. */
const stepMinutes = 60

type Deps = Pick<PredmktDeps, 'db' | 'venue'>
type TradeBound = Pick<OrderTerms, 'priceMicros' | 'boundMicros'> & {
  /** What a sale counts to the limits of the policy; undefined for a purchase, which counts its cost. */
  countedMicros?: bigint
  acceptedLossBps?: number
}

export async function boundTrade(deps: Deps, userId: string, terms: OrderTerms): Promise<TradeBound> {
  const { side, outcomeId, priceMicros } = terms
  const book = await deps.venue.book(outcomeId)
  const order = { side, sizeUnits: terms.sizeUnits ?? sharesFor(terms.allInUnits!, book) }
  const known =
    middleMicros(book, order.sizeUnits) === undefined ? await knownPrices(deps, userId, outcomeId) : noPrices
  const market = marketPriceMicros(book, order, known)
  if (side === 'sell') return { ...boundSale(terms, book, market), boundMicros: null }
  const { priceMicros: highest, ...loss } = boundPurchase(terms, book, market)
  return { priceMicros, boundMicros: priceMicros === null ? highest : null, ...loss }
}

const noPrices: KnownPrices = { dayMicros: [], costMicros: null }

const sharesFor = (cashUnits: bigint, { asks: [ask] }: Book): bigint =>
  ask ? (cashUnits * dollar) / ask.priceMicros : 0n

async function knownPrices({ db, venue }: Deps, userId: string, outcomeId: string): Promise<KnownPrices> {
  const [points, costMicros] = await Promise.all([
    venue.prices(outcomeId, '1d', stepMinutes).catch((fault: unknown) => {
      // What else is known bounds the order then.
      if (fault instanceof Fault) return []
      throw fault
    }),
    averageCostMicros(db, { userId, venue: venue.name }, outcomeId),
  ])
  return { dayMicros: points.map((point) => point.priceMicros), costMicros }
}
