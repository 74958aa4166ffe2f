import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createLatch } from './latch.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

function waiting(promise: Promise<void>) {
  const state = { isOver: false }
  void promise.then(() => {
    state.isOver = true
  })
  return state
}

test('a signal between the check and the wait is kept, until the latch is reset', async () => {
  using latch = createLatch()
  latch.set()
  await latch.wait()
  await latch.wait()
  latch.reset()
  const wait = waiting(latch.wait())
  await settled()
  assert.equal(wait.isOver, false)
  latch.set()
  await settled()
  assert.equal(wait.isOver, true)
})

test('a wait ends at its timeout, and leaves the latch unset', async (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  using latch = createLatch()
  for (const _ of [1, 2]) {
    const wait = waiting(latch.wait(100))
    t.mock.timers.tick(99)
    await settled()
    assert.equal(wait.isOver, false)
    t.mock.timers.tick(1)
    await settled()
    assert.equal(wait.isOver, true)
  }
})

test('a wait ends when its signal aborts, and none begins after that', async () => {
  const stop = new AbortController()
  using latch = createLatch(stop.signal)
  const wait = waiting(latch.wait())
  stop.abort()
  await settled()
  assert.equal(wait.isOver, true)
  await latch.wait()
})
