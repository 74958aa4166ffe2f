import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { createListChanges } from './list-changes.ts'

const body = { method: 'subscriptions/listen' }
const isLimited = (error: unknown) => error instanceof Fault && error.code === 'rate_limited'

function changesFixture() {
  const { bus, run } = createListChanges(() => ({ [Symbol.dispose]: () => {} }))
  const ends: (() => void)[] = []
  const listen = () =>
    run(
      body,
      {
        userId: 'ada',
        async listKey() {
          await Promise.resolve()
          return 'list'
        },
      },
      async () => {
        await Promise.resolve()
        ends.push(bus.subscribe(() => {}))
      },
    )
  return { run, ends, listen }
}

test('many subscriptions at a time are counted before any of them waits', async () => {
  const { ends, listen } = changesFixture()
  const outcomes = await Promise.allSettled(Array.from({ length: 30 }, listen))
  assert.equal(ends.length, 10)
  assert.equal(outcomes.filter((each) => each.status === 'rejected' && isLimited(each.reason)).length, 20)
  await assert.rejects(listen(), isLimited)
  ends.pop()!()
  await listen()
})

test('a request that opens no stream gives its place back', async () => {
  const { run, ends, listen } = changesFixture()
  const client = { userId: 'ada', listKey: async () => 'list' }
  for (let count = 0; count < 20; count += 1) {
    await run(body, client, async () => undefined)
    const failing = { userId: 'ada', listKey: () => Promise.reject(new Error('the credential has ended')) }
    await assert.rejects(
      run(body, failing, async () => undefined),
      /has ended/,
    )
  }
  for (let count = 0; count < 10; count += 1) await listen()
  assert.equal(ends.length, 10)
})
