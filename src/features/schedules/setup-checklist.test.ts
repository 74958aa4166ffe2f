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
  max_runs: null,
  run_count: 0,
  now,
  ...fields,
})
const missing = (fields: Partial<SetupState>) =>
  setupItems(state(fields)).flatMap(({ key, required, done }) => (required && !done ? [key] : []))

test('an activation needs a time to come and the credits of a run', () => {
  assert.deepEqual(missing({}), [])
  for (const fields of [{ calendar: null }, { calendar: passed }, { max_runs: 3, run_count: 3 }])
    assert.deepEqual(missing(fields), ['schedule_valid'])
  assert.deepEqual(missing({ creditsPerRun: 2 }), ['credits_available'])
  assert.deepEqual(missing({ compiled: orders }), [])
  for (const item of setupItems(state({ compiled: orders })))
    assert.equal(item.how === null, item.done, item.key)
})

const row = { status: 'active' as const, status_reason: null, recent: [] }
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
