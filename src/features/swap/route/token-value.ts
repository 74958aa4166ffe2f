import type { SwapDeps } from '#features/swap/deps.ts'
import type { TokenAt } from '#kernel/contract/token-ref.ts'
import { valueMicros } from '#kernel/money/money.ts'

export const priceKeyOf = ({ chain, token, isNative }: TokenAt): string =>
  isNative ? chain.native.priceId : `${chain.llamaSlug}:${token.address}`

/** Returns the value of the units in micro-dollars at the price source, or null if the token has no price. */
export async function valueAtPrice(
  { prices }: Pick<SwapDeps, 'prices'>,
  token: TokenAt,
  amountUnits: bigint,
): Promise<bigint | null> {
  const price = (await prices.get([priceKeyOf(token)])).get(priceKeyOf(token))
  return price ? valueMicros(amountUnits, token.token.decimals, price.price, 'up') : null
}
