import type { PriceTriggers } from '#engines/trigger-orders/price-triggers.ts'
import type { OnAgentRevoked } from '#engines/venue/orders/order-failures.ts'
import type { AgentDeps } from '#engines/venue/orders/trade-admission.ts'
import type { VenueTrading } from '#engines/venue/orders/venue-trading.ts'
import type { TradingKeys } from '#features/wallets/trading-keys.ts'
import type { Log } from '#kernel/log.ts'

/** Who holds the triggers of spot balances: the venue, where it supports spot triggers, or the gateway. */
export type TriggerHost = 'gateway' | 'venue'

type SpotSettings = {
  /** Starts the renewal of the trading key; returns before the venue has approved the new one. */
  renewKey(userId: string): Promise<void>
  triggerHost: TriggerHost
  limits: { minOrderUsd: string; minFundUsd: string }
}

export type SpotVenueDeps = VenueTrading &
  SpotSettings & {
    agents: Pick<TradingKeys, 'of' | 'retired'>
    priceTriggers: PriceTriggers
    /** Interval in which the prices of markets with triggers are checked. */
    priceCheckMs?: number | undefined
    /** True on one live instance, which polls often for what any of them may handle. */
    isOnDuty: () => boolean
    log: Log
  }

export type SpotDeps = VenueTrading & SpotSettings & AgentDeps & { onAgentRevoked: OnAgentRevoked }
