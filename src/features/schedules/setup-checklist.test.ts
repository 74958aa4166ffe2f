import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Calendar } from './recurrence/calendar-types.ts'
import { healthOf, type SetupState, setupItems, successRate } from './setup-checklist.ts'

const now = new Date('2026-12-01T12:00:00Z')
const daily: Calendar = { type: 'calendar', times: ['09:00'], timezone: 'UTC' }
const passed: Calendar = { type: 'once', at: '2026-11-01T09:00:00.000Z', timezone: 'UTC' }
const orders = { operations: ['swap_execute'], isSpending: true, notes: [] }
const state = (fields: Partial<SetupState> = {}): SetupState => ({
  calendar: daily,
  compiled: { operations: [], isSpending: false, notes: [] },
  creditsPerRun: 1,
  facts: { credits: 1, chatPerDayUsd: '0', perTransactionUsd: '100', approvalAboveUsd: null },
  type: 'prompt',
  mode: 'live',
  status: 'draft',
  guards: {},
  budget_usd: null,
  authority: null,
  backtested_at: null,
  papered_at: null,
  markets_in_use: null,
  live_guards: null,
  is_open: null,
  max_runs: null,
  run_count: 0,
  now,
  taskNow: now,
  ...fields,
})
const missing = (fields: Partial<SetupState>) =>
  setupItems(state(fields)).flatMap(({ key, required, done }) => (required && !done ? [key] : []))

test('an activation needs a time to come and the credits of a run', () => {
  assert.deepEqual(missing({}), [])
  for (const fields of [{ calendar: null }, { calendar: passed }, { max_runs: 3, run_count: 3 }])
    assert.deepEqual(missing(fields), ['schedule_valid'])
  assert.deepEqual(missing({ creditsPerRun: 2 }), ['credits_available'])
  const credits = setupItems(state({ creditsPerRun: 2 })).find(({ key }) => key === 'credits_available')
  assert.match(String(credits?.how), /credits_recharge.*subscriptions_checkout/)
  assert.deepEqual(missing({ compiled: orders }), [])
  for (const item of setupItems(state({ compiled: orders })))
    assert.equal(item.how === null, item.done, item.key)
})

const row = { type: 'prompt' as const, status: 'active' as const, status_reason: null, recent: [] }
const health = (fields: Partial<Parameters<typeof healthOf>[0]>, of: Partial<SetupState> = {}) => {
  const given = state(of)
  return healthOf({ ...row, ...fields }, setupItems(given), given.compiled)
}

test('the health names the one thing to do', () => {
  const rich = {
    facts: { credits: 9, chatPerDayUsd: '50', perTransactionUsd: '100', approvalAboveUsd: null },
    compiled: orders,
  }
  assert.deepEqual(health({}, rich), { health: 'on_track', health_reason: null })
  assert.deepEqual(health({}), { health: 'research_only', health_reason: null })
  assert.equal(health({}, { compiled: orders }).health, 'research_only')
  assert.match(String(health({}, { compiled: orders }).health_reason), /chat_per_day_usd/)
  assert.equal(health({}, { creditsPerRun: 5 }).health, 'blocked')
  assert.equal(health({ recent: ['running', 'failed', 'completed'] }, rich).health, 'degraded')
  assert.equal(health({ recent: ['completed', 'failed'] }, rich).health, 'on_track')
  assert.equal(health({ recent: ['completed', 'skipped'] }, rich).health, 'degraded')
  const paused = health(
    { status: 'paused', status_reason: 'no_credits: buy a pack by `credits_recharge`' },
    rich,
  )
  assert.equal(paused.health, 'paused')
  assert.match(String(paused.health_reason), /credits_recharge/)
})

test('a rate below five runs says nothing, and skipped times are no runs', () => {
  assert.equal(successRate(['completed', 'completed', 'completed', 'failed', 'skipped', 'running']), null)
  assert.equal(successRate(['completed', 'completed', 'completed', 'failed', 'skipped', 'completed']), 0.8)
})

const strategy = {
  type: 'dca' as const,
  compiled: {
    operations: ['perp_open'],
    isSpending: true,
    notes: [],
    assets: ['ETH'],
    guards: { max_loss_usd: '10', on_trip: 'flatten' as const },
    runMaxUsd: '20',
    dayMaxUsd: '20',
  },
}
const traded = {
  ...strategy,
  facts: { credits: 0, chatPerDayUsd: '0', perTransactionUsd: '100', approvalAboveUsd: '50', positions: [] },
  guards: { max_loss_usd: '10' },
  budget_usd: '100',
  backtested_at: now,
  papered_at: now,
  markets_in_use: {},
}

test('a strategy on paper needs its times alone, and no credits', () => {
  assert.deepEqual(missing({ ...strategy, mode: 'paper', creditsPerRun: 9 }), [])
  assert.deepEqual(missing({ ...strategy, mode: 'paper', calendar: passed }), ['schedule_valid'])
})

test('a strategy that trades needs evidence of the last week, bounds, and a market of its own', () => {
  assert.deepEqual(missing(traded), [])
  const before = (days: number) => new Date(now.getTime() - days * 86_400_000)
  const cases: [fields: Partial<SetupState>, key: string][] = [
    [{ backtested_at: null }, 'backtest_done'],
    [{ backtested_at: before(7.01) }, 'backtest_done'],
    [{ papered_at: before(7.01) }, 'paper_done'],
    [{ guards: { max_consecutive_losses: 3 } }, 'loss_guard'],
    [{ budget_usd: null }, 'budget_set'],
    [{ facts: { ...traded.facts, positions: ['ETH'] } }, 'no_foreign_position'],
    [{ facts: { ...traded.facts, positions: null } }, 'no_foreign_position'],
    [{ markets_in_use: { ETH: 's2' } }, 'asset_free'],
  ]
  for (const [fields, key] of cases) assert.deepEqual(missing({ ...traded, ...fields }), [key], key)
  assert.deepEqual(missing({ ...traded, backtested_at: before(7), papered_at: before(7) }), [])
  const untested = { ...traded, backtested_at: null, papered_at: null }
  const liveWith = (max_loss_usd: string) => ({ live_guards: { max_loss_usd, on_trip: 'flatten' as const } })
  assert.deepEqual(missing({ ...untested, ...liveWith('10') }), [])
  assert.deepEqual(missing({ ...untested, ...liveWith('9') }), ['backtest_done', 'paper_done'])
  const own = { facts: { ...traded.facts, positions: ['ETH'] }, is_open: true }
  assert.deepEqual(missing({ ...traded, ...own }), [])
})

test('the checklist says whether a person has approved what one run may spend', () => {
  const isApproved = (fields: Partial<SetupState>) =>
    setupItems(state({ ...traded, ...fields })).find(({ key }) => key === 'approved')?.done
  assert.equal(isApproved({}), true)
  const large = { compiled: { ...strategy.compiled, runMaxUsd: '60' } }
  assert.equal(isApproved(large), false)
  const approvedUntil = new Date(now.getTime() + 1_000).toISOString()
  assert.equal(isApproved({ ...large, authority: { approvedMicros: '60000000', approvedUntil } }), true)
  assert.equal(isApproved({ ...large, authority: { approvedMicros: '59999999', approvedUntil } }), false)
  const ended = { approvedMicros: '60000000', approvedUntil: now.toISOString() }
  assert.equal(isApproved({ ...large, authority: ended }), false)
})
