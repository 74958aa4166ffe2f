import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createReconnectBackoff, reconnectDelayMs } from './reconnect-backoff.ts'

test('a pause doubles up to half a minute, and half of it is random', () => {
  const at = (fraction: number) =>
    [0, 1, 5, 6, 50].map((n) => reconnectDelayMs(n, { fraction: () => fraction }))
  assert.deepEqual(at(0), [250, 500, 8_000, 15_000, 15_000])
  assert.deepEqual(at(1), [500, 1_000, 16_000, 30_000, 30_000])
})

test('a connection that breaks at once is retried no more often than the venue allows', () => {
  let now = 0
  const pacer = createReconnectBackoff(() => now, { fraction: () => 0 })
  const tried: number[] = []
  for (let i = 0; i < 200; i += 1) {
    now += pacer.delayMs(0)
    tried.push(now)
  }
  const most = Math.max(...tried.map((at) => tried.filter((each) => each >= at && each < at + 60_000).length))
  assert.equal(most, 15)
  assert.equal(tried[1]! - tried[0]!, 250)
})
