import type { Config } from '#config.ts'
import { createTableGauges } from '#durable/upkeep/table-gauges.ts'
import { readLedgerGauges, readTaskGauges } from '#durable/upkeep/task-gauges.ts'
import { gauge, type Metric, type MetricSources } from '#kernel/metrics.ts'
import { release } from '#release.ts'
import type { Composed } from './compose.ts'
import { tableRetention } from './retention.ts'
import type { Stores } from './store.ts'

/**
 * Returns what `/metrics` reads at a scrape: memory, short queries of open work, and statistics. No upstream is called.
 */
export function openMetrics(composed: Composed): MetricSources {
  const { config, clock, stores, transactions, taskEngine, runtime, upstreamMetrics, joined } = composed
  return {
    build: () => [buildInfo(config)],
    pools: () => poolGauges(stores),
    money: () => moneyGauges(taskEngine),
    task_counters: taskEngine.metrics,
    tasks: () => readTaskGauges(transactions, clock, runtime.runner.counts()),
    ledger: () => readLedgerGauges(transactions),
    tables: createTableGauges({ pool: transactions.pool, clock, retention: tableRetention(config) }),
    upstreams: upstreamMetrics,
    ...joined.metrics,
  }
}

const buildInfo = ({ ENVIRONMENT }: Config): Metric =>
  gauge('portico_build_info', 'The release that runs; always 1', [
    { labels: { version: release, node: process.versions.node, environment: ENVIRONMENT }, value: 1 },
  ])

function moneyGauges({ holds, time }: Composed['taskEngine']): Metric[] {
  const held = holds.list().map(({ scope, reason }) => ({ labels: { scope, reason }, value: 1 }))
  const isReplicated = time.replication.isReplicated()
  const replicated = isReplicated === null ? [] : [{ labels: {}, value: isReplicated ? 1 : 0 }]
  return [
    gauge('portico_money_on_hold', 'Money of a chain, or of all, is neither accepted nor signed', held),
    gauge(
      'portico_database_replicated',
      'The database has the live synchronous standby that DATABASE_DURABILITY demands',
      replicated,
    ),
  ]
}

function poolGauges(stores: Stores): Metric[] {
  const poolGauge = (name: string, help: string, read: (pool: Stores['database']['pool']) => number) =>
    gauge(
      `portico_database_${name}`,
      help,
      Object.entries(stores).map(([pool, store]) => ({ labels: { pool }, value: read(store.pool) })),
    )
  return [
    poolGauge(
      'connections_in_use',
      'Connections of a pool that run a statement',
      ({ totalCount, idleCount }) => totalCount - idleCount,
    ),
    poolGauge('connections_open', 'Connections of a pool', ({ totalCount }) => totalCount),
    poolGauge('connections_limit', 'Connections that a pool may open', ({ options }) => options.max),
    poolGauge(
      'requests_waiting',
      'Requests that wait for a connection of a pool',
      ({ waitingCount }) => waitingCount,
    ),
  ]
}
