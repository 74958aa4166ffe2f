import type { Config } from '#config.ts'
import type { EvmPort } from '#engines/evm-batch/evm-port.ts'
import type { PausedSponsors } from '#engines/evm-batch/paused-sponsors.ts'
import { chainList, solanaId } from '#features/chains/chain-list.ts'
import { systemClock as clock } from '#kernel/clock.ts'
import type { Net } from '#kernel/net.ts'
import { evm } from '#upstreams/evm/evm.ts'
import { nodeMismatch } from '#upstreams/evm/node-check.ts'
import { sponsor } from '#upstreams/evm/sponsor.ts'
import { solana } from '#upstreams/solana/solana.ts'
import type { UpstreamUrls } from './upstream-urls.ts'

const sponsorBalanceMinWei = 10_000_000_000_000_000n
/** A balance between the two minimums is reserved for full withdrawals. */
const sponsorExitMinWei = 1_000_000_000_000_000n

export function openChains(config: Config, urls: UpstreamUrls, net: Net, paused: PausedSponsors) {
  const table = chainList({ urls: { ...urls.evm, [solanaId]: urls.solana }, finality: config.FINALITY })
  const secrets = config.SPONSOR_KEYS.map((key) => Buffer.from(key.slice(2), 'hex'))
  const ports = new Map<string, EvmPort>()
  const readers = table.map((row) => {
    if (row.family === 'solana') return { family: 'solana' as const, chain: solana({ row, net }) }
    const chain = evm({ row, net })
    const isPaused = (signer: string) => paused.has(row.id, signer)
    const payer = sponsor({
      chain,
      secrets,
      clock,
      balanceMinWei: sponsorBalanceMinWei,
      exitMinWei: sponsorExitMinWei,
      isPaused,
    })
    ports.set(row.id, { chain, sponsor: payer })
    return { family: 'evm' as const, chain }
  })
  /** One cheap call per chain, for the health probe. */
  const heads = readers.map((reader) => ({
    id: reader.chain.row.id,
    head: (signal: AbortSignal): Promise<unknown> =>
      reader.family === 'evm' ? reader.chain.head(signal) : reader.chain.slot(signal),
  }))
  return { table, ports, readers, heads }
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
