import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { backtest, tradesMin } from '#market/backtest-result.ts'
import type { Candle } from '#market/candle.ts'
import { computeIndicators } from '#market/indicators.ts'
import { type Costs, simulate } from '#market/trade-simulation.ts'
import { exitsOf, type Rule, rules, type Side } from '#market/trading-rules.ts'
import { priceWalk } from './price-walk.ts'

const costs: Costs = { taker: 0.00045, maker: 0.00015, slippage: 0.0005 }
const free: Costs = { taker: 0, maker: 0, slippage: 0 }

/** Enters after the candle at `at`, and never again. */
const once = (at: number, side: Side): Rule => ({
  id: 'trend',
  text: '',
  decide: (_candles, _set, index) => (index === at ? side : undefined),
})

const marketOf = (candles: readonly Candle[], funding: { atMs: number; rate: number }[] = []) => ({
  candles,
  set: computeIndicators(candles),
  funding,
})

/** A quiet market, and then candles that the test writes. */
function withCandles(tail: readonly Partial<Candle>[]): { candles: Candle[]; at: number; atr: number } {
  const quiet = priceWalk({ seed: 4, count: 260 })
  const base = quiet.at(-1)!
  const price = base.close
  const written = tail.map((each, index): Candle => {
    const startMs = base.endMs + index * 3_600_000
    const flat = { open: price, high: price, low: price, close: price, volume: 1 }
    return { startMs, endMs: startMs + 3_600_000, ...flat, ...each }
  })
  const candles = [...quiet, ...written]
  return { candles, at: quiet.length - 1, atr: computeIndicators(quiet).atr.at(-1)! }
}

test('a decision on a close is filled at the next open', () => {
  const { candles, at, atr } = withCandles([{}, {}])
  const open = candles[at]!.close + atr
  const next = { ...candles[at + 1]!, open, high: open + atr / 2, low: open, close: open + atr / 2 }
  const { target } = exitsOf('long', open, atr)
  const end = { ...candles[at + 2]!, open, low: open, close: open, high: target + atr }
  const { trades } = simulate(once(at, 'long'), marketOf([...candles.slice(0, at + 1), next, end]), free)
  assert.equal(trades.length, 1)
  assert.deepEqual([trades[0]!.entry, trades[0]!.entryMs], [open, next.startMs])
  assert.deepEqual([trades[0]!.exit, trades[0]!.reason], [target, 'target'])
})

test('the stop counts where one candle reaches the stop and the target', () => {
  for (const side of ['long', 'short'] as const) {
    const { candles, at, atr } = withCandles([{}])
    const price = candles[at + 1]!.open
    const wide = { ...candles[at + 1]!, high: price + 10 * atr, low: price - 10 * atr }
    const { trades } = simulate(once(at, side), marketOf([...candles.slice(0, -1), wide]), costs)
    assert.equal(trades[0]!.reason, 'stop', side)
    assert.ok(trades[0]!.net < 0, side)
  }
})

test('a gap beyond the stop is filled at the open of the gap', () => {
  const { candles, at, atr } = withCandles([{}, {}])
  const price = candles[at + 1]!.open
  const open = price - 5 * atr
  const gap = { ...candles[at + 2]!, open, high: open, low: open - atr, close: open }
  const { trades } = simulate(once(at, 'long'), marketOf([...candles.slice(0, -1), gap]), free)
  assert.equal(trades[0]!.exit, open)
})

test('fees, slippage and funding are taken from the result', () => {
  const { candles, at, atr } = withCandles([{}, {}])
  const price = candles[at + 1]!.open
  const entry = price * (1 + costs.slippage)
  const { target } = exitsOf('long', entry, atr)
  const last = { ...candles[at + 2]!, high: target + atr }
  const hours = [candles[at + 1]!.endMs, last.endMs]
  const funding = [
    { atMs: candles[at + 1]!.startMs, rate: 1 },
    ...hours.map((atMs) => ({ atMs, rate: 0.0001 })),
    { atMs: last.endMs + 1, rate: 1 },
  ]
  const market = marketOf([...candles.slice(0, -1), last], funding)
  const { trades } = simulate(once(at, 'long'), market, costs)
  const fees = costs.taker + costs.maker * (target / entry)
  assert.ok(Math.abs(trades[0]!.funding - 0.0002) < 1e-12)
  assert.ok(Math.abs(trades[0]!.net - ((target - entry) / entry - fees - 0.0002)) < 1e-12)
  const shorts = simulate(
    once(at, 'short'),
    marketOf([...candles.slice(0, -1), { ...last, high: price, low: price - 10 * atr }], funding),
    costs,
  )
  assert.ok(Math.abs(shorts.trades[0]!.funding + 0.0002) < 1e-12)
})

const walks = fc.record({
  seed: fc.integer({ min: 0, max: 10_000 }),
  volatility: fc.double({ min: 0.003, max: 0.03, noNaN: true }),
  rule: fc.constantFrom(rules.trend, rules.range),
})

test('no later candle changes a trade that has ended', () => {
  fc.assert(
    fc.property(walks, fc.integer({ min: 300, max: 900 }), ({ seed, volatility, rule }, count) => {
      const candles = priceWalk({ seed, volatility, count: 900 })
      const all = simulate(rule, marketOf(candles), costs).trades
      const part = simulate(rule, marketOf(candles.slice(0, count)), costs).trades
      const endMs = candles[count - 1]!.endMs
      assert.deepEqual(
        part,
        all.filter(({ exitMs }) => exitMs <= endMs),
      )
    }),
    { numRuns: 40 },
  )
})

test('every trade ends at its stop or worse, or at its target, after it began', () => {
  fc.assert(
    fc.property(walks, ({ seed, volatility, rule }) => {
      const candles = priceWalk({ seed, volatility, count: 900 })
      const { trades, equity, firstAt } = simulate(rule, marketOf(candles), free)
      assert.equal(equity.length, candles.length - firstAt)
      for (const [at, trade] of trades.entries()) {
        const sign = trade.side === 'long' ? 1 : -1
        const gain = sign * (trade.exit - trade.entry)
        assert.ok(trade.reason === 'target' ? gain > 0 : gain < 0)
        assert.ok(trade.exitMs > trade.entryMs)
        assert.ok(at === 0 || trade.entryMs >= trades[at - 1]!.exitMs - 3_600_000)
        assert.ok(Math.abs(trade.net - gain / trade.entry) < 1e-12)
      }
    }),
    { numRuns: 40 },
  )
})

test('higher costs never make a result better', () => {
  fc.assert(
    fc.property(walks, ({ seed, volatility, rule }) => {
      const market = marketOf(priceWalk({ seed, volatility, count: 900 }))
      const sum = (taker: number) =>
        simulate(rule, market, { ...free, taker, maker: taker }).trades.reduce((all, { net }) => all + net, 0)
      assert.ok(sum(0.001) <= sum(0) + 1e-12)
    }),
    { numRuns: 20 },
  )
})

test('a result repeats, and few trades are not judged', () => {
  const market = marketOf(priceWalk({ seed: 9, count: 1_400, volatility: 0.012 }))
  const options = { costs, seed: 1 }
  const result = backtest(rules.range, market, options)
  assert.deepEqual(backtest(rules.range, market, options), result)
  assert.equal(result.verdict === 'too_few', result.trades < tradesMin)
  const few = backtest(rules.range, marketOf(market.candles.slice(0, 420)), options)
  assert.ok(few.trades > 0 && few.trades < tradesMin, `${few.trades} trades`)
  assert.equal(few.verdict, 'too_few')
  const none = backtest(once(-1, 'long'), market, options)
  assert.deepEqual([none.trades, none.verdict, none.winRate, none.totalReturn], [0, 'too_few', undefined, 0])
  const empty = backtest(rules.trend, marketOf([]), options)
  assert.deepEqual([empty.trades, empty.candles, empty.fromMs], [0, 0, undefined])
})

/** Prices without memory: a rule that won in most of them would look ahead. */
test('no rule has an edge on random prices without costs', () => {
  const nets: number[] = []
  for (let seed = 1; seed <= 40; seed++)
    for (const rule of [rules.trend, rules.range])
      nets.push(
        ...simulate(rule, marketOf(priceWalk({ seed, count: 1_000 })), free).trades.map(({ net }) => net),
      )
  assert.ok(nets.length > 500, `${nets.length} trades`)
  const mean = nets.reduce((sum, net) => sum + net, 0) / nets.length
  const deviation = Math.sqrt(nets.reduce((sum, net) => sum + (net - mean) ** 2, 0) / nets.length)
  assert.ok(Math.abs(mean) < (4 * deviation) / Math.sqrt(nets.length), `${mean} of ${deviation}`)
})
