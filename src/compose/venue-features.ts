import { reserveSpend } from '#durable/accept/reserve-spend.ts'
import type { VenueTrading } from '#engines/venue/orders/venue-trading.ts'
import { perp as makePerp } from '#features/perp/perp.ts'
import { spotVenue } from '#features/spot-venue/spot-venue.ts'
import type { Bridge } from './bridge.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import { perpLimitsOf } from './settings.ts'
import type { Swaps } from './swap.ts'

type VenueFeatureDeps = {
  core: Core
  bridge: Bridge
  trading: VenueTrading
  custody: Pick<Custody, 'batches' | 'tradingKeys'>
  swaps: Swaps | undefined
  /** Called when a receipt changed the balances of a user's wallet. */
  changed: (userId: string, chainId: string) => void
}
export type VenueFeatureOverrides = {
  /** Interval in which the prices of markets with triggers are checked. */
  priceCheckMs?: number
}

/** The sections that trade at the venue, and the loop that fires the triggers of the gateway. */
export function openVenueFeatures(
  { core, bridge, trading, custody: { batches, tradingKeys }, swaps, changed }: VenueFeatureDeps,
  { priceCheckMs }: VenueFeatureOverrides = {},
) {
  const { config, log, taskEngine, priceTriggers } = core
  const limits = perpLimitsOf(config)
  const perp = makePerp({
    ...trading,
    ...bridge,
    agents: tradingKeys,
    batches,
    changed,
    limits,
    log,
    ledger: taskEngine.ledger,
    transact: taskEngine.transact,
    enqueue: taskEngine.enqueue,
    swaps: swaps?.legs,
    reserve: reserveSpend,
  })
  const spot = spotVenue({
    ...trading,
    agents: tradingKeys,
    renewKey: perp.renewal.renew,
    triggerHost: config.HYPERLIQUID_SPOT_TRIGGERS,
    limits,
    log,
    priceTriggers,
    isOnDuty: taskEngine.isOnDuty,
    priceCheckMs,
  })
  return {
    operations: [...perp.operations, ...spot.operations],
    kinds: [...spot.kinds, ...perp.renewal.kinds],
    priceLoop: spot.priceLoop,
    renewal: perp.renewal,
  }
}
