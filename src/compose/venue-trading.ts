import { userTopic } from '#durable/events/notifier.ts'
import { createSignedActions } from '#engines/venue/orders/signed-action.ts'
import type { VenueTrading } from '#engines/venue/orders/venue-trading-deps.ts'
import { createViewedAccounts } from '#engines/venue/orders/viewed-account-invalidation.ts'
import * as rejections from '#upstreams/hyperliquid/rejections.ts'
import * as pricing from '#upstreams/hyperliquid/rounding.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import { venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

type TradingDeps = {
  core: Core
  venue: Venue
  custody: Pick<Custody, 'policy' | 'signer' | 'tradingKeys' | 'evmAddressOf'>
}
export type TradingOverrides = {
  /** How long a user-signed action is looked up after a rejection before it counts as not executed. */
  actionGraceMs?: number
}

/** Reads, prices and signed actions at the venue for all sections that trade there. */
export function openVenueTrading(
  { core, venue, custody }: TradingDeps,
  { actionGraceMs: graceMs }: TradingOverrides = {},
): VenueTrading {
  const { policy } = custody.policy
  return {
    db: core.db,
    clock: core.clock,
    venue: venue.client,
    views: venue.views,
    readStreamedOrder: venue.streams.readOrder,
    streamedMids: venue.streams.mids,
    chainId: venueChainId,
    signedActions: createSignedActions({
      venue: venue.client.withUrgency('exit'),
      chainId: venueChainId,
      policy,
      signer: custody.signer,
      nonces: core.taskEngine.nonces,
      ...(graceMs !== undefined && { graceMs }),
    }),
    pricing,
    rejections,
    tradingKeys: custody.tradingKeys,
    policy,
    evmAddressOf: custody.evmAddressOf,
    viewedAccountOf: createViewedAccounts({
      views: venue.views,
      evmAddressOf: custody.evmAddressOf,
      onCommit: (userId, listener) => core.taskEngine.notifier.on(userTopic(userId), listener),
    }),
  }
}
