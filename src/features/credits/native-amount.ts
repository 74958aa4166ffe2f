import { mulDiv, toFixedPoint } from '#kernel/money/money.ts'

/** What a pack costs in a native coin. */

/** Of two independent prices; beyond it neither is trusted. */
const differenceMaxPercent = 1n

/** The higher of two prices that agree, so that nobody pays more than either source says; undefined where they do not. */
export function agreedPrice(one: string, other: string): string | undefined {
  const [a, b] = [toFixedPoint(one), toFixedPoint(other)]
  const [low, high, text] = a < b ? [a, b, other] : [b, a, one]
  if (low <= 0n || (high - low) * 100n > low * differenceMaxPercent) return undefined
  return text
}

/** Units of the coin that are worth so many dollars, rounded up. */
export const unitsWorth = (usd: string, price: string, decimals: number): bigint =>
  mulDiv(toFixedPoint(usd), 10n ** BigInt(decimals), toFixedPoint(price), 'up')
