export type SharePrice = { at: Date; price: bigint }

const hourMs = 3_600_000
export const dayMs = 24 * hourMs
/** Hourly snapshots carry the times of their blocks, which are not exactly an hour apart. */
const spanMinMs = hourMs - 60_000
const yearMs = 365 * dayMs
const scale = 10n ** 15n

/**
 * Returns the yield compounded over a year, (P1 / P0) ^ (365 d / dt) - 1; null until an hour of prices is stored.
 * The growth is exact and becomes a float only as a small rate, from which no money is computed.
 */
export function apyOf(prices: readonly SharePrice[], windowMs: number): number | null {
  const last = prices.at(-1)
  if (!last) return null
  const from = last.at.getTime() - windowMs
  const first = prices.find((each) => each.at.getTime() >= from)
  if (!first || first.price <= 0n) return null
  const spanMs = last.at.getTime() - first.at.getTime()
  if (spanMs < spanMinMs) return null
  const growth = Number(((last.price - first.price) * scale) / first.price) / Number(scale)
  const apy = Math.expm1(Math.log1p(growth) * (yearMs / spanMs))
  return Number.isFinite(apy) ? Math.round(apy * 1e8) / 1e8 : null
}
