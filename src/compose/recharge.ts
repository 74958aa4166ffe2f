import type { Config } from '#config.ts'
import type { ChainHealth } from '#features/chains/chain-health.ts'
import { infoOf } from '#features/chains/chains.ts'
import { paymentSearch } from '#features/credits/payment-search.ts'
import { type PriceSource, recharge } from '#features/credits/recharge.ts'
import type { EvmTill, SvmTill, Till } from '#features/credits/till.ts'
import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Coinbase } from '#upstreams/coinbase/coinbase.ts'
import * as wire from '#upstreams/evm/till.ts'
import type { Prices } from '#upstreams/prices/prices.ts'
import { memo, transferLamports } from '#upstreams/solana/instruction-builder.ts'
import { findTransfers } from '#upstreams/solana/payments.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import { tillOf } from './settings.ts'

type RechargeDeps = {
  core: Core
  chains: Chains
  custody: Custody
  probe: ChainHealth
  prices: Prices | undefined
  /** Undefined where there is no second source of prices. */
  coinbase: Coinbase | undefined
  changed: (userId: string, chainId: string) => void
}

/** A contract that does not answer is asked again after this time. */
const codeFreshMs = 600_000

/** Undefined where no contract takes payments, or only one source has prices; the operations do not exist then. */
export function openRecharge({ core, chains, custody, probe, prices, coinbase, changed }: RechargeDeps) {
  const { config, log, clock, db, taskEngine } = core
  const tills = tillsOf(config, chains)
  if (tills.length === 0 || !prices || !coinbase) return undefined
  const known = createTtlCache<true>({ ttlMs: codeFreshMs, entriesMax: tills.length, nowMs: monotonicMs })
  const isTill = ({ chain, address }: EvmTill): Promise<boolean> =>
    known
      .get(chain.row.id, async () => {
        const word = await chain.call({ to: address, data: wire.isTillData })
        if (!wire.isTrueWord(word)) throw new NoTill()
        return true
      })
      .catch((error: unknown) => {
        if (error instanceof NoTill) return false
        throw error
      })
  const spot: PriceSource = ({ symbol }) => coinbase.spotUsd(symbol)
  const aggregated: PriceSource = async ({ priceId }) => (await prices.get([priceId])).get(priceId)?.price
  const operations = recharge({
    db,
    ledger: taskEngine.ledger,
    tills,
    chains: chains.table,
    batches: custody.batches,
    svm: custody.svm,
    instructions: { memo, transferLamports },
    policy: custody.policy.policy,
    priceSources: [aggregated, spot],
    wire: { ...wire, isTill },
    chainInfo: (row) => infoOf(row, probe.status(row.id)),
    evmAddressOf: custody.evmAddressOf,
    svmAddressOf: custody.svmAddressOf,
    changed,
    clock,
  })
  const search = paymentSearch({
    db,
    transact: taskEngine.transact,
    tills,
    paymentsOf: wire.foundPaymentsOf,
    taskOfWord: wire.taskOfWord,
    paidTopics: wire.paidTopics(),
    clock,
    log,
  })
  return { operations, ...search }
}

class NoTill extends Error {}

const tillsOf = (config: Config, { ports, svmPorts }: Chains): Till[] => [
  ...[...ports.values()].flatMap(({ chain }) => {
    const till = chain.row.delegate === null ? undefined : tillOf(config, chain.row)
    return till ? [{ family: 'evm' as const, chain, ...till }] : []
  }),
  ...[...svmPorts.values()].flatMap(({ chain }) => {
    const till = tillOf(config, chain.row)
    const find: SvmTill['findTransfers'] = (search) => findTransfers(chain, search)
    return till ? [{ family: 'solana' as const, chain, ...till, findTransfers: find }] : []
  }),
]
