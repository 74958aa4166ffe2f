import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lastErrorOf } from './setup-status.ts'

test('the last error of the set-up is that of its newest task, of either kind', () => {
  const failed = (id: string) => ({ id, status: 'failed', error: { message: `${id} failed` } })
  const done = (id: string) => ({ id, status: 'completed', error: null })
  assert.equal(lastErrorOf([failed('a'), failed('b')]), 'b failed')
  assert.equal(lastErrorOf([failed('b'), failed('a')]), 'b failed')
  assert.equal(lastErrorOf([undefined, failed('a')]), 'a failed')
  assert.equal(lastErrorOf([failed('a'), done('b')]), null)
  assert.equal(lastErrorOf([undefined, undefined]), null)
})
