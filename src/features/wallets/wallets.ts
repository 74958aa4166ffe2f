import { subjectOf } from '#engines/agent-links/owners.ts'
import { kindsPerUser, type Wallet } from '#engines/custody/wallet-store.ts'
import { implement } from '#kernel/contract/operation.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { contract } from './contract.ts'
import { createPortfolio, type PortfolioDeps } from './portfolio.ts'
import { createTransfer, type TransferDeps } from './transfer.ts'

type WalletsDeps = TransferDeps &
  PortfolioDeps & {
    chainRows: readonly Pick<Chain, 'id' | 'family'>[]
    walletsOf: (userId: string) => Promise<Wallet[]>
  }

/** Older clients send the numbers `0` and `1` for the families of wallets. */
const families = { evm: 'evm', '0': 'evm', solana: 'solana', '1': 'solana' } as const

export const walletFacts = { kinds: ['evm', 'solana'], transfer_out: true }

export function createWallets(deps: WalletsDeps) {
  const { db, chainRows, holdings, walletsOf } = deps
  return implement(contract, {
    async list({ for_agent }, caller) {
      const { userId } = await subjectOf(db, caller, for_agent)
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

    transfer: createTransfer(deps),
    portfolio: createPortfolio(deps),

    async holdings({ chain_type, event, for_agent }, caller) {
      const { userId } = await subjectOf(db, caller, for_agent)
      return holdings.forUser(userId, {
        family: chain_type && families[chain_type],
        force: event === 'wallet-refresh',
      })
    },
  })
}
