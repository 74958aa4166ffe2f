import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decisionWords } from './decision-words.ts'
import { type Decision, type DecisionConfig, hold, type StrategyState } from './strategy.ts'

const state: StrategyState = {
  now_ms: 0,
  day_ends_ms: 86_400_000,
  equity_usd: '1000',
  available_usd: '1000',
  budget_left_usd: null,
  blocked_by: null,
  must_flatten: false,
  entries_today: 0,
  positions: {},
  resting: {},
  foreign: [],
}
const open: StrategyState = { ...state, positions: { BTC: { side: 'long', size: '0.1' } } }
const dca: DecisionConfig = { strategy: { type: 'dca', asset: 'BTC', amount_usd: '20' }, markets: {} }
const farming: DecisionConfig = {
  strategy: {
    type: 'day_trade_farming',
    asset: 'BTC',
    order_notional_usd: '200',
    leverage: 2,
    is_cross: true,
    slippage_bps: 50,
    tp_is_market: true,
    sl_is_market: true,
  },
  markets: {},
}
const words = (decision: Decision, at: StrategyState = state, config: DecisionConfig = farming) =>
  decisionWords(decision, at, config)

test('a decision that does nothing says what was missing', () => {
  const cases: [Decision, string][] = [
    [hold('rsi_not_low', { rsi_14: '47', ema_20: '3', ema_50: '2' }), 'no entry: RSI 47 is not under 40'],
    [hold('rsi_not_low', { rsi_14: '47.318' }), 'no entry: RSI 47.3 is not under 40'],
    [hold('rsi_not_high', { rsi_14: '59.96' }), 'no entry: RSI 60 is not over 60'],
    [
      hold('price_above_maximum', { price: '65000.5', max_price: '60000' }),
      'no entry: the price of 65,000.50 is above the maximum of 60,000',
    ],
    [
      hold('insufficient_balance', { required_usd: '20', available_usd: '5.25' }),
      'no entry: it needs 20 USD, and 5.25 USD are available',
    ],
    [
      hold('budget', { order_usd: '4', minimum_usd: '10' }),
      'no entry: it needs 10 USD, and 4 USD are left of the budget',
    ],
    [hold('guard_daily_loss'), 'no entry: the guard on the loss of the day has tripped'],
    [hold('below_minimum'), 'no entry: every order would be below the minimum of the venue'],
    [hold('flat'), 'no exit: nothing is open'],
    [hold('some_new_reason'), 'no entry: some new reason'],
  ]
  for (const [decision, text] of cases) assert.equal(words(decision), text)
})

test('a condition is read as one of the exit while a position is open', () => {
  const missing = hold('rsi_14_not_above', { rsi_14: '47', bound: '60' })
  assert.equal(words(missing), 'no entry: RSI 14 at 47 is not above 60')
  assert.equal(words(missing, open), 'no exit: RSI 14 at 47 is not above 60')
  const crossing = hold('price_not_crosses_above', { price: '100.5', bound: 'sma_50' })
  assert.equal(words(crossing), 'no entry: price at 100.50 has not crossed above SMA 50')
})

test('a decision that acts says what it orders and why', () => {
  const entry: Decision = {
    action: 'enter',
    reason: 'pullback_of_uptrend',
    figures: { rsi_14: '35.02' },
    orders: [
      {
        asset: 'BTC',
        side: 'buy',
        order_type: 'market',
        size: '0.003',
        reduce_only: false,
        stop_loss: { price: '64000', is_market: true },
        take_profit: { price: '67000', is_market: true },
      },
    ],
  }
  assert.equal(
    words(entry),
    'entry: buy 0.003 BTC at the market, stop 64,000, target 67,000, because the trend is up and the price has pulled back (RSI 35)',
  )
  const sale = { asset: 'ETH', side: 'sell', order_type: 'market', size: '1', reduce_only: true } as const
  const exit: Decision = { action: 'exit', reason: 'guard_max_loss', figures: {}, orders: [sale] }
  assert.equal(
    words(exit, open, dca),
    'exit: sell 1 ETH at the market, because the guard on the loss since the beginning has tripped',
  )
  const many: Decision = {
    action: 'adjust',
    reason: 'share_above_target',
    figures: {},
    orders: Array(9).fill(sale),
  }
  assert.match(words(many, open, dca), /; and 6 more, because a share is above its target$/)
})
