import type { PriceTriggers } from '#engines/trigger-orders/price-triggers.ts'
import type { AgentDeps } from '#engines/venue/orders/require-trading-key.ts'
import type { VenueTrading } from '#engines/venue/orders/venue-trading-deps.ts'
import type { Log } from '#kernel/log.ts'

/** The venue holds the triggers of spot balances if it supports spot triggers; otherwise the gateway holds them. */
export type TriggerHost = 'gateway' | 'venue'

type SpotSettings = {
  /** Starts the renewal of the trading key; returns before the venue has approved the new one. */
  renewKey(userId: string): Promise<void>
  triggerHost: TriggerHost
  limits: { minOrderUsd: string; minFundUsd: string }
}

export type SpotVenueDeps = VenueTrading &
  SpotSettings & {
    priceTriggers: PriceTriggers
    /** How often the prices of markets with triggers are checked. */
    priceCheckMs?: number | undefined
    /** Whether this instance polls often for new triggers while none are open; the other instances poll rarely. */
    isOnDuty: () => boolean
    log: Log
  }

export type SpotDeps = VenueTrading & SpotSettings & AgentDeps
