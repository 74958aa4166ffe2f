import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStoredRun } from '#market/strategies/stored-run.ts'
import { openRun } from '#market/strategies/strategy-run.ts'
import type { StoredAccount, StrategyColumns } from './strategy-columns.ts'
import { strategyView } from './strategy-view.ts'

const run = openRun(500_000_000n, 0)
const account = (mode: StoredAccount['mode'], cashMicros = 500_000_000n): StoredAccount => ({
  mode,
  state: toStoredRun({ ...run, account: { ...run.account, cashMicros, spentMicros: 120_000_000n } }),
  drift: null,
  initial_usd: '500',
})
const view = (fields: Partial<StrategyColumns['strategy']>, facts = {}) =>
  strategyView(
    {
      strategy: {
        mode: 'live',
        budget_usd: '500',
        spent_micros: null,
        accounts: [],
        decided: null,
        ...fields,
      },
    },
    facts,
  )

test('a schedule without accounts has no result, and all of its budget', () => {
  const { position, pnl, budget_spent_usd, budget_left_usd, last_decision } = view({})
  assert.deepEqual(
    [position, pnl, budget_spent_usd, budget_left_usd, last_decision],
    [[], null, null, '500', null],
  )
  assert.equal(view({ budget_usd: null }).budget_left_usd, null)
})

test('the result is that of the live account, with that on paper beside it', () => {
  const { pnl, budget_spent_usd, budget_left_usd } = view({
    accounts: [account('live', 490_000_000n), account('paper', 510_000_000n)],
  })
  assert.deepEqual([pnl?.realized_usd, pnl?.paper?.realized_usd], ['-10', '10'])
  assert.deepEqual([budget_spent_usd, budget_left_usd], ['120', '380'])
  // An open order of a live strategy counts before it is filled.
  assert.equal(view({ accounts: [account('live')], spent_micros: '450000000' }).budget_left_usd, '50')
  const onPaper = view({ mode: 'paper', accounts: [account('paper', 510_000_000n)] })
  assert.deepEqual([onPaper.pnl?.realized_usd, onPaper.pnl?.paper?.realized_usd], ['0', '10'])
})

test('positions are not shown while the markets of the venue are not known', () => {
  const held = account('paper')
  const position = {
    is_long: true,
    size: '10',
    cost: '20000000',
    leverage: 1,
    is_cross: true,
    opened_ms: 0,
    target_from_ms: 0,
    fees: '0',
    funding: '0',
  }
  const accounts = [{ ...held, state: { ...held.state, positions: { ETH: position } } }]
  assert.deepEqual([view({ accounts }).position, view({ accounts }).pnl], [null, null])
  const [shown] = view({ accounts }, { sizeDecimals: { ETH: 3 } }).position ?? []
  assert.deepEqual(
    [shown?.asset, shown?.mode, shown?.size, shown?.entry_price],
    ['ETH', 'paper', '0.01', '2000'],
  )
})

test('the last decision is shown in words as well', () => {
  const decision = { action: 'hold', reason: 'rsi_not_low', text: 'no entry: RSI 47 is not under 40' }
  const decided = { execution_id: 'run', mode: 'live' as const, at: '2026-01-05T14:00:00+00:00', decision }
  assert.deepEqual(view({ decided }).last_decision, {
    at: '2026-01-05T14:00:00.000Z',
    execution_id: 'run',
    mode: 'live',
    ...decision,
  })
})
