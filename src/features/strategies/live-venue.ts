import { positionOf } from '#engines/venue/orders/consistent-reads.ts'
import { accountAfterTasks } from '#engines/venue/orders/read-after-write.ts'
import type { Clock } from '#kernel/clock.ts'
import { toFixedPoint } from '#kernel/money/money.ts'
import type { OrderIntent } from '#market/strategies/strategy.ts'
import type { Queryable } from '#store/query.ts'
import type { Account, Hyperliquid, OpenOrder } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { Refusal } from './live-calls.ts'

/** What the venue shows of the account of a user, beside what a strategy knows by its own orders. */

export type LiveVenue = Pick<Hyperliquid, 'account' | 'recentFills' | 'openOrders' | 'order' | 'mids'>
export type VenueReadDeps = {
  db: Queryable
  /** The clock of tasks. */
  clock: Clock
  venue: LiveVenue
  evmAddressOf: (userId: string) => Promise<string>
}
export type VenueView = {
  /** Signed sizes of positions by market, below zero for a short one. */
  positions: ReadonlyMap<string, string>
  orders: readonly OpenOrder[]
}

/** Reads the account after the last task of its user in each of the markets. */
export async function readVenue(
  deps: VenueReadDeps,
  { userId, assets }: { userId: string; assets: readonly string[] },
): Promise<VenueView> {
  const account = await deps.evmAddressOf(userId)
  const [orders, states] = await Promise.all([
    deps.venue.openOrders(account),
    Promise.all(assets.map((symbol) => accountAfterTasks(deps, { userId, account, symbol }))),
  ])
  const sizes = assets.map((asset, at): [string, string] => [asset, sizeIn(states[at], asset)])
  return { positions: new Map(sizes), orders }
}

const sizeIn = (state: Account | undefined, asset: string): string =>
  (state && positionOf(state, asset)?.signedSize) ?? '0'

/** The sides of the open orders that do not only reduce, by market. */
export function restingSides(orders: readonly OpenOrder[]): Record<string, ('buy' | 'sell')[]> {
  const sides: Record<string, ('buy' | 'sell')[]> = {}
  for (const { symbol, isBuy, reduceOnly } of orders)
    if (!reduceOnly) sides[symbol] = [...(sides[symbol] ?? []), isBuy ? 'buy' : 'sell']
  return sides
}

/** Whether the venue shows more than a strategy holds, or the other side: somebody else has opened that. */
export function isForeign(shown: string, own: { isLong: boolean; size: string } | undefined): boolean {
  const units = toFixedPoint(shown)
  if (units === 0n) return false
  if (!own || own.isLong !== units > 0n) return true
  return (units < 0n ? -units : units) > toFixedPoint(own.size)
}

/** Returns why an entry may not be made beside what the venue shows. */
export function refusalBeside(
  { asset, side }: Pick<OrderIntent, 'asset' | 'side'>,
  { positions, orders }: VenueView,
  own: { isLong: boolean; size: string } | undefined,
): Refusal | undefined {
  if (isForeign(positions.get(asset) ?? '0', own))
    return {
      code: 'conflict',
      rule: 'foreign_position',
      message: `There is a position in ${asset} that the strategy has not opened`,
    }
  if (restingSides(orders)[asset]?.some((other) => other !== side))
    return { code: 'conflict', message: `An order of the account rests on the other side in ${asset}` }
  return undefined
}
