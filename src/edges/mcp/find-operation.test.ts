import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withinBytes } from './find-operation.ts'

test('an answer ends before it has too many bytes, and has at least one item', () => {
  const items = ['ä'.repeat(50), 'b'.repeat(50), 'c'.repeat(50)]
  assert.equal(withinBytes(items, 1_000).length, 3)
  assert.equal(withinBytes(items, 155).length, 2)
  assert.equal(withinBytes(items, 153).length, 1)
  assert.equal(withinBytes(items, 1).length, 1)
  assert.deepEqual(withinBytes([], 1), [])
})
