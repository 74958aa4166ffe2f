import type { Token } from '#kernel/money/chains.ts'

/** Returns the units below which a payment is ignored, because anybody can send any number of tiny payments. */
export function dustUnits(
  { decimals }: Pick<Token, 'decimals'>,
  { isNative }: { isNative: boolean },
): bigint {
  // Dust is less than 0.00001 native coins, 0.01 of a token with few decimals such as USDC, or 0.000001 of any other.
  const places = isNative ? 5 : decimals <= 6 ? 2 : 6
  return 10n ** BigInt(Math.max(decimals - places, 0))
}
