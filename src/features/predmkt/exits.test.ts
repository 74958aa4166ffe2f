import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { PredmktDeps } from './deps.ts'
import { createBookReader } from './exits.ts'

test('exits in 200 markets without a bid share the requests that ask which of these are over', async () => {
  const requests: number[] = []
  const venue = {
    async marketsById(ids: readonly string[]) {
      requests.push(ids.length)
      return new Map(ids.map((id) => [id, { isClosed: id === '7', payoutMicros: null } as PredictionMarket]))
    },
  } as unknown as PredmktDeps['venue']
  const books = createBookReader({ venue })
  const ids = Array.from({ length: 200 }, (_, index) => String(index))
  const over = await Promise.all([...ids, ...ids].map((id) => books.isOver(id)))
  assert.deepEqual(requests, [50, 50, 50, 50])
  assert.equal(over.filter(Boolean).length, 2)
  assert.equal(await books.isOver('7'), true)
  assert.equal(requests.length, 4)
})
