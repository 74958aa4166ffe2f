/** P24: one market with 100,000 armed orders: the time from a price to the committed tasks of what it crossed. */
import { setTimeout as delay } from 'node:timers/promises'
import { triggerStatuses } from '#kernel/task/trigger-order.ts'
import { query } from '#store/query.ts'
import { createInstance, newCaller } from './support/engine.ts'
import { createEnvironment } from './support/environment.ts'
import { median, percentile, report } from './support/measure.ts'

const armed = 100_000
const users = 5_000
const runs = 5
const ticksPerRun = 200
const market = 'bench'
const middle = 1_000_000
const orderKind = 'bench_order'
const goalMs = 20

await using environment = await createEnvironment()
const internal = [
  {
    kind: orderKind,
    version: 1,
    priority: 0 as const,
    steps: {
      only: async () => ({ end: 'completed' as const, outcome: 'executed' as const, result: {} }),
    },
  },
]
await using instance = await createInstance(await environment.newDatabase('triggers'), 16, async () => {}, {
  internal,
})
const { pool, priceTriggers } = instance
const userIds = Array.from({ length: users }, () => newCaller().userId)

/** One order per price step on either side of the middle, of which a third are pairs that cancel each other. */
await query(
  pool,
  `insert into trigger_order (id, user_id, kind, market, direction, trigger_price, oco_group, input, status, created_at, updated_at)
   select gen_random_uuid(), ($1::uuid[])[1 + n % $2], $3, $4, d.direction,
     $5::integer + case d.direction when 'lte' then -n else n end,
     case when n % 3 = 0 then md5('group' || n)::uuid end, '{}', 'armed', now(), now()
   from generate_series(1, $6::integer) n, (values ('lte'), ('gte')) d (direction)`,
  [userIds, users, orderKind, market, middle, armed / 2],
  60_000,
)
await query(pool, 'analyze trigger_order', [], 60_000)

/** How many orders each price step has crossed so far, alternating between the two sides. */
const reached = { lte: 0, gte: 0 }
let ticks = 0
async function tick(crossed: number): Promise<number> {
  const side = ticks++ % 2 === 0 ? 'lte' : 'gte'
  reached[side] += crossed
  const price = middle + (side === 'lte' ? -reached.lte : reached.gte)
  // A price comes each second: the tasks of the last one have ended.
  while ((await query(pool, 'select 1 from task_queue limit 1')).length > 0) await delay(1)
  const startedMs = performance.now()
  const [lease] = await priceTriggers.lease([market])
  await priceTriggers.fireTriggers(lease!, String(price))
  return performance.now() - startedMs
}
async function sample(count: number, crossed: number): Promise<number[]> {
  const ms: number[] = []
  for (let n = 0; n < count; n++) ms.push(await tick(crossed))
  return ms
}

const p99 = { none: [] as number[], one: [] as number[], ten: [] as number[] }
const p50 = { none: [] as number[], one: [] as number[], ten: [] as number[] }
await sample(50, 1)
for (let run = 0; run < runs; run++)
  for (const [name, crossed] of [
    ['none', 0],
    ['one', 1],
    ['ten', 10],
  ] as const) {
    const ms = await sample(ticksPerRun, crossed)
    p99[name].push(percentile(ms, 0.99))
    p50[name].push(median(ms))
  }

const rows = await query<{ status: string; count: number }>(
  pool,
  'select status, count(*)::integer as count from trigger_order group by 1',
)
const statuses = Object.fromEntries(
  triggerStatuses.map((status) => [status, rows.find((row) => row.status === status)?.count ?? 0]),
)
const [tasks] = await query<{ count: number; orders: number }>(
  pool,
  `select count(*)::integer as count, count(distinct data ->> 'trigger_order_id')::integer as orders from task where kind = $1`,
  [orderKind],
)
if (tasks?.count !== statuses.fired || tasks?.orders !== statuses.fired)
  throw new Error(`${statuses.fired} orders fired, and ${tasks?.orders} of them made ${tasks?.count} tasks`)
report({
  id: 'P24',
  name: `p99 from a price that crosses one of ${armed} armed orders to its committed task`,
  goal: `<= ${goalMs} ms`,
  unit: 'ms',
  ratios: p99.one,
  met: (value) => value <= goalMs,
  annex: { p50_ms: median(p50.one), none_p50_ms: median(p50.none), none_p99_ms: median(p99.none), statuses },
})
report({
  id: 'P24a',
  name: 'the same where a price crosses ten orders, to the last task',
  goal: `<= ${goalMs} ms`,
  unit: 'ms',
  ratios: p99.ten,
  met: (value) => value <= goalMs,
  annex: { p50_ms: median(p50.ten) },
})
