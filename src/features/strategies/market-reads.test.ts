import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnsOf } from '#market/strategies/candle-columns.ts'
import { createObserve } from './market-reads.ts'

const hourMs = 3_600_000
const closeMs = 2_000 * hourMs

/** Candles of a venue that has come to a time. */
function countingCandles(venueMs: () => number) {
  const reads = { fills: 0, columns: 0 }
  return {
    reads,
    candles: {
      async fillUntil(_: object, { toMs }: { toMs: number }) {
        reads.fills++
        return venueMs() >= toMs
      },
      async columns(_: object, { fromMs, toMs }: { fromMs: number; toMs: number }) {
        reads.columns++
        const count = (toMs - fromMs) / hourMs
        const candles = Array.from({ length: count }, (_, at) => ({
          startMs: fromMs + at * hourMs,
          endMs: fromMs + (at + 1) * hourMs,
          open: 1,
          high: 1,
          low: 1,
          close: 1,
          volume: 1,
        }))
        return columnsOf(candles, hourMs)
      },
    },
  }
}
const funding = { fill: async () => {}, read: async () => [] }
const venue = {
  mids: async () => new Map<string, string>(),
  book: () => Promise.reject(new Error('no book')),
}

test('1,000 strategies of three assets share the windows of a close', async () => {
  const { candles, reads } = countingCandles(() => closeMs)
  const observe = createObserve({ candles, funding, venue })
  const assets = ['BTC', 'ETH', 'SOL']
  const found = await Promise.all(
    Array.from({ length: 1_000 }, (_, at) =>
      observe.windows(assets.slice(at % 3, (at % 3) + 1), { span: '1h', closeMs }, `user ${at}`),
    ),
  )
  assert.deepEqual(reads, { fills: 3, columns: 3 })
  for (const [at, observed] of found.entries()) {
    assert.ok('windows' in observed)
    assert.equal(observed.windows?.[assets[at % 3]!]?.endMs, closeMs)
  }
})

test('a close that the venue has not come to is waited for, and not remembered', async () => {
  let nowMs = closeMs - 1
  const { candles } = countingCandles(() => nowMs)
  const observe = createObserve({ candles, funding, venue })
  const read = () => observe.windows(['BTC'], { span: '1h', closeMs }, 'user')
  assert.ok('waitMs' in (await read()))
  nowMs = closeMs
  assert.ok('windows' in (await read()))
})
