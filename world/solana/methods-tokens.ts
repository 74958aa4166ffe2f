import { readViewOptions } from './account-view.ts'
import type { Chain, View } from './chain.ts'
import { keyedAccounts } from './methods-accounts.ts'
import { withContext } from './methods-cluster.ts'
import { addressAt, addressOf, commitmentOf, configAt, type Params, recordOf } from './params.ts'
import { isTokenProgram } from './programs.ts'
import { invalidParams } from './rpc-error.ts'
import { readMint, readTokenAccount, tokenKind, uiAmount } from './token-layout.ts'

const largestMax = 20
const ownedMax = 10_000

const mintAt = (view: View, address: string) => {
  const account = view.account(address)
  if (account === undefined) throw invalidParams('Invalid param: could not find mint')
  if (tokenKind(account) !== 'mint') throw invalidParams('Invalid param: not a Token mint')
  return { program: account.owner, ...readMint(account.data) }
}

const tokenAccountAt = (view: View, address: string) => {
  const account = view.account(address)
  if (account === undefined) throw invalidParams('Invalid param: could not find account')
  if (tokenKind(account) !== 'account') throw invalidParams('Invalid param: not a Token account')
  return readTokenAccount(account.data)
}

/** The filter names a mint or a token program; a program must be one of the two. */
const tokenFilter = (view: View, value: unknown): ((address: string) => boolean) => {
  const { mint, programId } = recordOf(value)
  if (mint !== undefined) {
    const address = addressOf(mint)
    mintAt(view, address)
    return (account) => tokenAccountAt(view, account).mint === address
  }
  const program = addressOf(programId)
  if (!isTokenProgram(program)) throw invalidParams('Invalid param: unrecognized Token program id')
  return (account) => view.account(account)?.owner === program
}

export const tokenMethods = (chain: Chain) => {
  const viewAt = (params: Params, at: number) => chain.view(commitmentOf(configAt(params, at)))
  return {
    getTokenAccountBalance: (params: Params) => {
      const view = viewAt(params, 1)
      const { mint, amount } = tokenAccountAt(view, addressAt(params, 0))
      return withContext(view.slot, uiAmount(amount, mintAt(view, mint).decimals))
    },
    getTokenSupply: (params: Params) => {
      const view = viewAt(params, 1)
      const { supply, decimals } = mintAt(view, addressAt(params, 0))
      return withContext(view.slot, uiAmount(supply, decimals))
    },
    getTokenAccountsByOwner: (params: Params) => {
      const view = viewAt(params, 2)
      const owner = addressAt(params, 0)
      const found = view.tokensOfOwner(owner).slice(0, ownedMax).filter(tokenFilter(view, params[1]))
      return withContext(view.slot, keyedAccounts(view, found, readViewOptions(configAt(params, 2))))
    },
    getTokenLargestAccounts: (params: Params) => {
      const view = viewAt(params, 1)
      const mint = addressAt(params, 0)
      const { decimals } = mintAt(view, mint)
      const largest = view
        .tokensOfMint(mint)
        .map((address) => ({ address, amount: tokenAccountAt(view, address).amount }))
        .sort((a, b) => (a.amount === b.amount ? 0 : a.amount < b.amount ? 1 : -1))
        .slice(0, largestMax)
      return withContext(
        view.slot,
        largest.map(({ address, amount }) => ({ address, ...uiAmount(amount, decimals) })),
      )
    },
  }
}
