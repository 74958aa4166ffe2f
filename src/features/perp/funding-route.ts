import { type Fault, invalid } from '#kernel/fault.ts'
import { insufficientBalance } from '#kernel/insufficient-balance.ts'
import { usdcDecimals } from '#kernel/money.ts'
import type { LedgerToken } from '#kernel/task.ts'
import type { FundingRoute } from './limits.ts'

type Fields = { chain: string; token: string }

/** Throws 422 with the possible routes. */
export function assertRoute(
  route: FundingRoute,
  given: { chain: string; token: string },
  fields: Fields,
): void {
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

/** Accepts a chain id as text or number, or a chain name. */
export function chainIdOf(chain: string | number | undefined, route: FundingRoute): string {
  if (chain === undefined) return route.chainId
  const text = String(chain).toLowerCase()
  return text === 'arbitrum' || text === 'arbitrum one' ? route.chainId : text
}

/** The token that the bridge accepts: USDC with six decimals. */
export const walletToken = ({ symbol, token }: FundingRoute): LedgerToken => ({
  symbol,
  decimals: usdcDecimals,
  address: token,
})

export const depositShortage = (route: FundingRoute, requiredUnits: bigint, availableUnits: bigint): Fault =>
  insufficientBalance(walletToken(route), { what: 'The deposit', requiredUnits, availableUnits })
