import { type Chain, toAssetId } from '#kernel/money/chains.ts'
import { sizeClass } from './trigger-price.ts'

/**
 * A quote key names the quote that decides the price of an order: the trade, its size class, and whether the
 * price is that of the sold or of the bought token. Orders with the same key share their quotes.
 */

export type QuotedTrade = {
  /** The sold token as `chain:address`, as the ledger names assets. */
  tokenIn: string
  tokenOut: string
  amountInUnits: bigint
  priced: 'in' | 'out'
}

export const tokenMarketPrefix = 'token:'
/** Returns the market of a token, which contains all orders that the token's price triggers. */
export const marketOf = (chain: Pick<Chain, 'id' | 'family'>, token: string): string =>
  `${tokenMarketPrefix}${toAssetId(chain, token)}`

export const quoteKeyOf = ({ tokenIn, tokenOut, amountInUnits, priced }: QuotedTrade): string =>
  [tokenIn, tokenOut, sizeClass(amountInUnits), priced].join(' ')

/** Returns the trade that a quote key names, at the smallest amount of its size class. */
export function tradeOf(quoteKey: string): QuotedTrade {
  const [tokenIn = '', tokenOut = '', amount = '0', priced] = quoteKey.split(' ')
  return { tokenIn, tokenOut, amountInUnits: BigInt(amount), priced: priced === 'in' ? 'in' : 'out' }
}

export function parseAssetId(asset: string): { chainId: string; address: string } {
  const at = asset.indexOf(':')
  return { chainId: asset.slice(0, at), address: asset.slice(at + 1) }
}
