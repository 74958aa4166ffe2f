import type { Clock } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { gauge, type Metric, type ReadMetrics } from '#kernel/metrics.ts'
import { lamportDecimals, nativeDecimals } from '#kernel/money/money.ts'

const refreshMs = 60_000

type Balances = () => Promise<ReadonlyMap<string, bigint>>
type SponsoredChains = ReadonlyMap<string, { sponsor: { balances: Balances } }>
type BalancesDeps = { ports: SponsoredChains; svmPorts: SponsoredChains; clock: Clock; log: Log }
type Reading = { chainId: string; decimals: number; atMs: number; byAddress: ReadonlyMap<string, bigint> }

const coins = (units: bigint, decimals: number): number => Number(units) / 10 ** decimals

/**
 * The last known balances of the sponsors. A scrape never waits for a chain: it starts a new reading when the last one
 * is older than a minute, and the next scrape shows the result.
 */
export function createSponsorBalances({ ports, svmPorts, clock, log }: BalancesDeps): ReadMetrics {
  const sponsors = [
    ...[...ports].map(([chainId, { sponsor }]) => ({ chainId, sponsor, decimals: nativeDecimals })),
    ...[...svmPorts].map(([chainId, { sponsor }]) => ({ chainId, sponsor, decimals: lamportDecimals })),
  ]
  const readings = new Map<string, Reading>()
  let startedMs = Number.NEGATIVE_INFINITY
  const refresh = () => {
    for (const { chainId, sponsor, decimals } of sponsors)
      sponsor.balances().then(
        (byAddress) => readings.set(chainId, { chainId, decimals, atMs: clock.now().getTime(), byAddress }),
        (error: unknown) => log.debug({ error, chainId }, 'sponsor balances not read'),
      )
  }
  return () => {
    if (performance.now() - startedMs > refreshMs) {
      startedMs = performance.now()
      refresh()
    }
    return sponsorMetrics([...readings.values()])
  }
}

const sponsorMetrics = (readings: readonly Reading[]): Metric[] => [
  gauge(
    'portico_sponsor_balance_coins',
    'Balance of a sponsor account in native coins of the chain, as last read',
    readings.flatMap(({ chainId, decimals, byAddress }) =>
      [...byAddress].map(([sponsor, units]) => ({
        labels: { chain_id: chainId, sponsor },
        value: coins(units, decimals),
      })),
    ),
  ),
  gauge(
    'portico_sponsor_balance_timestamp_seconds',
    'When the balances of the sponsors were last read',
    readings.map(({ chainId, atMs }) => ({ labels: { chain_id: chainId }, value: atMs / 1_000 })),
  ),
]
