import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withTimeLimit } from './time-limit.ts'

test('work within the limit gives its result or its failure', async () => {
  assert.equal(await withTimeLimit(Promise.resolve('done'), 60_000), 'done')
  await assert.rejects(withTimeLimit(Promise.reject(new Error('away')), 60_000), /away/)
})

test('work beyond the limit gives undefined, and its later failure is discarded', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const work = Promise.withResolvers<string>()
  const limited = withTimeLimit(work.promise, 100)
  t.mock.timers.tick(100)
  assert.equal(await limited, undefined)
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  work.reject(new Error('late'))
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', note)
  assert.deepEqual(unhandled, [])
})
