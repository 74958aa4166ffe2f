import { reserveSpend } from '#durable/accept/reserve-spend.ts'
import { readVenueWorth } from '#engines/venue/records/account-worth.ts'
import { createPerp } from '#features/perp/perp.ts'
import { createSpotVenue } from '#features/spot-venue/spot-venue.ts'
import type { SharedParts } from './section-parts.ts'
import { perpLimitsOf } from './settings.ts'
import type { Swaps } from './swap.ts'
import { openBridge } from './venue-bridge.ts'
import { openVenueTrading, type TradingOverrides } from './venue-trading.ts'

type VenueFeatureParts = Pick<SharedParts, 'core' | 'chains' | 'venue' | 'custody' | 'changed'> & {
  swaps: Pick<Swaps, 'legs'>
}
export type VenueFeatureOverrides = TradingOverrides & {
  /** Interval in which the prices of markets with triggers are checked. */
  priceCheckMs?: number
}

/** Opens the sections that trade at the venue; undefined where venue or bridge chain is not configured. */
export function openVenueFeatures(
  { core, chains, venue, custody, swaps, changed }: VenueFeatureParts,
  { priceCheckMs, ...overrides }: VenueFeatureOverrides,
) {
  const bridge = openBridge(core.config, chains)
  if (!bridge || !venue) return undefined
  const trading = openVenueTrading({ core, venue, custody }, overrides)
  const { batches } = custody
  const { config, log, taskEngine, priceTriggers } = core
  const limits = perpLimitsOf(config)
  const perp = createPerp({
    ...trading,
    ...bridge,
    batches,
    changed,
    limits,
    log,
    ledger: taskEngine.ledger,
    transact: taskEngine.transact,
    enqueue: taskEngine.enqueue,
    swaps: swaps.legs,
    reserve: reserveSpend,
  })
  const spot = createSpotVenue({
    ...trading,
    renewKey: perp.renewal.renew,
    triggerHost: config.HYPERLIQUID_SPOT_TRIGGERS,
    limits,
    log,
    priceTriggers,
    isOnDuty: taskEngine.isOnDuty,
    priceCheckMs,
  })
  return {
    worthOf: async (userId: string) => readVenueWorth(trading, await trading.viewedAccountOf(userId)),
    perp: { ...perp, part: 'perp' as const },
    spot: { ...spot, part: 'spot_venue' as const },
  }
}
