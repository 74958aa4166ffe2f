import { type Fault, invalid } from '#kernel/contract/fault.ts'
import { chainByRef, tokenByRef } from '#kernel/contract/token-ref.ts'
import { type Chain, sameAddress } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { usdcDecimals } from '#kernel/money/money.ts'
import type { LedgerToken } from '#kernel/task/task.ts'

export type FundingRoute = { chainId: string; symbol: string; token: string; bridge: string }

type Fields = { chain: string; token: string }
/**
 * Chain and token as the request names them. If the chain is absent, it is the bridge's chain; if the token is absent,
 * it is the token of that chain with the symbol of the bridge's token.
 */
export type NamedToken = { chain: string | number | undefined; token: string | undefined }

/**
 * Whether the request names the bridge's chain and token. `chains` lists the chains for swaps; without this list, any
 * other chain or token is refused.
 */
export function isBridgeToken(
  route: FundingRoute,
  { chain, token = route.symbol }: NamedToken,
  { chains, fields }: { chains: readonly Chain[] | undefined; fields: Fields },
): boolean {
  if (!chains) {
    assertRoute(route, { chain: chainIdOf(chain, route), token }, fields)
    return true
  }
  const named = chainByRef(chains, chain ?? route.chainId, fields.chain)
  if (named.id !== route.chainId) return false
  const found = tokenByRef(named, token, fields.token)
  return 'token' in found && sameAddress(named, found.token.address, route.token)
}

/** Throws a 422 that lists the possible routes, unless chain and token are those of the bridge. */
function assertRoute(route: FundingRoute, given: { chain: string; token: string }, fields: Fields): void {
  const possible = [{ chain_id: route.chainId, token: route.symbol }]
  if (given.chain !== route.chainId)
    throw invalid(
      fields.chain,
      'unsupported_chain',
      `Input should be ${route.chainId}: the venue supports no other chain`,
      { possible },
    )
  const names = [route.symbol.toLowerCase(), route.token.toLowerCase()]
  if (!names.includes(given.token.toLowerCase()))
    throw invalid(
      fields.token,
      'unsupported_asset',
      `Input should be ${route.symbol}: the venue supports no other token on chain ${route.chainId}`,
      { possible },
    )
}

function chainIdOf(chain: string | number | undefined, route: FundingRoute): string {
  if (chain === undefined) return route.chainId
  const text = String(chain).toLowerCase()
  return text === 'arbitrum' || text === 'arbitrum one' ? route.chainId : text
}

export const walletToken = ({ symbol, token }: FundingRoute): LedgerToken => ({
  symbol,
  decimals: usdcDecimals,
  address: token,
})

export const depositShortage = (route: FundingRoute, requiredUnits: bigint, availableUnits: bigint): Fault =>
  insufficientBalance(
    { ...walletToken(route), chainId: route.chainId },
    { what: 'The deposit', requiredUnits, availableUnits },
  )
