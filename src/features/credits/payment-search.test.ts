import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blocksToSearch } from './payment-search.ts'

test('new blocks are searched together with those before them, whose logs the node may have lacked', () => {
  assert.deepEqual(blocksToSearch(undefined, 5_000n), { fresh: { from: 4_000n, to: 5_000n } })
  assert.deepEqual(blocksToSearch(4_990n, 5_000n), {
    fresh: { from: 4_990n, to: 5_000n },
    repeated: { from: 4_690n, to: 4_989n },
  })
  assert.deepEqual(blocksToSearch(7n, 9n), { fresh: { from: 7n, to: 9n }, repeated: { from: 0n, to: 6n } })
  assert.deepEqual(blocksToSearch(0n, 9n), { fresh: { from: 0n, to: 9n } })
})
