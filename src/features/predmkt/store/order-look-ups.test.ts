import assert from 'node:assert/strict'
import { test } from 'node:test'
import { later } from '#kernel/clock.ts'
import type { PredictionOrderRow } from '#store/tables/predmkt.ts'
import { isChanged, isDueLookUp } from './order-look-ups.ts'
import { isLost } from './order-store.ts'

const roundMs = 2_000
const dayMs = 24 * 3_600_000

test('an order that the venue does not know is looked up ever more rarely, and counts as lost after five minutes', () => {
  const since = new Date()
  const row = { misses: 0, missing_since: null as Date | null }
  const lookUps: number[] = []
  let lostMs: number | undefined
  for (let ms = 0; ms <= dayMs; ms += roundMs) {
    const now = later(since, ms)
    if (!isDueLookUp(row, now)) continue
    lookUps.push(ms)
    row.misses += 1
    row.missing_since ??= now
    if (isLost(row, now)) lostMs ??= ms
  }
  assert.equal(lostMs, 5 * 60_000)
  assert.ok(lookUps.length < 20, `${lookUps.length} look-ups in a day`)
  assert.ok(lookUps.filter((ms) => ms < 60_000).length >= 5, lookUps.join())
  // Once it is not followed any more is decided at a look-up.
  assert.equal(isDueLookUp({ misses: 40, missing_since: since }, later(since, dayMs + 5 * 60_000)), true)
})

test('an order that rests as its row says is not stored again', () => {
  const row = { status: 'live', matched: '5', misses: 0 } as PredictionOrderRow
  assert.equal(isChanged(row, { matchedUnits: 5n }), false)
  // The list lags behind a match that is on record.
  assert.equal(isChanged(row, { matchedUnits: 4n }), false)
  assert.equal(isChanged(row, { matchedUnits: 6n }), true)
  assert.equal(isChanged({ ...row, misses: 1 }, { matchedUnits: 5n }), true)
  assert.equal(isChanged({ ...row, status: 'delayed' }, { matchedUnits: 5n }), true)
})
