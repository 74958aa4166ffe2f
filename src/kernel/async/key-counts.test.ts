import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyCounts } from './key-counts.ts'

test('keys are counted apart, and a key leaves with its last count', () => {
  const counts = createKeyCounts()
  for (const key of ['a', 'a', 'b', 'a']) counts.add(key)
  assert.deepEqual([counts.get('a'), counts.get('b'), counts.get('c'), counts.size()], [3, 1, 0, 2])
  counts.remove('a')
  counts.remove('b')
  assert.deepEqual([counts.get('a'), counts.get('b'), counts.size()], [2, 0, 1])
})

test('a key that was never counted cannot fall below 0', () => {
  const counts = createKeyCounts()
  counts.remove('a')
  counts.add('a')
  assert.equal(counts.get('a'), 1)
})

test('the keys that reach a count are found', () => {
  const counts = createKeyCounts()
  for (const key of ['a', 'a', 'b']) counts.add(key)
  assert.deepEqual(
    [counts.withAtLeast(1), counts.withAtLeast(2), counts.withAtLeast(3)],
    [['a', 'b'], ['a'], []],
  )
  assert.deepEqual([counts.highestBelow(3), counts.highestBelow(2), counts.highestBelow(1)], [2, 1, 0])
})
