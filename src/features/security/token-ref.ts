import { isNativeCoin } from '#kernel/contract/token-ref.ts'
import { assetOf, type Chain } from '#kernel/money/chains.ts'

/** Which token is meant by a chain and an address, in the spellings that are accepted. */

const evmAddress = /^0x[0-9a-fA-F]{40}$/

/** Addresses of Solana are read by its adapter. */
export type IsSolanaAddress = (text: string) => boolean

export const isAddressOn = (chain: Chain, text: string, isSolanaAddress: IsSolanaAddress): boolean =>
  chain.family === 'evm' ? evmAddress.test(text) : isSolanaAddress(text)

export const keyOf = (chain: Chain, address: string): string => assetOf(chain, address)

/** Tokens that the operator has reviewed: the native coin, USDC and the others of the chain's table. */
export function isListed(chain: Chain, address: string): boolean {
  const key = keyOf(chain, address)
  return isNativeCoin(chain, address) || chain.tokens.some((token) => keyOf(chain, token.address) === key)
}
