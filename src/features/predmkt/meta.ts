import { createLru } from '#kernel/async/create-lru.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Static } from '#kernel/contract/schema.ts'
import type { accountEntries } from './account-contract.ts'
import type { PredmktDeps } from './deps.ts'
import { heldOf } from './positions.ts'
import { openExits } from './store/exit-store.ts'
import { fillSums } from './store/fill-store.ts'
import { openOrderRows } from './store/order-store.ts'

/** The counts of a menu: the gateway's own record, and the venue's list of markets, read at most once a minute. */

type MetaView = Static<(typeof accountEntries)['meta']['output']>
const freshMs = 60_000
const trendingMax = 100
const usersMax = 10_000

export function createMeta(deps: PredmktDeps) {
  const { db, venue, clock } = deps
  const redeemable = createLru<string, { atMs: number; count: number }>(usersMax)
  let trending: { atMs: number; count: number } | undefined

  const trendingNow = async (nowMs: number) => {
    if (trending && nowMs - trending.atMs < freshMs) return trending
    const { items } = await venue.markets({ isClosed: false, order: 'volume_24h', limit: trendingMax })
    trending = { atMs: nowMs, count: items.length }
    return trending
  }
  const redeemableNow = async (userId: string, marketIds: readonly string[], nowMs: number) => {
    const known = redeemable.get(userId)
    if (known && nowMs - known.atMs < freshMs) return known
    const markets = await Promise.all(marketIds.map((marketId) => venue.market({ marketId })))
    const read = { atMs: nowMs, count: markets.filter((market) => market?.payoutMicros).length }
    redeemable.set(userId, read)
    return read
  }

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
      trendingNow(now.getTime()),
      redeemableNow(userId, [...new Set(held.map(({ market_id }) => market_id))], now.getTime()),
    ]).catch((error: unknown) => {
      if (error instanceof Fault) return undefined
      throw error
    })
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
