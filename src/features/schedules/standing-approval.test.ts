import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Calendar } from './recurrence/calendar-types.ts'
import { approvedBefore, covers, maxToApprove, termsHash, timesOf } from './standing-approval.ts'

const orders = { operations: ['swap_execute'], isSpending: true, notes: [] }
const version = {
  id: 's1',
  version: 2,
  type: 'prompt' as const,
  mode: 'live' as const,
  config: null,
  budget_usd: null,
  query: 'swap 60 usdc to eth on base',
  agent: 'ProAgent',
  calendar: null,
  guards: {},
  compiled: orders,
}
const access = {
  agentId: 'agt_one',
  scheme: 'keypair',
  scopes: ['chat', 'read', 'trade'],
  personId: 'p1',
  linkedAt: '2026-01-01T00:00:00.000Z',
}
const facts = { credits: 1, chatPerDayUsd: '100', perTransactionUsd: '80', approvalAboveUsd: '50' }

test('a version that may start more than needs an approval is approved up to the most of one order', () => {
  const max = (
    compiled: object,
    of: typeof facts | (Omit<typeof facts, 'approvalAboveUsd'> & { approvalAboveUsd: null }),
  ) => maxToApprove({ ...version, compiled }, of)
  assert.equal(max(orders, facts), '80')
  assert.equal(max(orders, { ...facts, chatPerDayUsd: '60' }), '60')
  assert.equal(max(orders, { ...facts, chatPerDayUsd: '50' }), undefined)
  assert.equal(max(orders, { ...facts, approvalAboveUsd: null }), undefined)
  assert.equal(max({ ...orders, isSpending: false }, facts), undefined)
  const strategy = { ...version, type: 'dca' as const, compiled: { ...orders, runMaxUsd: '70' } }
  assert.equal(maxToApprove(strategy, facts), '70')
  assert.equal(maxToApprove({ ...strategy, compiled: { ...orders, runMaxUsd: '50' } }, facts), undefined)
  assert.equal(maxToApprove({ ...strategy, compiled: { ...orders, runMaxUsd: '90' } }, facts), '80')
  assert.equal(maxToApprove({ ...strategy, mode: 'paper' }, facts), undefined)
})

test('an approval covers what is not above it, and only until it ends', () => {
  const approval = {
    approvedMicros: '60000000',
    approvedUntil: '2026-03-01T00:00:00.000Z',
    approvedTerms: termsHash(version, access),
  }
  const authority = { ...access, ...approval }
  const at = (time: string) => ({ access, now: new Date(time) })
  const before = approvedBefore({ ...version, authority }, at('2026-02-28T00:00:00Z'))
  assert.deepEqual(before, approval)
  assert.equal(covers(before, '60'), true)
  assert.equal(covers(before, '60.000001'), false)
  assert.deepEqual(approvedBefore({ ...version, authority }, at('2026-03-01T00:00:00Z')), {})
  assert.deepEqual(approvedBefore({ ...version, authority: null }, at('2026-01-01T00:00:00Z')), {})
  assert.equal(covers({}, '1'), false)
})

test('the page says when runs come, and how many a day and in all', () => {
  const times = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`)
  const month_days = Array.from({ length: 30 }, (_, at) => at + 1)
  const hourly: Calendar = { type: 'calendar', times, month_days, timezone: 'UTC' }
  assert.deepEqual(timesOf(hourly, 100), [
    ['When', '24 times a day (00:00 to 23:00) on 30 days of each month, UTC'],
    ['Runs', 'up to 24 a day, at most 100 in all'],
  ])
  const once: Calendar = { type: 'once', at: '2026-12-01T08:00:00.000Z', timezone: 'UTC' }
  assert.deepEqual(timesOf(once, null)[1], ['Runs', 'one'])
  assert.deepEqual(timesOf({ ...hourly, month_days: [1] }, null)[1], [
    'Runs',
    'up to 24 a day, without a limit in all',
  ])
})

test('an approval counts only for the version and the access that the person saw', () => {
  const now = new Date('2026-02-28T00:00:00Z')
  const approval = {
    approvedMicros: '60000000',
    approvedUntil: '2026-03-01T00:00:00.000Z',
    approvedTerms: termsHash(version, access),
  }
  const authority = { ...access, ...approval }
  const before = (changed: object, of: object = {}) =>
    approvedBefore({ ...version, authority, ...of }, { access: changed, now })
  assert.deepEqual(before({ ...access, approvedMicros: '1' }), approval)
  const { personId: _unlinked, linkedAt: _never, ...alone } = access
  for (const other of [
    alone,
    { ...access, personId: 'p2' },
    { ...access, linkedAt: '2026-02-01T00:00:00.000Z' },
    { ...access, scopes: ['chat', 'read', 'trade', 'manage'] },
    { ...access, clientId: 'app', grantId: 'g' },
    { ...access, agentId: 'agt_other' },
  ])
    assert.deepEqual(before(other), {}, JSON.stringify(other))
  assert.deepEqual(before(access, { version: 3 }), {})
  assert.deepEqual(before(access, { query: 'sell all' }), {})
  const { approvedTerms: _bound, ...unbound } = authority
  assert.deepEqual(before(access, { authority: unbound }), {})
  // Neither does one of a strategy outlive a change of what it may trade.
  const strategy = { ...version, type: 'dca' as const, budget_usd: '100' }
  const given = { ...access, ...approval, approvedTerms: termsHash(strategy, access) }
  const after = (change: object) =>
    approvedBefore({ ...strategy, authority: given, ...change }, { access, now }).approvedMicros
  assert.equal(after({}), '60000000')
  for (const change of [
    { budget_usd: '101' },
    { mode: 'paper' },
    { config: { asset: 'BTC' } },
    { guards: { max_loss_usd: '9' } },
  ])
    assert.equal(after(change), undefined, JSON.stringify(change))
})
