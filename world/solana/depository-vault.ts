import type { Chain } from './chain.ts'
import { depositoryVault } from './depository-accounts.ts'
import { grantOnce } from './faucet.ts'
import { associatedTokenAddress } from './keys.ts'
import { worldTokens } from './tokens.ts'

/** The vault has an account of each token that is traded; the first deposit of another one would have to open it. */
export const openVaultAccounts = (chain: Chain): void => {
  for (const token of worldTokens) {
    const { mint, program, symbol, isLaunched } = token
    if (isLaunched || chain.account(associatedTokenAddress(depositoryVault, mint, program))) continue
    grantOnce(chain, { address: depositoryVault, token, amountUnits: 0n, id: `depository vault ${symbol}` })
  }
}
