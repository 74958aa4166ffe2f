import { readQueueStats } from '#durable/upkeep/queue-stats.ts'
import type { ChainHealth } from '#features/chains/chain-health.ts'
import { discovery, type Released } from '#features/discovery/discovery.ts'
import { healthCheck } from '#features/discovery/health.ts'
import { release } from '#release.ts'
import type { Chains } from './chains.ts'
import type { Core } from './core.ts'
import type { Custody } from './custody.ts'
import type { Venue } from './venue.ts'

type DiscoveryParts = {
  core: Core
  chains: Chains
  custody: Pick<Custody, 'keyMonitor'>
  venue: Venue | undefined
  probe: ChainHealth
}

export function openDiscovery(
  { core, chains, custody, venue, probe }: DiscoveryParts,
  sections: () => readonly Released[],
) {
  const { config, db, transactions, clock, taskEngine } = core
  const { holds, time } = taskEngine
  const health = healthCheck({
    version: release,
    environment: config.ENVIRONMENT,
    clock,
    async store() {
      // A read may still work while no commit does, as on a primary whose standby hangs.
      if (time.isSilent()) throw new Error('no heartbeat was committed')
      await db.query('select 1')
    },
    money: () => ({ holds: holds.list(), isReplicated: time.replication.isReplicated() }),
    runner: () => readQueueStats(transactions, clock),
    custody: custody.keyMonitor.status,
    upstreams: async () =>
      Object.fromEntries([
        ...chains.table.map(
          ({ id, name }) => [name, { status: probe.status(id), lastOkAt: probe.lastOkAt(id) }] as const,
        ),
        ...(venue ? [['hyperliquid', venue.health.state()] as const] : []),
      ]),
  })
  return { operations: discovery({ sections, health }), health }
}
