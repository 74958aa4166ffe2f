import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLru } from './create-lru.ts'

test('beyond the bound, the entry that was used longest ago is dropped', () => {
  const cache = createLru<string, number>(3)
  for (const [at, key] of ['a', 'b', 'c'].entries()) cache.set(key, at)
  cache.get('a')
  cache.set('d', 3)
  assert.deepEqual([...cache.keys()].toSorted(), ['a', 'c', 'd'])
  for (let n = 0; n < 1_000; n++) cache.set(`${n}`, n)
  assert.equal(cache.size, 3)
})
