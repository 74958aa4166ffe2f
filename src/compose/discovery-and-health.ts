import { readQueueStats } from '#durable/upkeep/queue-stats.ts'
import { createDiscovery, type Released } from '#features/discovery/discovery.ts'
import { createHealthCheck } from '#features/discovery/health.ts'
import { readStoppedSince } from '#features/policy/store.ts'
import { release } from '#release.ts'
import type { Parts } from './section-parts.ts'

type DiscoveryParts = Pick<Parts, 'core' | 'chains' | 'custody' | 'venue' | 'probe'>

export function openDiscovery(
  { core, chains, custody, venue, probe }: DiscoveryParts,
  sections: () => readonly Released[],
) {
  const { config, db, transactions, clock, taskEngine } = core
  const { holds, time } = taskEngine
  const health = createHealthCheck({
    version: release,
    environment: config.ENVIRONMENT,
    clock,
    async store() {
      // If the standby hangs, the primary still answers reads but commits nothing, so the heartbeat is checked as well.
      if (time.isSilent()) throw new Error('no heartbeat was committed')
      await db.query('select 1')
    },
    money: () => ({ holds: holds.list(), isReplicated: time.replication.isReplicated() }),
    stoppedSince: () => readStoppedSince(db),
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
  return { operations: createDiscovery({ sections, health }), health }
}
