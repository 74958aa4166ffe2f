import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createBatcher } from './batcher.ts'

function batches(t: TestContext, limits: Partial<Parameters<typeof createBatcher>[0]> = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const delivered: [string, number[]][] = []
  const batcher = createBatcher<number>(
    { delayMs: 100, itemsMax: 3, keysMax: 10, ...limits },
    (key, items) => void delivered.push([key, items]),
  )
  return { batcher, delivered, tick: (ms: number) => t.mock.timers.tick(ms) }
}

test('what is added within the delay of the first item is one delivery per key', (t) => {
  const { batcher, delivered, tick } = batches(t)
  batcher.add('a', [1])
  tick(60)
  batcher.add('a', [2])
  batcher.add('b', [3])
  tick(39)
  assert.deepEqual(delivered, [])
  tick(1)
  assert.deepEqual(delivered, [
    ['a', [1, 2]],
    ['b', [3]],
  ])
  batcher.add('a', [4])
  tick(100)
  assert.deepEqual(delivered.at(-1), ['a', [4]])
})

test('items beyond the limit of their key are dropped', (t) => {
  const { batcher, delivered, tick } = batches(t)
  batcher.add('a', [1, 2])
  batcher.add('a', [3, 4])
  batcher.add('a', [5])
  tick(100)
  assert.deepEqual(delivered, [['a', [1, 2, 3]]])
})

test('as many keys as fit are delivered at once', (t) => {
  const { batcher, delivered, tick } = batches(t, { keysMax: 2 })
  batcher.add('a', [1])
  assert.deepEqual(delivered, [])
  batcher.add('b', [2])
  assert.equal(delivered.length, 2)
  tick(1_000)
  assert.equal(delivered.length, 2)
})

test('a flush delivers at once and leaves nothing for the delay', (t) => {
  const { batcher, delivered, tick } = batches(t)
  batcher.flush()
  batcher.add('a', [1])
  batcher.flush()
  tick(1_000)
  assert.deepEqual(delivered, [['a', [1]]])
})
