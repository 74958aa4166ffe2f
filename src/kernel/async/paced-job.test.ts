import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startPacedJob } from './paced-job.ts'

/** A job whose runs end when the test ends them, each with the pause of its choice. */
function gatedJob(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const runs: PromiseWithResolvers<number>[] = []
  const errors: unknown[] = []
  const job = startPacedJob(
    () => {
      const run = Promise.withResolvers<number>()
      runs.push(run)
      return run.promise
    },
    { onError: (error) => errors.push(error), retryMs: 50 },
  )
  /** Timers are mocked, promises are not. */
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    job,
    runs,
    errors,
    async end(afterMs: number) {
      runs.at(-1)!.resolve(afterMs)
      await settled()
    },
    async fail() {
      runs.at(-1)!.reject(new Error('away'))
      await settled()
    },
    async pass(ms: number) {
      t.mock.timers.tick(ms)
      await settled()
    },
  }
}

test('each run says when the next one follows, and a failed one is repeated after its own pause', async (t) => {
  const { runs, errors, end, fail, pass } = gatedJob(t)
  assert.equal(runs.length, 1, 'the first one at once')
  await end(1_000)
  await pass(999)
  assert.equal(runs.length, 1)
  await pass(1)
  assert.equal(runs.length, 2)
  await fail()
  assert.equal(errors.length, 1)
  await pass(50)
  assert.equal(runs.length, 3)
})

test('a run that is brought forward replaces the later one, and does not overlap the one under way', async (t) => {
  const { job, runs, end, pass } = gatedJob(t)
  job.runWithin()
  await pass(0)
  assert.equal(runs.length, 1, 'one at a time')
  await end(60_000)
  await pass(0)
  assert.equal(runs.length, 2, 'what was asked for meanwhile follows')
  await end(60_000)
  job.runWithin(100)
  job.runWithin(500)
  await pass(100)
  assert.equal(runs.length, 3, 'the earliest request counts')
  await end(60_000)
  await pass(59_000)
  assert.equal(runs.length, 3)
})

test('nothing runs after the disposal, which waits for the run under way', async (t) => {
  const { job, runs, end, pass } = gatedJob(t)
  let isDisposed = false
  const disposal = job[Symbol.asyncDispose]().then(() => {
    isDisposed = true
  })
  await pass(0)
  assert.equal(isDisposed, false)
  await end(10)
  await disposal
  job.runWithin()
  await pass(60_000)
  assert.equal(runs.length, 1)
})
