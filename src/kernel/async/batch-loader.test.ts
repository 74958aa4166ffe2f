import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBatchLoader } from './batch-loader.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('waiting requests are loaded together, in order, and each caller gets its own result', async () => {
  const loads: { keys: readonly number[]; gate: PromiseWithResolvers<void> }[] = []
  const load = createBatchLoader<number, string>({
    loadsMax: 2,
    keysMax: 3,
    async load(keys) {
      const gate = Promise.withResolvers<void>()
      loads.push({ keys, gate })
      await gate.promise
      return new Map(keys.filter((key) => key % 2 === 0).map((key) => [key, `v${key}`]))
    },
  })
  const asked = [0, 1, 2, 3, 3, 4, 5, 6, 7, 8].map(load)
  await settled()
  const keysOf = () => loads.map(({ keys }) => keys)
  assert.deepEqual(keysOf(), [
    [0, 1, 2],
    [3, 4, 5],
  ])
  loads[0]!.gate.resolve()
  assert.equal(await asked[0], 'v0')
  await settled()
  assert.deepEqual(keysOf()[2], [6, 7, 8])
  for (const { gate } of loads) gate.resolve()
  const even = (n: number) => (n % 2 === 0 ? `v${n}` : undefined)
  assert.deepEqual(await Promise.all(asked), [0, 1, 2, 3, 3, 4, 5, 6, 7, 8].map(even))
  const late = load(9)
  assert.equal(loads.length, 3)
  await settled()
  assert.deepEqual(keysOf()[3], [9])
  loads[3]!.gate.resolve()
  assert.equal(await late, undefined)
})

test('a failure rejects all waiting requests, and the next load runs', async () => {
  let isAway = true
  const load = createBatchLoader<string, number>({
    loadsMax: 1,
    keysMax: 10,
    async load(keys) {
      if (isAway) throw new Error('away')
      return new Map(keys.map((key) => [key, key.length]))
    },
  })
  await assert.rejects(load('first'), /away/)
  isAway = false
  assert.equal(await load('second'), 6)
})
