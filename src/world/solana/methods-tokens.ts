import { viewingOf } from './account-view.ts'
import type { Chain } from './chain.ts'
import { keyed } from './methods-accounts.ts'
import { withContext } from './methods-cluster.ts'
import { addressAt, addressOf, commitmentOf, configAt, type Params, recordOf } from './params.ts'
import { isTokenProgram } from './programs.ts'
import { invalidParams } from './rpc-error.ts'
import { readMint, readTokenAccount, tokenKind, uiAmount } from './token-layout.ts'

const largestMax = 20
const ownedMax = 10_000

export const tokenMethods = (chain: Chain) => {
  const mintAt = (address: string) => {
    const account = chain.account(address)
    if (account === undefined) throw invalidParams('Invalid param: could not find mint')
    if (tokenKind(account) !== 'mint') throw invalidParams('Invalid param: not a Token mint')
    return { program: account.owner, ...readMint(account.data) }
  }
  const tokenAccountAt = (address: string) => {
    const account = chain.account(address)
    if (account === undefined) throw invalidParams('Invalid param: could not find account')
    if (tokenKind(account) !== 'account') throw invalidParams('Invalid param: not a Token account')
    return readTokenAccount(account.data)
  }

  /** The filter names a mint or a token program; a program must be one of the two. */
  const wanted = (value: unknown): ((address: string) => boolean) => {
    const { mint, programId } = recordOf(value)
    if (mint !== undefined) {
      const address = addressOf(mint)
      mintAt(address)
      return (account) => tokenAccountAt(account).mint === address
    }
    const program = addressOf(programId)
    if (!isTokenProgram(program)) throw invalidParams('Invalid param: unrecognized Token program id')
    return (account) => chain.account(account)?.owner === program
  }

  return {
    getTokenAccountBalance: (params: Params) => {
      commitmentOf(configAt(params, 1))
      const { mint, amount } = tokenAccountAt(addressAt(params, 0))
      return withContext(chain, uiAmount(amount, mintAt(mint).decimals))
    },
    getTokenSupply: (params: Params) => {
      commitmentOf(configAt(params, 1))
      const { supply, decimals } = mintAt(addressAt(params, 0))
      return withContext(chain, uiAmount(supply, decimals))
    },
    getTokenAccountsByOwner: (params: Params) => {
      const config = configAt(params, 2)
      commitmentOf(config)
      const owner = addressAt(params, 0)
      const found = chain.tokens.ofOwner(owner).slice(0, ownedMax).filter(wanted(params[1]))
      return withContext(chain, keyed(chain, found, viewingOf(config)))
    },
    getTokenLargestAccounts: (params: Params) => {
      commitmentOf(configAt(params, 1))
      const mint = addressAt(params, 0)
      const { decimals } = mintAt(mint)
      const largest = chain.tokens
        .ofMint(mint)
        .map((address) => ({ address, amount: tokenAccountAt(address).amount }))
        .sort((a, b) => (a.amount === b.amount ? 0 : a.amount < b.amount ? 1 : -1))
        .slice(0, largestMax)
      return withContext(
        chain,
        largest.map(({ address, amount }) => ({ address, ...uiAmount(amount, decimals) })),
      )
    },
  }
}
