import { type Chain, nativeSentinel, sameAddress, sellsTokens, type Token } from '#kernel/money/chains.ts'
import { Fault, invalid } from './fault.ts'

/** Relay's id of Solana, which some clients send. */
const solanaAlias = '792703809'
const evmAddress = /^0x[0-9a-fA-F]{40}$/
const solanaAddress = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/
/** The address that some clients and providers use for the native coin of an EVM chain. */
const zeroAddress = '0x0000000000000000000000000000000000000000'

type ChainNames = Pick<Chain, 'id' | 'name' | 'family' | 'displayName'>

export function findChain<Row extends ChainNames>(
  chains: readonly Row[],
  ref: string | number,
): Row | undefined {
  const text = String(ref).trim().toLowerCase()
  return chains.find(
    ({ id, name, displayName, family }) =>
      id === text ||
      name === text ||
      displayName.toLowerCase() === text ||
      (family === 'solana' && text === solanaAlias),
  )
}

/** Finds a chain by id or name; throws a 422 on `field` if the chain is not served. */
export function chainByRef<Row extends ChainNames>(
  chains: readonly Row[],
  ref: string | number,
  field: string,
): Row {
  const found = findChain(chains, ref)
  if (found) return found
  throw unservedChain(chains, field)
}

export const unservedChain = (chains: readonly ChainNames[], field: string): Fault =>
  invalid(field, 'unsupported_chain', 'Input should be the id or name of a chain that is served', {
    possible: chains.map(({ id }) => id),
  })

/** The error of a task or order whose chain the operator has since removed from the settings. */
export const chainNotServed = (chainId: string): Fault =>
  new Fault(
    'unavailable',
    `Chain ${chainId} is not served now: retry once the operator serves it again. \`chains_list\` shows the chains that are served`,
  )

export type FoundToken = { token: Token; isNative: boolean } | { unlisted: string }

/**
 * Whether an address is that of the native coin, its sentinel on any chain, or the zero address of an EVM chain.
 */
export const isNativeCoin = (chain: Pick<Chain, 'family' | 'native'>, address: string): boolean =>
  address.toLowerCase() === nativeSentinel.toLowerCase() ||
  (chain.family === 'evm' && address === zeroAddress) ||
  sameAddress(chain, address, chain.native.address)

/** Finds a listed token by symbol or address, or the native coin; any other address is returned as unlisted. */
export function tokenByRef(
  chain: Pick<Chain, 'family' | 'native' | 'tokens' | 'displayName'>,
  ref: string,
  field: string,
): FoundToken {
  const text = ref.trim()
  if (isNativeCoin(chain, text)) return { token: chain.native, isNative: true }
  const isAddress = (chain.family === 'evm' ? evmAddress : solanaAddress).test(text)
  if (isAddress) {
    const listed = chain.tokens.find(({ address }) => sameAddress(chain, address, text))
    return listed ? { token: listed, isNative: false } : { unlisted: text }
  }
  const symbol = text.toLowerCase()
  const named = [chain.native, ...chain.tokens].filter((each) => each.symbol.toLowerCase() === symbol)
  const [only, ...others] = named
  if (others.length > 0)
    throw invalid(
      field,
      'ambiguous_symbol',
      'Several tokens have this symbol: name the token by its address',
      {
        possible: named.map(({ address }) => address),
      },
    )
  if (only) return { token: only, isNative: only === chain.native }
  throw invalid(
    field,
    'unsupported_asset',
    `Input should be the address of a token on ${chain.displayName}, or the symbol of a listed one`,
  )
}

/** Reads what a token's contract says about itself; returns undefined if the address is no token contract. */
export type TokenFacts = (chainId: string, address: string) => Promise<Token | undefined>

/** The texts by which a request names a chain and a token, and the fields that hold these texts. */
type TokenRef = { chain: string | number; chainField: string; token: string; field: string }
export type TokenAt = { chain: Chain; token: Token; isNative: boolean }

export type ServedTokens = { group: string; chains: readonly Chain[]; tokenFacts: TokenFacts }

/** Finds a token on a chain that the group serves; throws a 422 on the field that is wrong. */
export async function sellableToken(
  { group, chains, tokenFacts }: ServedTokens,
  { chain: chainRef, chainField, token: tokenRef, field }: TokenRef,
): Promise<TokenAt> {
  const chain = chainByRef(chains, chainRef, chainField)
  if (!sellsTokens(chain))
    throw invalid(
      chainField,
      'unsupported_chain',
      `${group} do not serve ${chain.displayName}: \`chains_list\` shows what each chain serves`,
    )
  const found = tokenByRef(chain, tokenRef, field)
  if ('token' in found) return { chain, ...found }
  const token = await tokenFacts(chain.id, found.unlisted)
  if (token) return { chain, token, isNative: false }
  if (chain.family === 'evm')
    throw invalid(field, 'unsupported_asset', `Input should be a token on ${chain.displayName}`)
  const possible = [chain.native, ...chain.tokens].map(({ symbol }) => symbol)
  throw invalid(field, 'unsupported_asset', `Input should be a listed token of ${chain.displayName}`, {
    possible,
  })
}
