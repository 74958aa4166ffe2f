import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openGuards } from '#market/strategies/guards.ts'
import { type JudgedAccount, type JudgedStrategy, strategyAdvice } from './strategy-advice.ts'
import type { DriftView } from './strategy-view-schemas.ts'

const drift: DriftView = {
  at: '2026-01-02T00:00:00.000Z',
  from: '2026-01-01T00:00:00.000Z',
  to: '2026-01-02T00:00:00.000Z',
  entries: 10,
  entries_only_here: 0,
  entries_only_in_backtest: 0,
  entry_price_bps: '2',
  trades: 10,
  backtest_trades: 10,
  trade_result: '0.01',
  backtest_trade_result: '0.011',
}
const account = (fields: Partial<JudgedAccount['figures']> = {}): JudgedAccount => ({
  mode: 'live',
  figures: {
    positions: [],
    result: { realized_usd: '0', unrealized_usd: '0', fees_usd: '0', funding_usd: '0' },
    spentMicros: 0n,
    equityMicros: 1_000_000_000n,
    guards: openGuards(1_000_000_000n, 0),
    ...fields,
  },
  drift: null,
})
const strategy = (fields: Partial<JudgedStrategy> = {}): JudgedStrategy => ({
  mode: 'live',
  budgetMicros: 1_000_000_000n,
  spentMicros: 0n,
  guards: { max_loss_usd: '100' },
  accounts: [account()],
  idleReasons: [],
  ...fields,
})
const given = (fields: Partial<JudgedStrategy>) =>
  strategyAdvice(strategy(fields)).map(({ subject, priority }) => [subject, priority])

test('a strategy that does well gets no advice', () => {
  assert.deepEqual(given({}), [])
  assert.deepEqual(strategyAdvice(undefined), [])
  assert.deepEqual(given({ accounts: [{ ...account(), drift }], idleReasons: Array(49).fill('due') }), [])
})

test('a guard is named while it is near, and once it has tripped', () => {
  const near = account({ equityMicros: 915_000_000n })
  assert.deepEqual(given({ accounts: [near] }), [['guard max_loss near', 'soon']])
  assert.deepEqual(strategyAdvice(strategy({ accounts: [near] }))[0]?.evidence, [
    '`max_loss`: 85 of 100 USD',
    'worth now: 915 USD',
  ])
  const state = { ...openGuards(1_000_000_000n, 0), tripped: { guard: 'max_loss' as const, atMs: 0 } }
  assert.deepEqual(given({ accounts: [account({ guards: state, equityMicros: 899_000_000n })] }), [
    ['guard max_loss tripped at 1970-01-01T00:00:00.000Z', 'now'],
  ])
})

test('a budget is named when it is nearly used, and when it is used', () => {
  assert.deepEqual(given({ spentMicros: 799_999_999n }), [])
  assert.deepEqual(given({ spentMicros: 800_000_000n }), [['budget of 1000', 'soon']])
  assert.deepEqual(given({ spentMicros: 1_000_000_001n }), [['budget of 1000', 'now']])
  assert.deepEqual(given({ budgetMicros: null, spentMicros: 9_000_000_000n }), [])
})

test('losses in a row, worse prices and worse results have their evidence', () => {
  const guards = { ...openGuards(1_000_000_000n, 0), lossesInRow: 3 }
  assert.deepEqual(given({ accounts: [account({ guards })] }), [['losses in a row', 'soon']])
  const drifting = (fields: Partial<DriftView>) =>
    given({ accounts: [{ ...account(), drift: { ...drift, ...fields } }] })
  assert.deepEqual(drifting({ entry_price_bps: '20' }), [['drift from the backtest', 'soon']])
  assert.deepEqual(drifting({ entry_price_bps: '20', entries: 4 }), [])
  assert.deepEqual(drifting({ trade_result: '0.006' }), [['drift from the backtest', 'soon']])
  assert.deepEqual(drifting({ trade_result: '0.006', trades: 9 }), [])
})

test('a live strategy that was better on paper is advised to go back', () => {
  const paper: JudgedAccount = { ...account(), mode: 'paper', drift: { ...drift, trade_result: '0.02' } }
  const live = { ...account(), drift }
  assert.deepEqual(given({ accounts: [live, paper] }), [['paper better than live', 'soon']])
  assert.deepEqual(given({ mode: 'paper', accounts: [live, paper] }), [])
})

test('fifty runs without an entry are named with their most frequent reasons', () => {
  const idleReasons = Array.from({ length: 50 }, (_, n) => (n % 5 === 0 ? 'no_trend' : 'rsi_not_low'))
  const [advice] = strategyAdvice(strategy({ idleReasons }))
  assert.deepEqual(
    [advice?.subject, advice?.evidence],
    ['no entries', ['40 times `rsi_not_low`', '10 times `no_trend`']],
  )
})
