import { contracts } from './chain/addresses.ts'
import type { Address, ExchangeName } from './chain/chain-terms.ts'
import { dollars, ledgerBalance } from './ledger.ts'
import { outcomeByToken } from './markets.ts'
import type { Venue } from './venue.ts'

export type FundsRead = { balance: bigint; allowances: Record<string, bigint> }

export type AssetType = 'COLLATERAL' | 'CONDITIONAL' | 'CONDITIONAL-V2'

/** What the matching side reads of the chain. */
export type ChainPort = {
  /** Pass no token for collateral. */
  funds: (wallet: Address, asset: AssetType, token: string, how: 'read' | 'update') => Promise<FundsRead>
  isDeployed: (wallet: Address) => Promise<boolean>
}

export const maximum = 2n ** 256n - 1n

const exchanges: readonly ExchangeName[] = ['standardExchange', 'negRiskExchange', 'exchangeV3']

/** The spenders that a client may need, by kind of asset. */
export const spendersOf = (asset: AssetType): readonly Address[] => {
  if (asset === 'COLLATERAL') return exchanges.map((name) => contracts[name])
  if (asset === 'CONDITIONAL-V2') return [contracts.exchangeV3]
  return [contracts.standardExchange, contracts.negRiskExchange, contracts.negRiskAdapter]
}

export const assetOf = (token: string): AssetType =>
  outcomeByToken(token)?.market.chain.protocol === 'v2' ? 'CONDITIONAL-V2' : 'CONDITIONAL'

/** Without a chain: every wallet exists, and has approved everything. */
export const ledgerPort = (venue: Venue): ChainPort => ({
  funds: async (wallet, asset, token) => ({
    balance: ledgerBalance(venue, wallet, asset === 'COLLATERAL' ? dollars : token),
    allowances: Object.fromEntries(spendersOf(asset).map((spender) => [spender, maximum])),
  }),
  isDeployed: async () => true,
})
