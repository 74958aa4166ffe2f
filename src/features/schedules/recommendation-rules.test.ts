import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adviceFor, type JudgedRun, type JudgedSchedule } from './recommendation-rules.ts'

const run = (number: number, fields: Partial<JudgedRun> = {}): JudgedRun => ({
  id: `run-${number}`,
  number,
  status: 'completed',
  skip_reason: null,
  error: null,
  rating: null,
  ...fields,
})
const schedule = (fields: Partial<JudgedSchedule> = {}): JudgedSchedule => ({
  view: { schedule_id: 's', version: 2, setup_checklist: [] },
  runs: [],
  open: [],
  ...fields,
})
const subjectsOf = (given: Partial<JudgedSchedule>, removed: readonly string[] = []) =>
  adviceFor(schedule(given), new Set(removed)).map(({ subject }) => subject)
const failed = [run(2, { status: 'failed', error: 'away' }), run(1, { status: 'failed' })]
const poor = run(3, { status: 'cancelled', skip_reason: 'no_credits' })

test('what runs well is left alone, and one failure is an accident', () => {
  assert.deepEqual(subjectsOf({ runs: [run(1), run(2)] }), [])
  assert.deepEqual(subjectsOf({ runs: failed.slice(0, 1) }), [])
})

test('what repeats is advised upon, with its evidence', () => {
  const [advice] = adviceFor(schedule({ runs: [...failed, run(3)] }), new Set())
  assert.deepEqual([advice?.subject, advice?.priority], ['failures', 'now'])
  assert.match(advice?.why ?? '', /^2 of the last 3 runs failed\.$/)
  assert.deepEqual(advice?.evidence, ['run 2 (run-2): away', 'run 1 (run-1)'])
  assert.deepEqual(subjectsOf({ runs: [poor] }), ['skipped no_credits'])
  assert.deepEqual(subjectsOf({ runs: [run(1, { rating: 1 }), run(2, { rating: 2 })] }), ['ratings'])
})

test('what a chat recommends comes with its action, the most urgent first, five at most', () => {
  const open = Array.from({ length: 6 }, (_, n) => ({
    recommendation_id: `r${n}`,
    chat_id: 'c',
    title: 'Swap 20 USDC for ETH on Base',
    detail: 'Sell: 20 USDC',
    operation: 'swap_execute',
    input: { amount: '20000000' },
    expires_at: new Date(0),
  }))
  const overlap = run(1, { status: 'cancelled', skip_reason: 'overlap' })
  assert.deepEqual(subjectsOf({ runs: [overlap, poor], open: open.slice(0, 1) }), [
    'chat r0',
    'skipped no_credits',
    'skipped overlap',
  ])
  const [first] = adviceFor(schedule({ open }), new Set())
  assert.deepEqual(first?.action, { operation: 'swap_execute', input: { amount: '20000000' } })
  assert.equal(subjectsOf({ open }).length, 5)
})

test('what was removed does not come back, and leaves its place to others', () => {
  assert.deepEqual(subjectsOf({ runs: [...failed, poor] }, ['failures']), ['skipped no_credits'])
})
