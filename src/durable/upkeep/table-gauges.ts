import type pg from 'pg'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { counter, gauge, type Metric, type ReadMetrics } from '#kernel/metrics.ts'
import { query } from '#store/query.ts'

/** The size and maintenance of the tables that grow or change most. All instances report the same: take the maximum. */

const tables = [
  'account',
  'effect',
  'idempotency',
  'instance',
  'nonce_sequence',
  'policy_spend',
  'policy_spend_minute',
  'task',
  'task_queue',
  'transfer',
  'tx_attempt',
  'user_event',
  'user_event_seq',
  'venue_fill',
  'venue_ledger_entry',
  'venue_order',
]

type TableRow = {
  table: string
  bytes: bigint
  rows: bigint
  former: bigint
  updates: bigint
  hot: bigint
}

/** Only statistics of the server and file sizes are read, and no table. */
const statisticsSql = `
  select relname as "table", pg_total_relation_size(relid) as bytes, n_live_tup as rows, n_dead_tup as former,
    n_tup_upd as updates, n_tup_hot_upd as hot
  from pg_stat_user_tables where schemaname = current_schema() and relname = any($1) order by relname`

/** Each subquery reads the first entry of an index. A task id begins with its creation time in milliseconds. */
const oldestSql = `
  select (select at from user_event order by at limit 1) as user_event,
    (select at from idempotency where task_id is null order by at limit 1) as idempotency,
    (select to_timestamp(('x' || lpad(left(replace(id::text, '-', ''), 12), 16, '0'))::bit(64)::bigint / 1000.0)
      from task order by id limit 1) as task`

type Oldest = Record<'user_event' | 'idempotency' | 'task', Date | null>
type Deps = {
  pool: pg.Pool
  clock: Clock
  /** The age in milliseconds at which rows of a table are deleted; absent if they are never deleted. */
  retention: Readonly<Record<string, number>>
}

const refreshMs = 60_000

export function createTableGauges({ pool, clock, retention }: Deps): ReadMetrics {
  const cached = createCachedValue(
    async () => {
      const [statistics, [oldest]] = await Promise.all([
        query<TableRow>(pool, statisticsSql, [tables]),
        query<Oldest>(pool, oldestSql),
      ])
      return { statistics, oldest }
    },
    { ttlMs: refreshMs, nowMs: monotonicMs },
  )
  return async () => {
    const { statistics, oldest } = await cached.get()
    return [...statisticsMetrics(statistics), ...ageMetrics(oldest, clock, retention)]
  }
}

function statisticsMetrics(statistics: readonly TableRow[]): Metric[] {
  const samples = (field: 'bytes' | 'rows' | 'former' | 'updates' | 'hot') =>
    statistics.map((row) => ({ labels: { table: row.table }, value: Number(row[field]) }))
  return [
    gauge('portico_table_size_bytes', 'Size of a table with its indexes', samples('bytes')),
    gauge('portico_table_rows', 'Rows of a table, as the server estimates them', samples('rows')),
    gauge(
      'portico_table_dead_rows',
      'Former versions of rows that no vacuum has removed yet',
      samples('former'),
    ),
    counter('portico_table_updates_total', 'Updated rows of a table', samples('updates')),
    counter(
      'portico_table_hot_updates_total',
      'Updated rows that needed no new entry in an index',
      samples('hot'),
    ),
  ]
}

function ageMetrics(oldest: Oldest | undefined, clock: Clock, retention: Deps['retention']): Metric[] {
  const nowMs = clock.now().getTime()
  return [
    gauge(
      'portico_table_oldest_row_age_seconds',
      'Age of the oldest row that retention may delete',
      Object.entries(oldest ?? {}).map(([table, at]) => ({
        labels: { table },
        value: at ? Math.max(0, (nowMs - at.getTime()) / 1_000) : 0,
      })),
    ),
    gauge(
      'portico_table_retention_seconds',
      'Age at which rows of a table are deleted',
      Object.entries(retention).map(([table, ms]) => ({ labels: { table }, value: ms / 1_000 })),
    ),
  ]
}
