import { assetOf, type Chain } from '#kernel/money/chains.ts'
import { sizeClass } from './trigger-price.ts'

/**
 * Which quote decides the price of an order, as text: the trade, its size class, and whether its price is that of the
 * token that is sold or of the one that is bought. Orders with the same key share their quotes.
 */

export type QuotedTrade = {
  /** `chain:address`, as the ledger names tokens. */
  tokenIn: string
  tokenOut: string
  amountInUnits: bigint
  priced: 'in' | 'out'
}

export const tokenMarketPrefix = 'token:'
/** The market of a token: all orders whose trigger is its price. */
export const marketOf = (chain: Pick<Chain, 'id' | 'family'>, token: string): string =>
  `${tokenMarketPrefix}${assetOf(chain, token)}`

export const quoteKeyOf = ({ tokenIn, tokenOut, amountInUnits, priced }: QuotedTrade): string =>
  [tokenIn, tokenOut, sizeClass(amountInUnits), priced].join(' ')

/** The trade at the smallest amount of its class. */
export function tradeOf(quoteKey: string): QuotedTrade {
  const [tokenIn = '', tokenOut = '', amount = '0', priced] = quoteKey.split(' ')
  return { tokenIn, tokenOut, amountInUnits: BigInt(amount), priced: priced === 'in' ? 'in' : 'out' }
}

/** Chain id and address of a token's name. */
export function tokenOf(asset: string): { chainId: string; address: string } {
  const at = asset.indexOf(':')
  return { chainId: asset.slice(0, at), address: asset.slice(at + 1) }
}
