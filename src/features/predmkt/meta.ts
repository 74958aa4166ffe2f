import { createCachedValue, createTtlCache } from '#kernel/async/ttl-cache.ts'
import type { Static } from '#kernel/contract/schema.ts'
import type { accountEntries } from './account-contract.ts'
import type { PredmktDeps } from './deps.ts'
import { heldOf } from './positions.ts'
import { openExits } from './store/exit-store.ts'
import { fillSums } from './store/fill-store.ts'
import { openOrderRows } from './store/order-store.ts'
import { ignoreVenueFault, type VenueViews } from './venue-views.ts'

/** The counts of a menu: the gateway's own record, and the venue's list of markets, read at most once a minute. */

type MetaView = Static<(typeof accountEntries)['meta']['output']>
const freshMs = 60_000
const trendingMax = 100
const usersMax = 10_000

type Counted = { atMs: number; count: number }

export function createMeta(deps: PredmktDeps & { views: VenueViews }) {
  const { db, venue, views, clock } = deps
  const nowMs = () => clock.now().getTime()
  const redeemable = createTtlCache<Counted>({ ttlMs: freshMs, entriesMax: usersMax, nowMs })
  const trending = createCachedValue<Counted>(
    async () => {
      const atMs = nowMs()
      const { items } = await venue.markets({ isClosed: false, order: 'volume_24h', limit: trendingMax })
      return { atMs, count: items.length }
    },
    { ttlMs: freshMs, nowMs },
  )
  const redeemableNow = (userId: string, marketIds: readonly string[]) =>
    redeemable.get(userId, async () => {
      const atMs = nowMs()
      const markets = [...(await views.marketFacts(userId, marketIds)).values()]
      return { atMs, count: markets.filter(({ payoutMicros }) => payoutMicros !== null).length }
    })

  return async (userId: string): Promise<MetaView> => {
    const now = clock.now()
    const owner = { userId, venue: venue.name }
    const [orders, exits, sums] = await Promise.all([
      openOrderRows(db, owner),
      openExits(db, owner),
      fillSums(db, owner),
    ])
    const held = sums.filter((sum) => heldOf(sum).units > 0n)
    const atVenue = await Promise.all([
      trending.get(),
      redeemableNow(userId, [...new Set(held.map(({ market_id }) => market_id))]),
    ]).catch(ignoreVenueFault)
    return {
      counts: {
        open_orders:
          orders.length + exits.filter(({ state }) => state === 'waiting' || state === 'watched').length,
        positions: held.length,
        redeemable: atVenue?.[1].count ?? 0,
        trending: atVenue?.[0].count ?? 0,
      },
      cached_at: new Date(atVenue?.[0].atMs ?? now.getTime()).toISOString(),
      stale: atVenue === undefined,
    }
  }
}
