import type { Chain } from '#kernel/chains.ts'
import { implement } from '#kernel/operation.ts'
import { contract } from './contract.ts'
import type { Holdings } from './holdings.ts'
import type { Wallet } from './store.ts'

type WalletsDeps = {
  chainRows: readonly Pick<Chain, 'id' | 'family'>[]
  holdings: Holdings
  walletsOf: (userId: string) => Promise<Wallet[]>
}

const kindsPerUser = 2
/** Older clients send the numbers. */
const families = { evm: 'evm', '0': 'evm', solana: 'solana', '1': 'solana' } as const

export const wallets = ({ chainRows, holdings, walletsOf }: WalletsDeps) =>
  implement(contract, {
    async list(_input, { userId }) {
      const own = await walletsOf(userId)
      return {
        wallets: own.map(({ id, kind, address }) => {
          const family = kind === 'evm' ? ('evm' as const) : ('solana' as const)
          const served = chainRows.filter((chain) => chain.family === family)
          return {
            wallet_id: id,
            address,
            chain_type: family,
            supported_chain_ids: served.map((chain) => chain.id),
          }
        }),
        provisioning: own.length < kindsPerUser,
      }
    },

    holdings: async ({ chain_type, event }, { userId }) =>
      holdings.forUser(userId, {
        family: chain_type && families[chain_type],
        force: event === 'wallet-refresh',
      }),
  })
