import { LRUCache } from 'lru-cache'
import { userTopic } from '#durable/notifier.ts'
import { createSignedActions } from '#engines/venue/orders/signed-action.ts'
import type { VenueTrading } from '#engines/venue/orders/venue-trading.ts'
import * as rejections from '#upstreams/hyperliquid/rejections.ts'
import * as pricing from '#upstreams/hyperliquid/rounding.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import { venueChainId } from './settings.ts'
import type { Venue } from './venue.ts'

type TradingDeps = { core: Core; venue: Venue; custody: Pick<Custody, 'policy' | 'signer' | 'evmAddressOf'> }
export type TradingOverrides = {
  /** How long a user-signed action is looked up after a rejection before it counts as not executed. */
  actionGraceMs?: number
}

const accountsMax = 20_000

/** A commit for a user, on any instance, invalidates cached views of the account. */
function invalidateViewsOnCommit({ core: { taskEngine }, custody, venue: { views } }: TradingDeps) {
  const accounts = new LRUCache<string, string>({ max: accountsMax })
  taskEngine.notifier.onAny((topic) => {
    const account = accounts.get(topic)
    if (account !== undefined) views.invalidate(account)
  })
  return async (userId: string): Promise<string> => {
    const account = await custody.evmAddressOf(userId)
    accounts.set(userTopic(userId), account)
    return account
  }
}

/** Reads, prices and signed actions at the venue for all sections that trade there. */
export function openVenueTrading(
  deps: TradingDeps,
  { actionGraceMs: graceMs }: TradingOverrides = {},
): VenueTrading {
  const { core, venue, custody } = deps
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
    policy,
    evmAddressOf: invalidateViewsOnCommit(deps),
  }
}
