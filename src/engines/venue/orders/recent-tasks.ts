import { fromUnits } from '#kernel/money.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'
import { sizeAfter } from './order-lookup.ts'

/** How tasks that ended a moment ago are found, and the position that one of them left. */

/** Tasks are found by their id, which begins with the time of their creation. */
export const taskAgeMaxMs = 10 * 60_000

/** The least id that a task of that time can have. */
export function minTaskId(at: Date): string {
  const hex = at.getTime().toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

const scale = 18

export type PositionAfter = { signed_size: string; at_ms: number }

/** The position that these fills of one market left; undefined where they do not say it. */
export function positionAfter(fills: readonly Fill[]): PositionAfter | undefined {
  const atMs = Math.max(...fills.map((fill) => fill.atMs))
  const last = fills.filter((fill) => fill.atMs === atMs)
  const [first] = last
  // Fills of one moment have no order among themselves, unless all of them move the position the same way.
  if (!first || last.some(({ isBuy }) => isBuy !== first.isBuy)) return undefined
  const sizes = last.map(sizeAfter)
  const farthest = sizes.reduce((best, each) => (each > best === first.isBuy ? each : best))
  return { signed_size: fromUnits(farthest, scale), at_ms: atMs }
}
