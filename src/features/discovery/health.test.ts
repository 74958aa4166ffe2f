import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '#kernel/clock.ts'
import { createHealthCheck } from './health.ts'

const never = () => new Promise<never>(() => undefined)
const well = {
  version: '1.2.3',
  environment: 'local',
  clock: systemClock,
  store: async () => 1,
  runner: async () => ({ queueDepth: 2, oldestPendingSeconds: 3 }),
  upstreams: async () => ({ base: { status: 'ok' as const, lastOkAt: new Date(0) } }),
  custody: () => 'ok' as const,
  money: () => ({ holds: [], isReplicated: null }),
  stoppedSince: async () => null,
  checkMsMax: 50,
}

test('healthy parts are ok, with their figures', async () => {
  const { body, down } = await createHealthCheck(well)()
  assert.equal(down, false)
  assert.equal(body.status, 'ok')
  assert.deepEqual(body.checks.runner, { status: 'ok', queue_depth: 2, oldest_pending_seconds: 3 })
  assert.deepEqual(body.checks.upstreams, { base: { status: 'ok', last_ok_at: '1970-01-01T00:00:00.000Z' } })
})

test('a store that hangs or fails is down, in bounded time', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  for (const store of [never, () => Promise.reject(new Error('connection failed'))]) {
    const report = createHealthCheck({ ...well, store })()
    await new Promise((resolve) => setImmediate(resolve))
    t.mock.timers.tick(well.checkMsMax)
    const { body, down } = await report
    assert.equal(down, true)
    assert.equal(body.status, 'down')
    assert.deepEqual(body.checks.store, { status: 'down', latency_ms: null })
  }
})

test('an unreachable upstream, slow upstreams or a stuck queue degrade the health and do not take it down', async () => {
  const worse = [
    { upstreams: async () => ({ base: { status: 'down' as const, lastOkAt: null } }) },
    { upstreams: never },
    { runner: never },
    { custody: () => 'degraded' as const },
    {
      money: () => ({
        holds: [{ scope: 'all', reason: 'restored', since: new Date(0) }],
        isReplicated: true,
      }),
    },
    { money: () => ({ holds: [], isReplicated: false }) },
    { stoppedSince: async () => new Date(0) },
    { runner: async () => ({ queueDepth: 9, oldestPendingSeconds: 600 }) },
  ]
  for (const part of worse) {
    const { body, down } = await createHealthCheck({ ...well, ...part })()
    assert.equal(body.status, 'degraded')
    assert.equal(down, false)
  }
})

test('concurrent requests share one check', async () => {
  let checks = 0
  const health = createHealthCheck({ ...well, store: async () => ++checks })
  await Promise.all(Array.from({ length: 50 }, () => health()))
  assert.equal(checks, 1)
})
