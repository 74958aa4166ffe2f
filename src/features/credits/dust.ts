import type { Token } from '#kernel/money/chains.ts'

/** Anybody can send any number of tiny payments, so those below this many units are not kept. */
export function dustUnits(
  { decimals }: Pick<Token, 'decimals'>,
  { isNative }: { isNative: boolean },
): bigint {
  // A hundred-thousandth of a coin; a cent of a token with few decimals, such as USDC; a millionth of any other one.
  const places = isNative ? 5 : decimals <= 6 ? 2 : 6
  return 10n ** BigInt(Math.max(decimals - places, 0))
}
