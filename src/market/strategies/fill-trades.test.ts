import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type StrategyFill, tradesOf } from './fill-trades.ts'

const minuteMs = 60_000
const fill = (atMs: number, fields: Partial<StrategyFill>): StrategyFill => ({
  asset: 'ETH',
  isBuy: true,
  size: '1',
  price: '100',
  feeUsd: '0.1',
  realizedUsd: null,
  reason: 'due',
  isExit: false,
  executionId: 'run-1',
  atMs,
  ...fields,
})
const exit = (atMs: number, fields: Partial<StrategyFill>) =>
  fill(atMs, { isBuy: false, isExit: true, reason: 'target', ...fields })

test('an exit in several fills is one trade', () => {
  const trades = tradesOf([
    fill(0, {}),
    fill(1, { price: '110' }),
    exit(minuteMs, { size: '0.5', price: '120', realizedUsd: '7.4' }),
    exit(minuteMs + 500, { size: '1.5', price: '120', realizedUsd: '22.1' }),
  ])
  assert.equal(trades.length, 1)
  const [trade] = trades
  assert.deepEqual(
    [trade?.side, trade?.costMicros, trade?.netMicros, trade?.feesMicros, trade?.openedMs],
    ['long', 210_000_000n, 29_500_000n, 400_000n, 0],
  )
  // What the net result lacks beyond the fees was paid as funding.
  assert.equal(trade?.fundingMicros, 240_000_000n - 210_000_000n - 400_000n - 29_500_000n)
})

test('exits at different times, and after another entry, are trades of their own', () => {
  const trades = tradesOf([
    fill(0, { size: '3' }),
    exit(minuteMs, { realizedUsd: '-1' }),
    exit(5 * minuteMs, { realizedUsd: '2' }),
    fill(6 * minuteMs, {}),
    exit(6 * minuteMs + 1, { size: '2', realizedUsd: '3' }),
  ])
  assert.deepEqual(
    trades.map(({ netMicros }) => netMicros),
    [-1_000_000n, 2_000_000n, 3_000_000n],
  )
})

test('an exit whose entry is not among the fills still has its result', () => {
  const [trade] = tradesOf([exit(0, { isBuy: true, realizedUsd: '5', price: '90' })])
  assert.deepEqual([trade?.side, trade?.costMicros, trade?.netMicros], ['short', 90_000_000n, 5_000_000n])
})

test('a fill that says no result has that of its prices and fees', () => {
  const sale = fill(0, { isBuy: false })
  const [short] = tradesOf([sale, exit(minuteMs, { isBuy: true, price: '90' })])
  assert.deepEqual([short?.side, short?.netMicros], ['short', 9_800_000n])
})
