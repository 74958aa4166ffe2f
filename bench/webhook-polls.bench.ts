/**
 * P25: what a poll for webhooks costs in a database with a million of them, each of another user; WEBHOOK_CURSORS sets
 * another number. A tenth has a message to repeat, a thousandth an event whose hint was lost.
 */
import pg from 'pg'
import { type ClaimSource, claimStatement } from '#features/notifications/webhooks/claims.ts'
import {
  countsStatement,
  endOfSliceStatement,
  sliceMaxDefault,
  slicePauseFactor,
} from '#features/notifications/webhooks/cursor-sweep.ts'
import { countKinds } from '#features/notifications/webhooks/delivery-slots.ts'
import { insertCursors, readingOf } from '../test/harness/many-cursors.ts'
import { createEnvironment } from './support/environment.ts'
import { percentile, report } from './support/measure.ts'

const cursors = Number(process.env.WEBHOOK_CURSORS ?? 1_000_000)
const samples = 100
/** The limit of each statement of the gateway is 15 seconds. */
const goalMs = 1_500

const userAt = (n: number) => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const instanceId = userAt(2 ** 40)
const claimOf = (source: ClaimSource) =>
  claimStatement({
    instanceId,
    now: new Date(),
    source,
    running: { webhooks: [], users: [], kinds: [] },
    counts: countKinds([]),
    spent: [],
  })

process.stdout.write(
  `${JSON.stringify({
    section: 'Polls for webhooks',
    about:
      'Statements of a poll, under generic plans: the claim of retries that are due, and the end, the counts and the claim of a slice. `rows` are those of tables that the dearest one reads, `whole_tables` what is read as a whole, `round_minutes` the time in which each webhook is visited once, with the pauses.',
  })}\n`,
)
await using environment = await createEnvironment({ shared_buffers: '1GB', max_wal_size: '8GB' })
const pool = new pg.Pool({ connectionString: await environment.newDatabase('webhooks'), max: 4 })
const startedMs = performance.now()
await insertCursors(pool, cursors)
process.stdout.write(`${cursors} webhooks after ${Math.round((performance.now() - startedMs) / 1_000)} s\n`)
await pool.query(
  `insert into instance (id, started_at, lease_until) values ($1, now(), now() + interval '1 day')`,
  [instanceId],
)

type Statement = { text: string; values: unknown[] }
const wholeTables = new Set<string>()
let rowsMax = 0
async function measure(statement: Statement): Promise<number> {
  const { ms, rows, wholeTables: found } = await readingOf(pool, statement)
  for (const table of found) wholeTables.add(table)
  rowsMax = Math.max(rowsMax, rows)
  return ms
}

const retriesMs: number[] = []
const sliceMs: number[] = []
const statementMs: number[] = []
for (let n = 0; n < samples; n++) {
  retriesMs.push(await measure(claimOf('retries')))
  const from = userAt(Math.floor((cursors * n) / samples))
  const end = endOfSliceStatement(from, sliceMaxDefault)
  const { rows } = await pool.query<{ user_id: string }>(end.text, end.values)
  const range = { from, before: rows[0]?.user_id ?? userAt(2 ** 41) }
  const parts = [await measure(end), await measure(countsStatement(range)), await measure(claimOf({ range }))]
  sliceMs.push(parts.reduce((sum, each) => sum + each, 0))
  statementMs.push(...parts, retriesMs.at(-1)!)
}
await pool.end()
const mean = (values: number[]) => values.reduce((sum, each) => sum + each, 0) / values.length
const roundMs = (cursors / sliceMaxDefault) * (mean(sliceMs) + mean(retriesMs)) * (slicePauseFactor + 1)
report({
  id: 'P25',
  name: `longest statement of the polls at ${cursors.toLocaleString('en-US')} webhooks`,
  goal: `<= ${goalMs} ms`,
  unit: 'ms',
  ratios: [Math.max(...statementMs)],
  met: (value) => value <= goalMs,
  annex: {
    retries_p50_ms: percentile(retriesMs, 0.5),
    slice_p50_ms: percentile(sliceMs, 0.5),
    slice_p99_ms: percentile(sliceMs, 0.99),
    rows: rowsMax,
    whole_tables: [...wholeTables],
    round_minutes: roundMs / 60_000,
  },
})
