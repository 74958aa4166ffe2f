import { LRUCache } from 'lru-cache'
import { userTopic } from '#durable/events/notifier.ts'
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

const viewersMax = 20_000
/** Longer than any view lives. */
const viewerMs = 600_000

/** While a user looks at views, a commit for the user, on any instance, invalidates them. */
function invalidateViewsOnCommit({ core: { taskEngine }, custody, venue: { views } }: TradingDeps) {
  const viewers = new LRUCache<string, Disposable>({
    max: viewersMax,
    ttl: viewerMs,
    ttlAutopurge: true,
    dispose: (listening) => listening[Symbol.dispose](),
  })
  return async (userId: string): Promise<string> => {
    const account = await custody.evmAddressOf(userId)
    const invalidate = () => views.invalidate(account)
    const known = viewers.get(userId)
    // Commits of other instances before now were not reported to this one.
    if (!known) invalidate()
    viewers.set(userId, known ?? taskEngine.notifier.on(userTopic(userId), invalidate))
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
    evmAddressOf: custody.evmAddressOf,
    viewedAccountOf: invalidateViewsOnCommit(deps),
  }
}
