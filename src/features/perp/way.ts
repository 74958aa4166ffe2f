import { type Fault, invalid } from '#kernel/fault.ts'
import { usdDecimals } from '#kernel/money.ts'
import { insufficientBalance } from '#kernel/shortage.ts'
import type { LedgerToken } from '#kernel/task.ts'
import type { Way } from './limits.ts'

type Fields = { chain: string; token: string }

/** Throws 422 and names what is possible. A swap in front of the bridge, or behind it, will be chosen here. */
export function demandWay(way: Way, given: { chain: string; token: string }, fields: Fields): void {
  const possible = [{ chain_id: way.chainId, token: way.symbol }]
  if (given.chain !== way.chainId)
    throw invalid(
      `body.${fields.chain}`,
      'unsupported_chain',
      `Only chain ${way.chainId} is connected to the venue`,
      { possible },
    )
  const names = [way.symbol.toLowerCase(), way.token.toLowerCase()]
  if (!names.includes(given.token.toLowerCase()))
    throw invalid(
      `body.${fields.token}`,
      'unsupported_asset',
      `The venue takes ${way.symbol} on chain ${way.chainId} only`,
      { possible },
    )
}

/** Chains are named by id, as text or number, or by name. */
export function chainIdOf(chain: string | number | undefined, way: Way): string {
  if (chain === undefined) return way.chainId
  const text = String(chain).toLowerCase()
  return text === 'arbitrum' || text === 'arbitrum one' ? way.chainId : text
}

/** The token that the bridge takes from the wallet: dollars with six decimals. */
export const walletToken = ({ symbol, token }: Way): LedgerToken => ({
  symbol,
  decimals: usdDecimals,
  address: token,
})

export const depositShortage = (way: Way, requiredUnits: bigint, availableUnits: bigint): Fault =>
  insufficientBalance(walletToken(way), { what: 'The deposit', requiredUnits, availableUnits })
