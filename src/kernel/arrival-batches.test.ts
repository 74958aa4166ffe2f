import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchByArrival } from './arrival-batches.ts'

/** Batches that end when the test says so. */
function controlled(fail: (items: readonly string[]) => unknown = () => undefined) {
  const batches: string[][] = []
  const ends: (() => void)[] = []
  const add = batchByArrival<string, string>({
    sizeMax: 3,
    keyOf: (item) => item.split(':')[1],
    isFinal: (error) => error === 'final',
    async run(items) {
      batches.push([...items])
      await new Promise<void>((resolve) => ends.push(resolve))
      const failure = fail(items)
      if (failure !== undefined) throw failure
      return items.map((item) => item.toUpperCase())
    },
  })
  /** Ends batches until none runs. */
  const endAll = async () => {
    for (let ended = 0; ended < batches.length; ended++) {
      ends[ended]!()
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    }
  }
  return { add, batches, endAll }
}

test('the first item goes at once, and those that arrive meanwhile go together, up to the limit', async () => {
  const { add, batches, endAll } = controlled()
  const answers = ['a', 'b', 'c', 'd', 'e'].map(add)
  assert.deepEqual(batches, [['a']])
  await endAll()
  assert.deepEqual(batches, [['a'], ['b', 'c', 'd'], ['e']])
  assert.deepEqual(await Promise.all(answers), ['A', 'B', 'C', 'D', 'E'])
})

test('items of one key go into different batches, in their order', async () => {
  const { add, batches, endAll } = controlled()
  for (const item of ['first', '1:x', '2:x', '3:y', '4:x', '5:z']) void add(item)
  await endAll()
  assert.deepEqual(batches, [['first'], ['1:x', '3:y', '5:z'], ['2:x'], ['4:x']])
})

test('the items of a batch that fails run singly, and only the one at fault fails', async () => {
  const { add, batches, endAll } = controlled((items) => (items.includes('bad') ? 'broken' : undefined))
  const answers = Promise.allSettled(['a', 'b', 'bad', 'c'].map(add))
  await endAll()
  assert.deepEqual(batches, [['a'], ['b', 'bad', 'c'], ['b'], ['bad'], ['c']])
  const [a, b, bad, c] = await answers
  assert.deepEqual(
    [a, b, c].map((each) => each?.status),
    ['fulfilled', 'fulfilled', 'fulfilled'],
  )
  assert.deepEqual(bad, { status: 'rejected', reason: 'broken' })
})

test('after a failure that may have been a success nothing runs again', async () => {
  const { add, batches, endAll } = controlled((items) => (items.length > 1 ? 'final' : undefined))
  const answers = Promise.allSettled(['a', 'b', 'c'].map(add))
  await endAll()
  assert.deepEqual(batches, [['a'], ['b', 'c']])
  assert.deepEqual(
    (await answers).map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected'],
  )
})
