import type { Config } from '#config.ts'
import { infoOf } from '#features/chains/chains.ts'
import { createPaymentSearch } from '#features/credits/payment-search.ts'
import { createRecharge, type PriceSource } from '#features/credits/recharge.ts'
import { createTillCheck, type SvmTill, type Till } from '#features/credits/till.ts'
import { createCoinbase } from '#upstreams/coinbase/coinbase.ts'
import * as wire from '#upstreams/evm/till-contract.ts'
import { findTransfers } from '#upstreams/solana/incoming-transfers.ts'
import { memo, transferLamports } from '#upstreams/solana/instruction-builder.ts'
import type { Chains } from './chains.ts'
import type { SharedParts } from './section-parts.ts'
import { tillOf } from './settings.ts'

type RechargeParts = Pick<
  SharedParts,
  'core' | 'urls' | 'net' | 'chains' | 'custody' | 'probe' | 'prices' | 'changed'
>

/** Opens the purchase of credits; undefined where no contract takes payments, or only one source has prices. */
export function openRecharge({ core, urls, net, chains, custody, probe, prices, changed }: RechargeParts) {
  const { config, log, clock, db, taskEngine } = core
  const tills = tillsOf(config, chains)
  if (tills.length === 0 || !urls.prices || !urls.coinbase) return undefined
  const coinbase = createCoinbase({ url: urls.coinbase, net })
  const isTill = createTillCheck(wire, tills.length)
  const spot: PriceSource = ({ symbol }) => coinbase.spotUsd(symbol)
  const aggregated: PriceSource = async ({ priceId }) => (await prices.get([priceId])).get(priceId)?.price
  const operations = createRecharge({
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
  const search = createPaymentSearch({
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
