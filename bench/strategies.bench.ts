/**
 * P26: 100,000 active strategies, of which a thousand have one slot: the time from the slot to the start of each run,
 * beside the same tasks that one transaction enqueues by hand; and one that is due alone.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { runKindName } from '#engines/strategy-slots/strategy-slots.ts'
import { query } from '#store/query.ts'
import { insertStrategies, slotsOf } from '../test/durable/strategy-fixture.ts'
import { createInstance, newCaller } from './support/engine.ts'
import { createEnvironment } from './support/environment.ts'
import { median, percentile, report } from './support/measure.ts'

const armed = 100_000
const together = 1_000
const runs = 5
const singles = 100
const ratioMax = 2
const singleMsMax = 100
/** Time for the next slot to be read before it is due. */
const leadMs = 3_000
const startedMsMax = 120_000
const hourMs = 3_600_000
const dayMs = 24 * hourMs

await using environment = await createEnvironment()
const startedAt = new Map<string, number>()
const kind = {
  kind: runKindName,
  version: 1,
  priority: 1 as const,
  steps: {
    only: async ({ id }: { id: string }) => {
      startedAt.set(id, Date.now())
      return { end: 'completed' as const, outcome: 'executed' as const, result: {} }
    },
  },
}
await using instance = await createInstance(await environment.newDatabase('strategies'), 16, async () => {}, {
  internal: [kind],
})
const { pool, taskEngine, transact } = instance
const slots = slotsOf({ taskEngine, database: { pool, transaction: transact } })
const admin = { pool }
const userIds = Array.from({ length: 5_000 }, () => newCaller().userId)
const strategiesAt = (count: number, slotOf: (n: number) => number) =>
  insertStrategies(
    { admin },
    Array.from({ length: count }, (_, n) => ({
      userId: userIds[n % userIds.length]!,
      grid: { everyMs: dayMs, phaseMs: slotOf(n) },
      nextAt: new Date(slotOf(n)),
    })),
  )
for (let n = 0; n < armed; n += 10_000)
  await strategiesAt(10_000, (each) => Date.now() + 6 * hourMs + n + each)
await query(pool, 'analyze strategy, strategy_version', [], 60_000)
await using _serving = slots.start()

/** The time from the given one to the start of each of so many tasks. */
async function startsAfter(fromMs: number, count: number): Promise<number[]> {
  while (startedAt.size < count && Date.now() < fromMs + startedMsMax) await delay(5)
  const ms = [...startedAt.values()].map((at) => at - fromMs)
  startedAt.clear()
  if (ms.length !== count || Math.min(...ms) < 0) throw new Error(`${ms.length} of ${count} runs started`)
  return ms
}
async function bySlots(count: number): Promise<number[]> {
  const slotMs = Date.now() + leadMs
  await strategiesAt(count, () => slotMs)
  slots.announce()
  return startsAfter(slotMs, count)
}
async function byHand(run: number): Promise<number[]> {
  const fromMs = Date.now()
  await transact(async (tx) => {
    for (let n = 0; n < together; n++)
      await taskEngine.enqueue(tx, {
        userId: userIds[n]!,
        kind,
        input: {},
        admission: { data: {}, first: 'only' },
        key: { key: `by hand ${run} ${n}`, operation: 'bench', hash: 'bench' },
      })
  })
  taskEngine.announceQueued()
  return startsAfter(fromMs, together)
}

const ratios: number[] = []
const p99 = { slots: [] as number[], hand: [] as number[] }
for (let run = 0; run < runs; run++) {
  p99.slots.push(percentile(await bySlots(together), 0.99))
  p99.hand.push(percentile(await byHand(run), 0.99))
  ratios.push(p99.slots.at(-1)! / p99.hand.at(-1)!)
}
const single: number[] = []
for (let n = 0; n < singles; n++) {
  const slotMs = Date.now() + 200
  await strategiesAt(1, () => slotMs)
  slots.announce()
  single.push(...(await startsAfter(slotMs, 1)))
}
const [records] = await query<{ count: number; tasks: number }>(
  pool,
  `select count(*)::integer, (select count(*)::integer from task where idempotency_key like 'sched %') as tasks
   from strategy_execution`,
)
if (records?.count !== runs * together + singles || records.tasks !== records.count)
  throw new Error(`${records?.count} records and ${records?.tasks} tasks`)
report({
  id: 'P26',
  name: `p99 from the slot of ${together} among ${armed} strategies to the start of the run, beside tasks enqueued by hand`,
  goal: `<= ${ratioMax}`,
  ratios,
  met: (ratio) => ratio <= ratioMax,
  annex: { p99_ms: median(p99.slots), by_hand_p99_ms: median(p99.hand) },
})
report({
  id: 'P26a',
  name: `the same for one strategy that is due alone`,
  goal: `<= ${singleMsMax} ms`,
  unit: 'ms',
  ratios: [percentile(single, 0.99)],
  met: (value) => value <= singleMsMax,
  annex: { p50_ms: median(single) },
})
