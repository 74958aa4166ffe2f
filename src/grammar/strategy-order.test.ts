import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNames } from './asset-and-chain-names.ts'
import { nicknames } from './english/word-lists.ts'
import { splitGuards } from './strategy-guards.ts'
import { mayBeStrategy, readStrategy } from './strategy-order.ts'

const asset = (symbol: string, name: string, { perp = true } = {}) => ({
  symbol,
  name,
  tokens: [],
  perp,
  spot: false,
})
const assets = [
  asset('BTC', 'Bitcoin'),
  asset('ETH', 'Ether'),
  asset('SOL', 'Solana'),
  asset('USDC', 'USD Coin', { perp: false }),
]
const names = createNames({ chains: [], assets }, nicknames)

const read = (text: string, { isTimed }: { isTimed: boolean }) => {
  const found = readStrategy(text, names, { isTimed })
  return 'strategy' in found ? found.strategy : found.unread
}
const timed = (text: string) => read(text, { isTimed: true })
const untimed = (text: string) => read(text, { isTimed: false })

test('a purchase at times is read with its amount, and with the highest price', () => {
  const plain = { type: 'dca', config: { asset: 'ETH', amount_usd: '20' } }
  for (const text of [
    'buy 20 dollars of ETH',
    'Buy $20 of ether.',
    'please buy me 20 USDC worth of ETH',
    'buy ETH for 20 dollars',
    'invest twenty dollars in ETH',
    'dca 20 usd into eth',
    'put $20 into ETH',
  ])
    assert.deepEqual(timed(text), plain, text)
  const bounded = { type: 'dca', config: { asset: 'BTC', amount_usd: '1000', max_price: '90000' } }
  for (const text of [
    'buy 1,000 dollars of bitcoin if the price is below 90,000 dollars',
    'buy $1k of BTC but not above $90000',
    'buy $1000 of BTC when it is under 90000',
  ])
    assert.deepEqual(timed(text), bounded, text)
  assert.deepEqual(timed('buy 20 dollars of SOL or what is left'), {
    type: 'dca',
    config: { asset: 'SOL', amount_usd: '20', partial: true },
  })
})

test('shares are read with their band', () => {
  const targets = [
    { asset: 'BTC', share_pct: '60' },
    { asset: 'ETH', share_pct: '40' },
  ]
  for (const text of ['rebalance to 60% BTC and 40% ETH', 'hold 60 percent of BTC, 40 percent of ETH'])
    assert.deepEqual(timed(text), { type: 'rebalance', config: { targets } }, text)
  for (const text of [
    'rebalance my portfolio to 60% BTC and 40% ETH when one is off by 5 percent',
    'keep BTC at 60% and ETH at 40% with a band of 5%',
  ])
    assert.deepEqual(timed(text), { type: 'rebalance', config: { targets, band_pct: '5' } }, text)
})

test('an entry under plain conditions is read with its exit', () => {
  assert.deepEqual(untimed('long 100 dollars of BTC when RSI is below 30, and close when RSI is above 55'), {
    type: 'condition',
    config: {
      asset: 'BTC',
      order_notional_usd: '100',
      side: 'long',
      enter_if: [{ left: 'rsi_14', is: 'below', right: '30' }],
      exit_if: [{ left: 'rsi_14', is: 'above', right: '55' }],
    },
  })
  assert.deepEqual(
    untimed(
      'short $50 of ETH at 3x on the 4 hour chart when the price crosses below the 50 EMA and macd is below 0.5',
    ),
    {
      type: 'condition',
      config: {
        asset: 'ETH',
        order_notional_usd: '50',
        side: 'short',
        leverage: 3,
        interval: '4h',
        enter_if: [
          { left: 'price', is: 'crosses_below', right: 'ema_50' },
          { left: 'macd', is: 'below', right: '0.5' },
        ],
      },
    },
  )
  assert.deepEqual(untimed('buy 20 dollars of ETH when ETH falls below 1,500 dollars'), {
    type: 'condition',
    config: {
      asset: 'ETH',
      order_notional_usd: '20',
      side: 'long',
      enter_if: [{ left: 'price', is: 'below', right: '1500' }],
    },
  })
})

test('day trades are read with their leverage', () => {
  assert.deepEqual(untimed('day trade BTC with 200 dollars per trade at 3x leverage'), {
    type: 'day_trade_farming',
    config: { asset: 'BTC', order_notional_usd: '200', leverage: 3 },
  })
})

test('a sentence with anything else is no strategy, and the words that were not read are returned', () => {
  assert.deepEqual(timed('buy 20 dollars of eth on base'), ['on base'])
  assert.deepEqual(timed('buy 20 dollars of ETH and tell me how it went'), ['tell me how it went'])
  assert.deepEqual(timed('buy 20 dollars of GOLD'), ['GOLD'])
  assert.deepEqual(timed('do not buy 20 dollars of ETH'), ['do not buy 20 dollars of ETH'])
  assert.deepEqual(timed('buy -20 dollars of ETH'), ['-20 dollars of ETH'])
  assert.deepEqual(timed('buy 0 dollars of ETH'), ['0 dollars of ETH'])
  assert.deepEqual(timed('"buy 20 dollars of ETH"'), ['"buy 20 dollars of ETH"'])
  for (const text of [
    'long 100 dollars of BTC when RSI is below 30 or above 70',
    'long 100 dollars of BTC when OBV rises above 3',
    'long 100 dollars of BTC when ETH is below 1500',
    'long 100 dollars of BTC',
  ])
    assert.ok(Array.isArray(untimed(text)), text)
  assert.equal(mayBeStrategy('how did eth do'), false)
})

test('guards are read out of a sentence, each once', () => {
  const guarded = (text: string) => {
    const { rest, guards, budgetUsd } = splitGuards(text)
    return [rest, guards, ...(budgetUsd === undefined ? [] : [budgetUsd])]
  }
  assert.deepEqual(guarded('buy 20 dollars of ETH, and stop when I am down 10 percent'), [
    'buy 20 dollars of ETH',
    { max_drawdown_pct: '10' },
  ])
  assert.deepEqual(guarded("buy ETH for $20 but stop buying once I've lost more than $1,500.50 a day."), [
    'buy ETH for $20.',
    { daily_loss_usd: '1500.50', on_trip: 'stop_entries' },
  ])
  assert.deepEqual(guarded('day trade BTC with $200, at most 2 trades a day, stop after 3 losses in a row'), [
    'day trade BTC with $200',
    { max_consecutive_losses: 3, max_trades_per_day: 2 },
  ])
  assert.deepEqual(
    guarded('buy 20 dollars of ETH with a budget of 500 dollars and stop if it is down 50 dollars'),
    ['buy 20 dollars of ETH', { max_loss_usd: '50' }, '500'],
  )
  assert.deepEqual(guarded('stop me if you have heard this'), ['stop me if you have heard this', {}])
})

test('long texts are read in bounded time', () => {
  const began = performance.now()
  for (const text of [
    `buy ${'1 '.repeat(1_000)}`,
    ', and '.repeat(330),
    'stop when '.repeat(200),
    ' '.repeat(2_000),
  ]) {
    splitGuards(text)
    timed(text)
    untimed(text)
  }
  assert.ok(performance.now() - began < 200)
})
