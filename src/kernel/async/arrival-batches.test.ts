import assert from 'node:assert/strict'
import { test } from 'node:test'
import { batchByArrival, type WaitOption } from './arrival-batches.ts'

/** Batches that end when the test says so. */
function controlled(
  fail: (items: readonly string[], option: WaitOption) => unknown = () => undefined,
  keyOf = (item: string) => item.split(':')[1] ?? item,
) {
  const batches: string[][] = []
  const ends: (() => void)[] = []
  const add = batchByArrival<string, string>({
    sizeMax: 3,
    keyOf,
    ownerOf: (item) => item.split(':')[1] ?? item,
    isFinal: (error) => error === 'final',
    isBlocked: (error) => error === 'blocked',
    async run(items, option) {
      batches.push([...items])
      await new Promise<void>((resolve) => ends.push(resolve))
      const failure = fail(items, option)
      if (failure !== undefined) throw failure
      return items.map((item) => item.toUpperCase())
    },
  })
  const end = async (at: number) => {
    ends[at]!()
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  /** Ends batches until none runs. */
  const endAll = async () => {
    for (let ended = 0; ended < batches.length; ended++) await end(ended)
  }
  return { add, batches, end, endAll }
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

test('a blocked item waits for its lock beside the next batches, and only its owner waits for it', async () => {
  const { add, batches, end } = controlled((items, { mayWait }) =>
    !mayWait && items.some((item) => item.endsWith(':slow')) ? 'blocked' : undefined,
  )
  const first = add('a')
  const slow = add('1:slow')
  const beside = add('b')
  await end(0)
  await end(1)
  assert.deepEqual(batches, [['a'], ['1:slow', 'b'], ['1:slow'], ['b']])
  const [same, after] = [add('2:slow'), add('c')]
  await end(2)
  assert.deepEqual(batches.slice(4), [['c'], ['1:slow']])
  await end(3)
  await end(4)
  assert.deepEqual(await Promise.all([first, beside, after]), ['A', 'B', 'C'])
  assert.equal(batches.length, 6, 'the owner of the blocked item waits')
  await end(5)
  assert.equal(await slow, '1:SLOW')
  await end(6)
  await end(7)
  assert.equal(await same, '2:SLOW')
})

test('few of the blocked items wait for locks at once, and beside them every other item runs', async () => {
  const { add, batches, end } = controlled((items, { mayWait }) =>
    !mayWait && items.some((item) => item.startsWith('slow')) ? 'blocked' : undefined,
  )
  for (let n = 0; n < 6; n++) {
    void add(`slow${n}`)
    await end(batches.length - 1)
  }
  assert.equal(batches.length, 10)
  void add('a')
  assert.deepEqual(batches.at(-1), ['a'])
})

test('the blocked items of one owner wait one after the other, and delay the others of their batch once', async () => {
  const isSlow = (item: string) => item.endsWith(':slow')
  const { add, batches, end } = controlled(
    (items, { mayWait }) => (!mayWait && items.some(isSlow) ? 'blocked' : undefined),
    (item) => item,
  )
  void add('a')
  const slow = [add('1:slow'), add('2:slow')]
  const beside = add('b')
  await end(0)
  await end(1)
  assert.deepEqual(batches.slice(1), [['1:slow', '2:slow', 'b'], ['1:slow'], ['2:slow'], ['b']])
  for (const at of [2, 3, 4]) await end(at)
  assert.equal(await beside, 'B')
  assert.deepEqual(batches.slice(5), [['1:slow']])
  await end(5)
  assert.deepEqual(batches.slice(6), [['2:slow']])
  await end(6)
  assert.deepEqual(await Promise.all(slow), ['1:SLOW', '2:SLOW'])
})
