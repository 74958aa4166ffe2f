import { mulDiv, toFixedPoint } from '#kernel/money/money.ts'

/** If two independent prices differ by more than this percentage, neither is trusted. */
const differenceMaxPercent = 1n

/** Returns the higher of two agreeing prices, so that nobody pays more than either source says; otherwise undefined. */
export function agreedPrice(one: string, other: string): string | undefined {
  const [a, b] = [toFixedPoint(one), toFixedPoint(other)]
  const [low, high, text] = a < b ? [a, b, other] : [b, a, one]
  if (low <= 0n || (high - low) * 100n > low * differenceMaxPercent) return undefined
  return text
}

/** Returns the units of the coin that are worth this many dollars, rounded up. */
export const unitsWorth = (usd: string, price: string, decimals: number): bigint =>
  mulDiv(toFixedPoint(usd), 10n ** BigInt(decimals), toFixedPoint(price), 'up')
