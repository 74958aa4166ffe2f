import { sponsorsTopic } from '#durable/notifier.ts'
import type { EvmPort } from '#engines/evm-batch/evm-port.ts'
import { createNonceRepair } from '#engines/evm-batch/nonce-repair.ts'
import { pausedSponsors } from '#engines/evm-batch/paused-sponsors.ts'
import { chainList, solanaId } from '#features/chains/chain-list.ts'
import type { EvmChainRow } from '#kernel/chains.ts'
import type { Net } from '#kernel/net.ts'
import { evm } from '#upstreams/evm/evm.ts'
import { nodeMismatch } from '#upstreams/evm/node-check.ts'
import { planNonceRepair } from '#upstreams/evm/nonce-repair-plan.ts'
import { createReceiptWatcher } from '#upstreams/evm/receipt-watcher.ts'
import { sponsor } from '#upstreams/evm/sponsor.ts'
import { solana } from '#upstreams/solana/solana.ts'
import type { Core } from './core.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

type ChainDeps = { core: Core; urls: UpstreamUrls; net: Net }
export type ChainOverrides = {
  /** Changes the description of a chain. */
  adjustChain?: (row: EvmChainRow) => EvmChainRow
}

const sponsorBalanceMinWei = 10_000_000_000_000_000n
/** A balance between the two minimums is reserved for full withdrawals. */
const sponsorExitMinWei = 1_000_000_000_000_000n

export function openChains({ core, urls, net }: ChainDeps, overrides: ChainOverrides = {}) {
  const { config, clock, db, taskEngine, log } = core
  const { adjustChain = (row) => row } = overrides
  const table = chainList({ urls: { ...urls.evm, [solanaId]: urls.solana }, finality: config.FINALITY }).map(
    (row) => (row.family === 'evm' ? adjustChain(row) : row),
  )
  const paused = pausedSponsors({ db })
  taskEngine.notifier.onAny((topic) => {
    if (topic === sponsorsTopic) paused.invalidate()
  })
  const secrets = config.SPONSOR_KEYS.map((key) => Buffer.from(key.slice(2), 'hex'))
  const ports = new Map<string, EvmPort>()
  const readers = table.map((row) => {
    if (row.family === 'solana') return { family: 'solana' as const, chain: solana({ row, net }) }
    const chain = evm({ row, net })
    const payer = sponsor({
      chain,
      secrets,
      clock,
      balanceMinWei: sponsorBalanceMinWei,
      exitMinWei: sponsorExitMinWei,
      isPaused: (signer) => paused.has(row.id, signer),
    })
    const watcher = createReceiptWatcher({ chain, wake: taskEngine.wakeTasks, log })
    ports.set(row.id, { chain, sponsor: payer, watcher })
    return { family: 'evm' as const, chain }
  })
  /** One cheap call per chain, for the health probe. */
  const heads = readers.map((reader) => ({
    id: reader.chain.row.id,
    head: (signal: AbortSignal): Promise<unknown> =>
      reader.family === 'evm' ? reader.chain.head(signal) : reader.chain.slot(signal),
  }))
  const nonceRepair = createNonceRepair({
    db,
    transact: taskEngine.transact,
    ports,
    plan: planNonceRepair,
    log,
  })
  return {
    table,
    ports,
    readers,
    heads,
    nonceRepair,
    [Symbol.dispose]() {
      for (const { watcher } of ports.values()) watcher.close()
    },
  }
}
export type Chains = ReturnType<typeof openChains>

/** A chain that does not answer is not reported here; the health probe reports it. */
export async function findNodeProblems({ ports }: Chains, environment: string): Promise<string[]> {
  const asked = [...ports.values()].map(async ({ chain: { row, identify } }) => {
    const problem = nodeMismatch(await identify(), { chainId: row.id, local: environment === 'local' })
    return problem === undefined ? [] : [`${row.displayName}: ${problem}`]
  })
  const found = await Promise.allSettled(asked)
  return found.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
}
