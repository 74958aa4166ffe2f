import type { Ledger } from '#durable/ledger/ledger.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { SvmTransactions } from '#engines/svm-transaction/transaction.ts'
import type { SwapHooks } from '#features/hooks/swap-hooks.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Random } from '#kernel/id.ts'
import type { Chain, SwapContracts } from '#kernel/money/chains.ts'
import type { SwapProvider } from '#kernel/money/swap-provider.ts'
import type { SecurityVerdicts } from '#kernel/money/token-security.ts'
import type { DecodedCall, EvmCall, Policy } from '#kernel/task/signer.ts'
import type { TaskView, Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm, Log } from '#upstreams/evm/evm.ts'
import type { MinimumOut } from '#upstreams/evm/relay-calls.ts'
import type { BridgeDepositLog, WrapLog } from '#upstreams/evm/swap-calls.ts'
import type { Prices } from '#upstreams/prices/prices.ts'
import type { Solana } from '#upstreams/solana/solana.ts'
import type { SvmRouteRules } from './route/svm-route-checks.ts'
import type { Arrivals } from './settle/arrivals.ts'

export type SwapCalls = {
  decode(call: EvmCall): DecodedCall | undefined
  approve(token: string, spender: string, amountUnits: bigint): EvmCall
  balanceOf(token: string, owner: string): EvmCall
  nativeBalanceOf(chain: Pick<Evm, 'row'>, owner: string): EvmCall
  /**
   * Adds a payout of the minimum output to a router call that enforces no minimum itself, so that the call reverts if
   * it yields less.
   */
  withMinimum(call: EvmCall, minimum: MinimumOut): EvmCall
  wrapsOf(logs: readonly Log[], contracts: SwapContracts): WrapLog[]
  bridgeDepositsOf(logs: readonly Log[], depository: string): BridgeDepositLog[]
}

export type SwapChain = Pick<Evm, 'row' | 'head' | 'balances' | 'simulate' | 'transfers' | 'tokenFacts'>

export type SwapDeps = {
  db: Queryable
  /** The providers in order of preference: the earlier one wins if two offer the same. */
  providers: readonly SwapProvider[]
  chains: readonly Chain[]
  evmOf(chainId: string): SwapChain | undefined
  /** The adapter of Solana; undefined if Solana is not configured. */
  solana: Pick<Solana, 'row' | 'slot' | 'balance' | 'rentLamports'> | undefined
  svmRules: SvmRouteRules | undefined
  svm: SvmTransactions
  arrivals: Arrivals
  calls: SwapCalls
  batches: EvmBatches
  ledger: Pick<Ledger, 'balance'>
  policy: Pick<Policy, 'check'>
  remainingUsd(userId: string): Promise<string>
  walletsOf(userId: string): Promise<Wallet[]>
  prices: Pick<Prices, 'get'>
  verdicts: SecurityVerdicts
  hooks: SwapHooks
  /** Starts to look for payments that arrive after the end of the swap; runs in the commit of that end. */
  watchLatePayment(tx: Tx, task: TaskView<object>): Promise<void>
  /** Called when a receipt changed the balances of a user's wallet. */
  changed(userId: string, chainId: string): void
  clock: Clock
  random: Random
}
