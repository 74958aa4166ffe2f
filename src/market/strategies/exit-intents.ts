import type { HeldPosition, OrderIntent, StrategyState } from './strategy.ts'

/** The order that ends a position: it only reduces, and it is sent before the protective orders are cancelled. */
export const exitIntent = (asset: string, { side, size }: HeldPosition): OrderIntent => ({
  asset,
  side: side === 'long' ? 'sell' : 'buy',
  order_type: 'market',
  size,
  reduce_only: true,
})

export const positionsExit = ({ positions }: StrategyState): OrderIntent[] =>
  Object.entries(positions)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([asset, position]) => exitIntent(asset, position))
