import { isNativeCoin } from '#kernel/contract/token-ref.ts'
import { type Chain, toAssetId } from '#kernel/money/chains.ts'

/** This module checks addresses of tokens, and whether the operator has reviewed a token. */

const evmAddress = /^0x[0-9a-fA-F]{40}$/

/** Whether a text is an address on Solana; the adapter of Solana implements it. */
export type IsSolanaAddress = (text: string) => boolean

export const isAddressOn = (chain: Chain, text: string, isSolanaAddress: IsSolanaAddress): boolean =>
  chain.family === 'evm' ? evmAddress.test(text) : isSolanaAddress(text)

export const keyOf = (chain: Chain, address: string): string => toAssetId(chain, address)

/** Whether the operator has reviewed the token: the native coin, USDC and the others of the chain's table. */
export function isListed(chain: Chain, address: string): boolean {
  const key = keyOf(chain, address)
  return isNativeCoin(chain, address) || chain.tokens.some((token) => keyOf(chain, token.address) === key)
}
