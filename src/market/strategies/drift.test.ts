import assert from 'node:assert/strict'
import { test } from 'node:test'
import { driftOf } from './drift.ts'
import type { StrategyFill } from './fill-trades.ts'

const minuteMs = 60_000
const entry = (atMs: number, fields: Partial<StrategyFill> = {}): StrategyFill => ({
  asset: 'ETH',
  isBuy: true,
  size: '1',
  price: '100',
  feeUsd: '0',
  realizedUsd: null,
  reason: 'due',
  isExit: false,
  executionId: `run at ${atMs}`,
  atMs,
  ...fields,
})
const simulated = (atMs: number, price: number, { isBuy = true } = {}) => ({
  asset: 'ETH',
  isBuy,
  atMs,
  priceUnits: BigInt(price) * 10n ** 8n,
})
const compare = (fills: StrategyFill[], entries: ReturnType<typeof simulated>[]) =>
  driftOf({
    fills,
    backtest: { entries, trades: 2, expectancy: '0.01' },
    executionSpanMs: minuteMs,
    fromMs: 0,
    toMs: 1_000 * minuteMs,
    nowMs: 1_000 * minuteMs,
  })

test('an entry is compared with the nearest one of the backtest, on its side, each once', () => {
  const drift = compare(
    [entry(10 * minuteMs, { price: '100.2' }), entry(20 * minuteMs), entry(500 * minuteMs)],
    [
      simulated(10 * minuteMs, 100),
      simulated(20 * minuteMs, 100, { isBuy: false }),
      simulated(21 * minuteMs, 100),
    ],
  )
  assert.deepEqual([drift.entries, drift.entries_only_here, drift.entries_only_in_backtest], [2, 1, 1])
  // 20 hundredths of a percent more were paid by one of two.
  assert.equal(drift.entry_price_bps, '10')
})

test('a sale is worse where it got less', () => {
  const drift = compare([entry(0, { isBuy: false, price: '99.9' })], [simulated(0, 100, { isBuy: false })])
  assert.equal(drift.entry_price_bps, '10')
})

test('fills of one run are one entry at their mean price', () => {
  const run = { executionId: 'one' }
  const drift = compare(
    [entry(0, { ...run, price: '100' }), entry(900, { ...run, size: '3', price: '104' })],
    [simulated(0, 103)],
  )
  assert.deepEqual([drift.entries, drift.entries_only_here, drift.entry_price_bps], [1, 0, '0'])
})

test('results of trades stand beside those of the backtest', () => {
  const exit = entry(minuteMs, { isBuy: false, isExit: true, price: '105', realizedUsd: '4' })
  const drift = compare([entry(0), exit], [])
  assert.deepEqual(
    [
      drift.trades,
      drift.trade_result,
      drift.backtest_trades,
      drift.backtest_trade_result,
      drift.entry_price_bps,
    ],
    [1, '0.04', 2, '0.01', null],
  )
})
