/** P7: from the commit that ends a task to the answer of its waiters, on its instance and on another. */

import { createInstance, newCaller } from './support/engine.ts'
import { createEnvironment } from './support/environment.ts'
import { median, percentile, report } from './support/measure.ts'

const runs = 5
const waiters = 20
const perWaiter = 8
const goalMs = 10

await using environment = await createEnvironment()
const url = await environment.newDatabase('wake')
const gates = new Map<number, PromiseWithResolvers<void>>()
const gateOf = (n: number) => {
  const known = gates.get(n) ?? Promise.withResolvers<void>()
  gates.set(n, known)
  return known
}
await using local = await createInstance(url, 20, (n) => gateOf(n).promise)
await using remote = await createInstance(url, 20, (n) => gateOf(n).promise)

/** When the statement that ended each task was answered; a waiter may even have read the row before that. */
const committedMs = new Map<string, number>()
const reads = new Map<unknown, number>([
  [local, 0],
  [remote, 0],
])
for (const each of [local, remote]) {
  const query = each.pool.query.bind(each.pool) as (...args: unknown[]) => Promise<unknown>
  const countedQuery = async (...args: unknown[]) => {
    const [statement, listed] = args as [string | { text?: string; values?: unknown[] }, unknown[]?]
    const text = typeof statement === 'string' ? statement : (statement.text ?? '')
    const values = (typeof statement === 'string' ? listed : statement.values) ?? []
    const answer = await query(...args)
    if (text.includes('task_step(')) {
      const steps = JSON.parse(String(values[0])) as { id: string; status: string }[]
      for (const { id, status } of steps) if (status === 'completed') committedMs.set(id, performance.now())
    }
    if (/^select .*from "?task"? where "?id"? = /s.test(text)) reads.set(each, (reads.get(each) ?? 0) + 1)
    return answer
  }
  each.pool.query = countedQuery as unknown as typeof each.pool.query
}

let next = 0
async function round(at: typeof local): Promise<{ ms: number[]; readsEach: number }> {
  const waits: { id: string; atMs: number }[] = []
  const before = reads.get(at) ?? 0
  await Promise.all(
    Array.from({ length: waiters }, async () => {
      const caller = newCaller()
      for (let count = 0; count < perWaiter; count++) {
        const n = next++
        const key = `key-${n}`
        const id = await local.accept(caller, n, key)
        const answered = at.wait(caller, n, key).then(() => performance.now())
        // Some tasks end right after the waiter came, some later; all of them before the first poll.
        setTimeout(() => gateOf(n).resolve(), 50 + Math.random() * 400)
        const atMs = await answered
        waits.push({ id, atMs })
        gates.delete(n)
      }
    }),
  )
  const ms = waits.map(({ id, atMs }) => {
    const endedMs = committedMs.get(id)
    if (endedMs === undefined) throw new Error('the end of a task was not seen')
    return Math.max(0, atMs - endedMs)
  })
  return { ms, readsEach: ((reads.get(at) ?? 0) - before) / ms.length }
}

const instances = [
  { id: 'P7', at: local, name: 'the instance that ran it' },
  { id: 'P7a', at: remote, name: 'another instance' },
] as const
const found = instances.map(() => [] as Awaited<ReturnType<typeof round>>[])
for (const { at } of instances) await round(at)
for (let run = 0; run < runs; run++)
  for (const [index, { at }] of instances.entries()) found[index]!.push(await round(at))

for (const [index, { id, name }] of instances.entries()) {
  const rounds = found[index]!
  report({
    id,
    name: `p99 from the end of a task to its waiter on ${name}`,
    goal: '<= 10 ms, 0 polls',
    unit: 'ms',
    ratios: rounds.map(({ ms }) => percentile(ms, 0.99)),
    // A waiter reads three times when it joins by its key and once when it is notified; a poll would be a fifth.
    met: (ms) => ms <= goalMs && median(rounds.map(({ readsEach }) => readsEach)) <= 4,
    annex: {
      p50_ms: median(rounds.map(({ ms }) => median(ms))),
      reads_of_the_task_per_wait: median(rounds.map(({ readsEach }) => readsEach)),
      slowest_ms: Math.max(...rounds.flatMap(({ ms }) => ms)),
    },
  })
}
