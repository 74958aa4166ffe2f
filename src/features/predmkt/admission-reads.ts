import { createLru } from '#kernel/async/create-lru.ts'
import { notFound } from '#kernel/contract/fault.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { PredmktDeps } from './deps.ts'
import { marketOf } from './order-request.ts'
import type { VenueViews } from './venue-views.ts'

/** What the venue is asked before an order has a task, which anybody with an account can cause as often as they like. */

/** An outcome that the venue does not know is not asked for again for so long. */
const unknownMs = 5_000
const unknownMax = 10_000

export type AdmissionReads = {
  /** Returns the market as the venue lists it now; counts to what one user may ask. */
  marketOf(userId: string, outcomeId: string): Promise<PredictionMarket>
}

type Deps = {
  venue: Pick<PredmktDeps['venue'], 'market' | 'protocolOf'>
  views: Pick<VenueViews, 'takeAdmission'>
}

export function createAdmissionReads(
  { venue, views }: Deps,
  nowMs: () => number = () => performance.now(),
): AdmissionReads {
  /** When the venue has said so. */
  const unknown = createLru<string, number>(unknownMax)
  const isUnknown = (outcomeId: string): boolean => {
    const atMs = unknown.get(outcomeId)
    return atMs !== undefined && nowMs() - atMs < unknownMs
  }
  const noted: PredmktDeps['venue']['market'] = async (by) => {
    const market = await venue.market(by)
    if (!market && 'outcomeId' in by) unknown.set(by.outcomeId, nowMs())
    return market
  }
  return {
    async marketOf(userId, outcomeId) {
      if (venue.protocolOf(outcomeId) === undefined || isUnknown(outcomeId))
        throw notFound('outcome', 'predmkt_markets')
      views.takeAdmission(userId)
      return marketOf({ venue: { market: noted, protocolOf: (id) => venue.protocolOf(id) } }, outcomeId)
    },
  }
}
