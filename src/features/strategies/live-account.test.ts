import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { MarketRules } from '#market/strategies/strategy.ts'
import { openRun, type RunConfig } from '#market/strategies/strategy-run.ts'
import { applyLostPart, applyOwnFills } from './live-account.ts'
import type { OwnFill } from './live-records.ts'

const rules: MarketRules = {
  kind: 'perp',
  size_decimals: 5,
  price_decimals: 1,
  leverage_max: 40,
  venue_leverage_max: 40,
  min_order_usd: '10',
}
const config: RunConfig = {
  decision: { strategy: { type: 'dca', asset: 'BTC', amount_usd: '100' }, markets: { BTC: rules } },
  guards: { max_consecutive_losses: 2, on_trip: 'flatten' },
  budgetMicros: null,
}
const dayEndsMs = 86_400_000
let trades = 0
const fill = (change: Partial<OwnFill>): OwnFill => ({
  fill_id: String(++trades),
  execution_id: 'run',
  task_id: 'entry',
  leg: 'entry',
  asset: 'BTC',
  is_buy: true,
  size: '0.01',
  price: '100000',
  fee_usd: '0.45',
  at_ms: trades,
  leverage: 2,
  is_cross: false,
  stop: { price: '98000', isMarket: true },
  target: null,
  reason: 'due',
  ...change,
})
const stopped = (change: Partial<OwnFill>) =>
  fill({ leg: 'sl', is_buy: false, price: '98000', stop: null, ...change })
const open = () => openRun(1_000_000_000n, dayEndsMs)
const given = { config, counted: [] as readonly string[] }

test('the fills of one order are one entry, and those of its stop one trade', () => {
  const fills = [fill({ size: '0.004' }), fill({ size: '0.006' })]
  const entered = applyOwnFills(open(), fills, given)
  assert.equal(entered.run.guards.entriesToday, 1)
  const position = entered.run.account.positions.get('BTC')
  assert.deepEqual(
    [position?.sizeUnits, position?.costMicros, position?.stop?.priceUnits],
    [1_000n, 1_000_000_000n, 9_800_000_000_000n],
  )
  const part = applyOwnFills(entered.run, [stopped({ size: '0.004' })], {
    ...given,
    counted: entered.counted,
  })
  const rest = applyOwnFills(part.run, [stopped({ size: '0.006' })], { ...given, counted: part.counted })
  assert.equal(rest.run.guards.lossesInRow, 1, 'the stop has filled in two parts at two times')
  assert.deepEqual([...rest.run.account.positions], [])
  assert.deepEqual(
    [...part.rows, ...rest.rows].map(({ reason, is_exit }) => [reason, is_exit]),
    [
      ['stop', true],
      ['stop', true],
    ],
  )
})

test('an entry whose stop could not be placed is closed by its own task, and says so', () => {
  const { run, rows } = applyOwnFills(
    open(),
    [fill({}), fill({ leg: 'close1', is_buy: false, price: '99900' })],
    given,
  )
  assert.deepEqual([...run.account.positions], [])
  assert.deepEqual(
    rows.map(({ reason }) => reason),
    ['due', 'unprotected'],
  )
})

test('cash and positions are the same however the fills arrive', () => {
  const amount = fc.integer({ min: 1, max: 50 }).map((lots) => (lots / 1_000).toFixed(3))
  fc.assert(
    fc.property(fc.array(amount, { minLength: 1, maxLength: 8 }), fc.nat(8), (sizes, cut) => {
      const fills = sizes.flatMap((size, at) => [
        fill({ task_id: `entry ${at}`, size, price: String(100_000 + at) }),
        stopped({ task_id: `entry ${at}`, size, price: String(99_000 + at) }),
      ])
      const whole = applyOwnFills(open(), fills, given)
      const first = applyOwnFills(open(), fills.slice(0, cut), given)
      const second = applyOwnFills(first.run, fills.slice(cut), { config, counted: first.counted })
      assert.deepEqual(second.run, whole.run)
      assert.deepEqual([...first.rows, ...second.rows], whole.rows)
      assert.deepEqual(second.counted, whole.counted)
    }),
    { numRuns: 200 },
  )
})

test('a lost part is closed at its price, and never more than the position', () => {
  const { run } = applyOwnFills(open(), [fill({})], given)
  const lost = { asset: 'BTC', units: 5_000n, price: '101000', atMs: 10, reason: 'by_hand' as const }
  const { run: after, rows } = applyLostPart(run, lost, { config, fillId: -1n })
  assert.deepEqual([...after.account.positions], [])
  assert.deepEqual(
    rows.map(({ size, realized_pnl_usd, reason }) => [size, realized_pnl_usd, reason]),
    [['0.01', '9.55', 'by_hand']],
  )
})
