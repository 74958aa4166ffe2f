import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { repeat } from './repeat.ts'

const settled = () => new Promise((resolve) => setImmediate(resolve))

/** A job under a mocked interval of 100 ms; each run ends when the test says so. */
function job(t: TestContext, options: Partial<Parameters<typeof repeat>[1]> = {}) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const runs: PromiseWithResolvers<void>[] = []
  const run = () => {
    const pending = Promise.withResolvers<void>()
    runs.push(pending)
    return pending.promise
  }
  const repetition = repeat(run, { everyMs: 100, ...options })
  return { runs, repetition, tick: (ms: number) => t.mock.timers.tick(ms) }
}

test('a job runs once per interval, and the first time after it', async (t) => {
  const { runs, tick } = job(t)
  assert.equal(runs.length, 0)
  for (const count of [1, 2, 3]) {
    tick(100)
    assert.equal(runs.length, count)
    runs.at(-1)!.resolve()
    await settled()
  }
})

test('a job may run at once', async (t) => {
  const { runs, tick } = job(t, { immediately: true })
  assert.equal(runs.length, 1)
  runs[0]!.resolve()
  await settled()
  tick(100)
  assert.equal(runs.length, 2)
})

test('a slow run overlaps no other, and leaves no backlog of skipped ticks', async (t) => {
  const { runs, tick } = job(t)
  tick(1_000)
  assert.equal(runs.length, 1)
  runs[0]!.resolve()
  await settled()
  assert.equal(runs.length, 1)
  tick(100)
  assert.equal(runs.length, 2)
})

test('a run that fails is reported, and the next one comes at the next interval', async (t) => {
  const errors: unknown[] = []
  const { runs, tick } = job(t, { onError: (error) => errors.push(error) })
  tick(100)
  runs[0]!.reject(new Error('away'))
  await settled()
  assert.match(String(errors), /away/)
  tick(100)
  assert.equal(runs.length, 2)
})

test('a job that throws before it waits is reported too', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const errors: unknown[] = []
  const throwing = () => {
    throw new Error('at once')
  }
  repeat(throwing, { everyMs: 100, onError: (error) => errors.push(error) })
  t.mock.timers.tick(100)
  await settled()
  assert.match(String(errors), /at once/)
})

test('the disposal ends the interval and waits for the run under way', async (t) => {
  const { runs, repetition, tick } = job(t)
  tick(100)
  let isDisposed = false
  const disposal = Promise.resolve(repetition[Symbol.asyncDispose]()).then(() => {
    isDisposed = true
  })
  await settled()
  assert.equal(isDisposed, false)
  runs[0]!.resolve()
  await disposal
  tick(1_000)
  assert.equal(runs.length, 1)
})
