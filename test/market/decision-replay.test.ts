import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { latestWindow, windowCandles } from '#market/strategies/candle-columns.ts'
import { decide } from '#market/strategies/decide.ts'
import {
  type DecisionInputs,
  decisionText,
  inputsSha256,
  recordInputs,
  replayDecision,
} from '#market/strategies/decision-record.ts'
import type { DecisionConfig, StrategyState } from '#market/strategies/strategy.ts'
import { columnWalk, configOf, farming, flatState, partOf, quarterMs } from './strategy-walk.ts'

const long = columnWalk({ seed: 11, count: 4_000, spanMs: quarterMs, volatility: 0.002 })
const strategies: DecisionConfig['strategy'][] = [
  farming,
  {
    type: 'condition',
    asset: 'BTC',
    side: 'short',
    order_usd: '200',
    leverage: 2,
    is_cross: false,
    slippage_bps: 50,
    enter_if: [{ left: 'macd_histogram', is: 'below', right: { value: '0.5' } }],
    exit_if: [{ left: 'rsi_14', is: 'below', right: { value: '30' } }],
    stop_atr_pct: 150,
  },
  { type: 'dca', asset: 'BTC', amount_usd: '25', max_price: '101000' },
  { type: 'rebalance', targets: [{ asset: 'BTC', share_bps: 5_000 }], band_bps: 100 },
]

/** What a record is after it was stored as JSON and read again. */
const stored = (inputs: DecisionInputs): DecisionInputs => JSON.parse(JSON.stringify(inputs))

describe('the record of a decision', () => {
  const moment = fc.record({
    end: fc.integer({ min: windowCandles, max: 3_900 }),
    sinceCloseMs: fc.integer({ min: 0, max: quarterMs - 1 }),
    strategy: fc.constantFrom(...strategies),
    equity: fc.integer({ min: 1, max: 5_000 }),
    held: fc.option(
      fc.record({ side: fc.constantFrom('long', 'short'), size: fc.constantFrom('0.01', '0.00731') }),
    ),
    blocked_by: fc.constantFrom(null, 'cooldown', 'max_loss'),
    must_flatten: fc.boolean(),
  })

  test('gives the same bytes again, from its JSON and the candles that it names', () => {
    fc.assert(
      fc.property(moment, ({ end, sinceCloseMs, strategy, equity, held, blocked_by, must_flatten }) => {
        const nowMs = long.startMs[end - 1]! + quarterMs + sinceCloseMs
        const window = latestWindow(long, nowMs)!
        const state = {
          ...flatState,
          now_ms: nowMs,
          equity_usd: String(equity),
          available_usd: String(equity),
          positions: held ? { BTC: held } : {},
          blocked_by,
          must_flatten,
        } as StrategyState
        const config = configOf(strategy)
        const decision = decide({ BTC: window }, state, config)
        const inputs = stored(recordInputs({ BTC: window }, state, config))
        const { end_ms, candles, span_ms } = inputs.windows!.BTC!
        assert.deepEqual([end_ms, candles, span_ms], [window.endMs, windowCandles, quarterMs])
        // More history and later candles are there when it is replayed.
        const later = latestWindow(partOf(long, 0, Math.min(4_000, end + 50)), end_ms)!
        assert.deepEqual(replayDecision(inputs, { BTC: later }), {
          text: decisionText(decision),
          inputsSha256: inputsSha256({ BTC: window }, state, config),
        })
      }),
      { numRuns: 300 },
    )
  })

  test('of an exit between two closes needs no candles', () => {
    const state: StrategyState = {
      ...flatState,
      positions: { BTC: { side: 'long', size: '0.01' } },
      blocked_by: 'max_loss',
      must_flatten: true,
    }
    const inputs = stored(recordInputs(undefined, state, configOf(farming)))
    assert.equal(inputs.windows, null)
    assert.match(replayDecision(inputs, undefined).text, /"action":"exit".*"reason":"guard_max_loss"/)
  })
})
