import { ownCallsOf } from '#engines/chain-arrivals/own-batches.ts'
import { readWallets } from '#engines/custody/wallet-store.ts'
import type { SwapExecution } from '#engines/trigger-orders/swap-port.ts'
import type { SwapCalls, SwapDeps } from '#features/swap/deps.ts'
import { createSwapExecution } from '#features/swap/order-swaps.ts'
import { swapDeletions } from '#features/swap/retention.ts'
import { swapFacts } from '#features/swap/route/limits.ts'
import { createArrivals, type SolanaArrivals, unnumberedGains } from '#features/swap/settle/arrivals.ts'
import { createLatePaymentKind, createLatePaymentWatch } from '#features/swap/settle/late-payment.ts'
import { createSwap } from '#features/swap/swap.ts'
import { createSwapLegs, type SwapLegs } from '#features/swap/swap-as-leg.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { nativeBalanceData } from '#upstreams/evm/multicall-abi.ts'
import { withMinimum } from '#upstreams/evm/relay-calls.ts'
import { bridgeDepositsOf, wrapsOf } from '#upstreams/evm/swap-calls.ts'
import { approveData, balanceData } from '#upstreams/evm/token-calls.ts'
import { createLifi } from '#upstreams/lifi/lifi.ts'
import { createRelay } from '#upstreams/relay/relay.ts'
import { paymentsTo } from '#upstreams/solana/incoming-transfers.ts'
import { depositAtDepository } from '#upstreams/solana/instruction-builder.ts'
import { svmDecoder } from '#upstreams/solana/instruction-decoder.ts'
import type { Chains } from './chains.ts'
import { lifiQuotes, relayQuotes } from './quote-rate-limits.ts'
import type { Section } from './section.ts'
import type { SharedParts } from './section-parts.ts'
import { bridgeOf } from './settings.ts'

type SwapParts = Pick<SharedParts, 'core' | 'urls' | 'net' | 'chains' | 'custody'> &
  Pick<SwapDeps, 'prices' | 'verdicts' | 'hooks' | 'changed'>

const calls: SwapCalls = {
  decode: evmCrypto.decodeCall,
  approve: (token, spender, amountUnits) => ({
    to: token,
    value: 0n,
    data: approveData(spender, amountUnits),
  }),
  balanceOf: (token, owner) => ({ to: token, value: 0n, data: balanceData(owner) }),
  nativeBalanceOf: ({ row }, owner) => ({ to: row.multicall, value: 0n, data: nativeBalanceData(owner) }),
  withMinimum,
  wrapsOf,
  bridgeDepositsOf,
}

/** Returns what a payment on Solana brought, by the balances that the chain recorded before and after it. */
const solanaArrivals = ({ svmPorts }: Chains): SolanaArrivals => ({
  async of({ chainId, txHash, owner }) {
    const chain = svmPorts.get(chainId)?.chain
    const landed = await chain?.transaction(txHash, chain.row.finality)
    if (!chain || !landed || landed.failure !== undefined) return undefined
    const paid = paymentsTo(landed, owner, chain.row.native.address)
    return {
      gained: [...paid].flatMap(([token, units]) => unnumberedGains(token, units, token)),
      isFinal: true,
      block: Number(landed.slot),
      at: landed.blockSeconds === undefined ? undefined : new Date(landed.blockSeconds * 1_000),
    }
  },
})

export type Swaps = Section & { execution?: SwapExecution; legs?: SwapLegs }

const unserved: Swaps = { part: 'trading', facts: swapFacts, deletions: swapDeletions }

/** Opens the section of swaps, which has no operations where no provider is configured. */
export function openSwap({ core, urls, net, chains, custody, ...given }: SwapParts): Swaps {
  const { config, db, clock, random, taskEngine } = core
  const { table, ports, svmPorts } = chains
  const shared = { net, chains: table, clock }
  const providers = [
    ...(urls.relay
      ? [
          createRelay({
            ...shared,
            url: urls.relay,
            apiKey: config.RELAY_API_KEY,
            quotes: relayQuotes(config),
          }),
        ]
      : []),
    ...(urls.lifi
      ? [createLifi({ ...shared, url: urls.lifi, apiKey: config.LIFI_API_KEY, quotes: lifiQuotes(config) })]
      : []),
  ]
  if (providers.length === 0) return unserved
  const evmOf = (chainId: string) => ports.get(chainId)?.chain
  const deps: SwapDeps = {
    ...given,
    db,
    providers,
    chains: table,
    evmOf,
    arrivals: createArrivals({
      evmOf,
      solana: solanaArrivals(chains),
      otherPayers: [bridgeOf(config)],
      ownCalls: (batch) => ownCallsOf(db, batch),
      wrapsOf,
    }),
    solana: [...svmPorts.values()][0]?.chain,
    svm: custody.svm,
    svmRules: { decoder: svmDecoder, recipients: config.SOLANA_RECIPIENTS, deposit: depositAtDepository },
    calls,
    batches: custody.batches,
    ledger: taskEngine.ledger,
    policy: custody.policy.policy,
    remainingUsd: async (userId) => (await custody.policy.summary(userId)).remaining_24h_usd,
    walletsOf: (userId) => readWallets(db, userId),
    watchLatePayment: createLatePaymentWatch(taskEngine),
    clock,
    random,
  }
  const latePayments = createLatePaymentKind(deps, { ...taskEngine, clock })
  return {
    ...unserved,
    operations: createSwap(deps),
    kinds: [latePayments],
    execution: createSwapExecution(deps),
    legs: createSwapLegs(deps),
  }
}
