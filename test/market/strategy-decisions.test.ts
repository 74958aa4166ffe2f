import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { Candle } from '#market/candle.ts'
import { indicatorList, isIndicator } from '#market/indicator-list.ts'
import { computeIndicators } from '#market/indicators.ts'
import {
  type CandleColumns,
  type CandleWindow,
  latestWindow,
  windowAt,
  windowCandles,
} from '#market/strategies/candle-columns.ts'
import { restingPrice } from '#market/strategies/condition-rule.ts'
import { decide } from '#market/strategies/decide.ts'
import { decisionText, inputsSha256 } from '#market/strategies/decision-record.ts'
import type { ConditionConfig, DecisionConfig, StrategyState } from '#market/strategies/strategy.ts'
import { readIndicator, ruleIndicators } from '#market/strategies/window-indicators.ts'
import {
  bitcoin,
  columnWalk,
  configOf,
  dayMs,
  farming,
  flatState,
  partOf,
  quarterMs,
} from './strategy-walk.ts'

const long = columnWalk({ seed: 3, count: 20_400, spanMs: quarterMs, volatility: 0.002 })

const condition: ConditionConfig = {
  type: 'condition',
  asset: 'BTC',
  side: 'long',
  order_usd: '200',
  leverage: 2,
  is_cross: true,
  slippage_bps: 50,
  enter_if: [
    { left: 'macd_histogram', is: 'crosses_above', right: { value: '0' } },
    { left: 'price', is: 'above', right: 'sma_50' },
  ],
  exit_if: [{ left: 'rsi_14', is: 'above', right: { value: '60' } }],
  stop_atr_pct: 150,
  target_atr_pct: 250,
}
const strategies: DecisionConfig['strategy'][] = [
  farming,
  condition,
  { type: 'dca', asset: 'BTC', amount_usd: '25' },
  { type: 'rebalance', targets: [{ asset: 'BTC', share_bps: 5_000 }], band_bps: 100 },
]

const candlesOf = (window: CandleWindow): Candle[] =>
  Array.from(window.startMs, (startMs, at) => ({
    startMs,
    endMs: startMs + window.spanMs,
    open: window.open[at]!,
    high: window.high[at]!,
    low: window.low[at]!,
    close: window.close[at]!,
    volume: window.volume[at]!,
  }))

const stateAt = (nowMs: number, fields: Partial<StrategyState> = {}): StrategyState => ({
  ...flatState,
  now_ms: nowMs,
  day_ends_ms: (Math.floor(nowMs / dayMs) + 1) * dayMs,
  ...fields,
})

function decided(columns: CandleColumns, nowMs: number, strategy: DecisionConfig['strategy'], fields = {}) {
  const window = latestWindow(columns, nowMs)
  const windows = window && { BTC: window }
  const [state, config] = [stateAt(nowMs, fields), configOf(strategy)]
  return `${inputsSha256(windows, state, config)} ${decisionText(decide(windows, state, config))}`
}

describe('the decisions of strategies', () => {
  test('read the same indicators as a report, bit by bit', () => {
    for (const seed of [1, 2]) {
      const window = windowAt(columnWalk({ seed, count: windowCandles }), windowCandles - 1)!
      const set = computeIndicators(candlesOf(window))
      for (const id of ruleIndicators) {
        if (!isIndicator(id)) continue
        const series = indicatorList[id].series(set)
        assert.deepEqual(readIndicator(window, id), { before: series.at(-2), now: series.at(-1) }, id)
      }
    }
  })

  test('are the same with 1,000, 5,000 and 20,000 candles of history, unlike in freqtrade #9152', () => {
    for (const strategy of strategies) {
      const logs = [1_000, 5_000, 20_000].map((count) => {
        const log: string[] = []
        for (let end = 20_000; end < 20_100; end++) {
          const columns = partOf(long, end - count, end)
          log.push(decided(columns, long.startMs[end - 1]! + quarterMs, strategy))
        }
        return log.join('\n')
      })
      assert.equal(logs[1], logs[0], strategy.type)
      assert.equal(logs[2], logs[0], strategy.type)
    }
  })

  test('do not change with the candle that is open, nor with later ones, unlike in freqtrade #746 and #10294', () => {
    const future = fc.record({
      end: fc.integer({ min: 1_000, max: 3_000 }),
      seed: fc.integer({ min: 1, max: 1_000 }),
      count: fc.integer({ min: 1, max: 50 }),
      sinceCloseMs: fc.integer({ min: 0, max: quarterMs - 1 }),
      strategy: fc.constantFrom(...strategies),
    })
    fc.assert(
      fc.property(future, ({ end, seed, count, sinceCloseMs, strategy }) => {
        const past = partOf(long, 0, end)
        const startMs = long.startMs[end - 1]! + quarterMs
        const later = columnWalk({ seed, count, spanMs: quarterMs, startMs, volatility: 0.02 })
        const both = joined(past, later)
        const nowMs = startMs + sinceCloseMs
        assert.equal(decided(both, nowMs, strategy), decided(past, nowMs, strategy))
      }),
      { numRuns: 60 },
    )
  })

  test('need exactly 1,000 candles without a gap', () => {
    assert.equal(windowAt(partOf(long, 0, 999), 998), undefined)
    const whole = partOf(long, 0, 1_001)
    assert.equal(windowAt(whole, 1_000)?.close.length, windowCandles)
    const holed = joined(partOf(long, 0, 500), partOf(long, 501, 1_002))
    assert.equal(windowAt(holed, 1_000), undefined)
    assert.equal(decide(undefined, stateAt(0), configOf(farming)).reason, 'not_enough_history')
  })

  test('differ in their record with any candle, state or setting', () => {
    const window = windowAt(long, 1_000)!
    const config = configOf(farming)
    const base = inputsSha256({ BTC: window }, flatState, config)
    const other = windowAt(partOf(long, 0, 1_001), 1_000)!
    other.volume[0]! += 1
    assert.notEqual(inputsSha256({ BTC: other }, flatState, config), base)
    assert.notEqual(inputsSha256({ BTC: window }, { ...flatState, entries_today: 1 }, config), base)
    assert.notEqual(inputsSha256({ BTC: window }, flatState, configOf({ ...farming, leverage: 6 })), base)
    const copy = JSON.parse(JSON.stringify({ state: flatState, config }))
    assert.equal(inputsSha256({ BTC: windowAt(long, 1_000)! }, copy.state, copy.config), base)
  })

  test('never open a position against an own order, beside a foreign one, or behind a guard', () => {
    let entries = 0
    for (let at = 1_000; at < 6_000; at++) {
      const window = windowAt(long, at)!
      const state = stateAt(window.endMs)
      const { action, orders } = decide({ BTC: window }, state, configOf(farming))
      if (action !== 'enter') continue
      entries++
      const against = orders[0]!.side === 'buy' ? 'sell' : 'buy'
      const reasons = [
        { fields: { resting: { BTC: [against] } }, reason: 'order_resting' },
        { fields: { foreign: ['BTC'] }, reason: 'foreign_position' },
        { fields: { blocked_by: 'daily_loss' }, reason: 'guard_daily_loss' },
        { fields: { entries_today: 3 }, reason: 'entries_of_the_day_used' },
        { fields: { budget_left_usd: '499' }, reason: 'budget' },
        { fields: { available_usd: '100' }, reason: 'insufficient_balance' },
      ] as const
      for (const { fields, reason } of reasons) {
        const held = decide({ BTC: window }, { ...state, ...fields } as StrategyState, configOf(farming))
        assert.deepEqual([held.action, held.reason, held.orders], ['hold', reason, []])
      }
    }
    assert.ok(entries > 20, `${entries} entries`)
  })

  test('put the stop of a day trade on a tick, two ticks away and within the liquidation', () => {
    const volatile = columnWalk({ seed: 5, count: 6_000, spanMs: quarterMs, volatility: 0.006 })
    const rules = { ...bitcoin, leverage_max: 40 }
    let [entries, refused] = [0, 0]
    for (let at = 1_000; at < 6_000; at++) {
      const window = windowAt(volatile, at)!
      for (const leverage of [1, 5, 38]) {
        const config = configOf({ ...farming, order_notional_usd: '900', leverage, is_cross: false }, rules)
        const { action, reason, orders } = decide({ BTC: window }, stateAt(window.endMs), config)
        if (reason === 'stop_beyond_liquidation') refused++
        if (action !== 'enter') continue
        entries++
        const { side, stop_loss, take_profit } = orders[0]!
        const close = window.close.at(-1)!
        const sign = side === 'buy' ? 1 : -1
        const distance = sign * (close - Number(stop_loss!.price))
        assert.ok(distance >= 2 && sign * (Number(take_profit!.price) - close) > 0)
        assert.equal(Number(stop_loss!.price) % 1, 0)
        const maintenance = 1 / (2 * bitcoin.venue_leverage_max)
        const liquidation = ((1 / leverage - maintenance) / (1 - sign * maintenance)) * close
        assert.ok(distance <= 0.6 * liquidation + 1e-6, `${distance} of ${liquidation}`)
      }
    }
    assert.ok(entries > 30, `${entries} entries`)
    assert.ok(refused > 0, 'no stop was beyond the liquidation')
  })

  test('close a day trade five minutes before the day ends, whatever the candles say', () => {
    const positions = { BTC: { side: 'long', size: '0.01' } } as const
    const endMs = flatState.day_ends_ms
    for (const [beforeMs, action] of [
      [300_001, 'hold'],
      [300_000, 'exit'],
      [1, 'exit'],
    ] as const) {
      const state = { ...flatState, positions, now_ms: endMs - beforeMs }
      const window = windowAt(long, 1_000)!
      const decision = decide({ BTC: window }, state, configOf(farming))
      assert.equal(decision.action, action)
      if (action === 'exit')
        assert.deepEqual(decision.orders, [
          { asset: 'BTC', side: 'sell', order_type: 'market', size: '0.01', reduce_only: true },
        ])
    }
    assert.equal(decide(undefined, { ...flatState, now_ms: endMs - 1 }, configOf(farming)).action, 'hold')
  })

  test('buy the same amount each time, and less only where that is allowed', () => {
    const window = windowAt(long, 1_000)!
    const buy = (fields: object, state: Partial<StrategyState> = {}) =>
      decide(
        { BTC: window },
        { ...flatState, ...state },
        configOf({ type: 'dca', asset: 'BTC', amount_usd: '50', ...fields }, { ...bitcoin, kind: 'spot' }),
      )
    const { orders, action } = buy({})
    const worth = Number(orders[0]!.size) * window.close.at(-1)!
    // Limits count an order at the worst price that its slippage of 0.5 % allows.
    assert.ok(action === 'enter' && worth * 1.005 <= 50 && worth > 48.5, String(worth))
    assert.equal(orders[0]!.usd_max, '50')
    assert.equal(buy({}, { budget_left_usd: '50' }).action, 'enter')
    assert.equal(buy({}, { available_usd: '40' }).reason, 'insufficient_balance')
    assert.equal(buy({ partial: true }, { available_usd: '40' }).action, 'enter')
    assert.equal(buy({ partial: true }, { available_usd: '9' }).reason, 'insufficient_balance')
    assert.equal(buy({ max_price: '1' }).reason, 'price_above_maximum')
    assert.equal(buy({}, { budget_left_usd: '49.94' }).reason, 'budget')
    const last = buy({}, { available_usd: '50', budget_left_usd: '50' })
    assert.equal(last.action, 'enter', 'the fee of the last purchase comes out of it')
  })

  test('bring shares back to their targets, and sell before they buy', () => {
    const window = windowAt(long, 1_000)!
    const price = window.close.at(-1)!
    const shares = (btc: number, eth: number) =>
      decide(
        { BTC: window, ETH: window },
        {
          ...flatState,
          equity_usd: '1000',
          available_usd: String(1_000 - btc - eth),
          positions: {
            ...(btc > 0 && { BTC: { side: 'long' as const, size: (btc / price).toFixed(5) } }),
            ...(eth > 0 && { ETH: { side: 'long' as const, size: (eth / price).toFixed(4) } }),
          },
        },
        configOf({
          type: 'rebalance',
          targets: [
            { asset: 'BTC', share_bps: 5_000 },
            { asset: 'ETH', share_bps: 4_000 },
          ],
          band_bps: 500,
        }),
      )
    assert.equal(shares(520, 420).reason, 'within_band')
    const sale = shares(700, 100)
    assert.deepEqual(
      sale.orders.map(({ asset, side, reduce_only }) => [asset, side, reduce_only]),
      [['BTC', 'sell', true]],
    )
    const purchase = shares(0, 0)
    assert.deepEqual(
      purchase.orders.map(({ asset, side }) => [asset, side]),
      [
        ['BTC', 'buy'],
        ['ETH', 'buy'],
      ],
    )
    const spent = purchase.orders.reduce((sum, { size }) => sum + Number(size) * price, 0)
    assert.ok(spent <= 900 && spent > 880, String(spent))
  })

  test('let a condition on one price rest at the venue', () => {
    const at = (is: 'above' | 'below', side: 'long' | 'short') =>
      restingPrice({ ...condition, side, enter_if: [{ left: 'price', is, right: { value: '90000' } }] })
    assert.deepEqual(at('below', 'long'), { price: '90000', order_type: 'limit' })
    assert.deepEqual(at('above', 'long'), { price: '90000', order_type: 'stop' })
    assert.deepEqual(at('above', 'short'), { price: '90000', order_type: 'limit' })
    assert.deepEqual(at('below', 'short'), { price: '90000', order_type: 'stop' })
    assert.equal(restingPrice(condition), undefined)
    const window = windowAt(long, 1_000)!
    const config = configOf({
      ...condition,
      enter_if: [{ left: 'price', is: 'below', right: { value: '90000' } }],
    })
    const { orders } = decide({ BTC: window }, stateAt(window.endMs), config)
    assert.deepEqual([orders[0]!.order_type, orders[0]!.price], ['limit', '90000'])
    const resting = decide({ BTC: window }, stateAt(window.endMs, { resting: { BTC: ['buy'] } }), config)
    assert.equal(resting.reason, 'order_resting')
    const close = window.close.at(-1)!
    const beyond = (is: 'below' | 'crosses_below') =>
      decide(
        { BTC: window },
        stateAt(window.endMs),
        configOf({
          ...condition,
          enter_if: [{ left: 'price', is, right: { value: String(close + 5_000) } }],
        }),
      )
    assert.deepEqual([beyond('below').action, beyond('below').orders[0]?.order_type], ['enter', 'market'])
    assert.equal(beyond('crosses_below').reason, 'price_not_crosses_below')
  })
})

function joined(a: CandleColumns, b: CandleColumns): CandleColumns {
  const both = (one: Float64Array, other: Float64Array) => Float64Array.of(...one, ...other)
  return {
    spanMs: a.spanMs,
    startMs: both(a.startMs, b.startMs),
    open: both(a.open, b.open),
    high: both(a.high, b.high),
    low: both(a.low, b.low),
    close: both(a.close, b.close),
    volume: both(a.volume, b.volume),
  }
}
