import type { Holdings } from '#features/wallets/holdings.ts'
import { walletsOf } from '#features/wallets/store.ts'
import { transfer } from '#features/wallets/transfer.ts'
import { wallets } from '#features/wallets/wallets.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { transferData } from '#upstreams/evm/erc20.ts'
import type { Prices } from '#upstreams/prices/prices.ts'
import { transferLamports, transferTokens } from '#upstreams/solana/instruction-builder.ts'
import { tokenAccountOf } from '#upstreams/solana/program-address.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import { recipientAddresses, sendingChains } from './recipients.ts'

type WalletParts = { core: Core; chains: Chains; custody: Custody }
type WalletReads = { holdings: Holdings; prices: Prices; changed: (userId: string, chainId: string) => void }

export function openWallets(
  { core, chains, custody }: WalletParts,
  { holdings, prices, changed }: WalletReads,
): Operation[] {
  const { config, db, taskEngine } = core
  return wallets({
    db,
    chainRows: chains.table,
    holdings,
    walletsOf: (userId) => walletsOf(db, userId),
    transfer: transfer({
      db,
      ledger: taskEngine.ledger,
      chains: sendingChains(chains),
      evmOf: (chainId) => chains.ports.get(chainId)?.chain,
      svmOf: (chainId) => chains.svmPorts.get(chainId)?.chain,
      batches: custody.batches,
      svm: custody.svm,
      policy: custody.policy.policy,
      prices,
      parseAddress: recipientAddresses(config, chains).parse,
      transferCall: (token, to, amountUnits) => ({
        to: token,
        value: 0n,
        data: transferData(to, amountUnits),
      }),
      instructions: { transferLamports, transferTokens },
      tokenAccountOf,
      evmAddressOf: custody.evmAddressOf,
      svmAddressOf: custody.svmAddressOf,
      changed,
    }),
  })
}
