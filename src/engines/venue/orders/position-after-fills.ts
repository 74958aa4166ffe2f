import { fromFixedPoint } from '#kernel/money/money.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'
import { sizeAfter } from './consistent-reads.ts'

export type PositionAfter = { signed_size: string; at_ms: number }

/** Returns the position after the given fills of one market, or undefined if the fills do not determine it. */
export function positionAfter(fills: readonly Fill[]): PositionAfter | undefined {
  const atMs = Math.max(...fills.map((fill) => fill.atMs))
  const last = fills.filter((fill) => fill.atMs === atMs)
  const [first] = last
  // Fills with the same timestamp have no order among themselves, unless all have the same side.
  if (!first || last.some(({ isBuy }) => isBuy !== first.isBuy)) return undefined
  const sizes = last.map(sizeAfter)
  const farthest = sizes.reduce((best, each) => (each > best === first.isBuy ? each : best))
  return { signed_size: fromFixedPoint(farthest), at_ms: atMs }
}

export function positionNote(
  market: 'perp' | 'spot',
  fills: readonly Fill[],
): { position_after?: PositionAfter } {
  const after = market === 'perp' ? positionAfter(fills) : undefined
  return after ? { position_after: after } : {}
}
