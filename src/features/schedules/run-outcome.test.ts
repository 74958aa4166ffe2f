import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ChatEnd,
  cutShort,
  judgeRun,
  type RunEnd,
  type StartedTask,
  troubleInARow,
} from './run-outcome.ts'

const chat = (fields: Partial<ChatEnd> = {}): ChatEnd => ({
  status: 'completed',
  answer: 'It is 5',
  error: null,
  refusals: [],
  ...fields,
})
const task = (fields: Partial<StartedTask> = {}): StartedTask => ({
  task_id: 't',
  kind: 'swap_execute',
  status: 'completed',
  outcome: 'executed',
  error: null,
  ...fields,
})
const endOf = (given: ChatEnd, started: StartedTask[] = [], { hasOrders = true } = {}) => {
  const { status, outcome, skipReason } = judgeRun({ chat: given, started, hasOrders })
  return [status, outcome, skipReason]
}

test('a run that only answers is done with its answer', () => {
  assert.deepEqual(endOf(chat(), [], { hasOrders: false }), ['completed', 'executed', null])
  const refused = chat({ refusals: [{ code: 'policy_denied', message: 'no' }] })
  assert.deepEqual(endOf(refused, [], { hasOrders: false }), ['completed', 'executed', null])
})

test('a run whose order was refused is skipped with the reason, and one whose condition is not met is not', () => {
  const refusedFor = (code: string) => endOf(chat({ refusals: [{ code, message: 'no' }] }))
  assert.deepEqual(refusedFor('insufficient_balance'), ['cancelled', 'not_executed', 'insufficient_balance'])
  assert.deepEqual(refusedFor('market_closed'), ['cancelled', 'not_executed', 'market_closed'])
  assert.deepEqual(refusedFor('trading_paused'), ['cancelled', 'not_executed', 'frozen'])
  for (const code of ['policy_denied', 'approval_required', 'chat_per_day_usd', 'own_position'])
    assert.deepEqual(refusedFor(code), ['cancelled', 'not_executed', 'policy_denied'])
  assert.deepEqual(refusedFor('insufficient_scope'), ['cancelled', 'not_executed', 'access_ended'])
  assert.deepEqual(endOf(chat()), ['completed', 'not_executed', null])
})

test('a run whose order was refused for any other reason has failed with it, unless nothing was to be done', () => {
  const refused = (...codes: string[]) =>
    judgeRun({
      chat: chat({ refusals: codes.map((code) => ({ code, message: `no: ${code}` })) }),
      started: [],
      hasOrders: true,
    })
  for (const code of ['unavailable', 'conflict', 'validation']) {
    const { status, outcome, skipReason, error } = refused(code)
    assert.deepEqual([status, outcome, skipReason, error?.code], ['failed', 'not_executed', null, code])
  }
  assert.deepEqual(refused('upstream_timeout').error, {
    code: 'upstream_timeout',
    message: 'no: upstream_timeout',
    retryable: true,
  })
  for (const code of ['no_position', 'recommended']) {
    const { status, error, decision } = refused(code)
    assert.deepEqual(
      [status, error, decision],
      ['completed', null, { action: 'hold', reason: `no: ${code}` }],
    )
  }
  assert.equal(refused('no_position', 'validation', 'unavailable', 'recommended').error?.code, 'unavailable')
  assert.equal(refused('unavailable', 'market_closed').skipReason, 'market_closed')
})

test('a run that is cut short says what it has started by then', () => {
  const end: RunEnd = {
    status: 'cancelled',
    outcome: 'not_executed',
    skipReason: 'access_ended',
    error: null,
    decision: null,
  }
  assert.deepEqual(cutShort(end, []), end)
  const after = (...started: StartedTask[]) => {
    const { status, outcome, decision } = cutShort(end, started)
    assert.deepEqual([status, decision?.action], ['cancelled', 'adjust'])
    return outcome
  }
  assert.equal(after(task()), 'partial')
  assert.equal(after(task({ status: 'failed', outcome: 'not_executed' })), 'not_executed')
  assert.equal(after(task(), task({ status: 'pending', outcome: null })), 'unknown')
})

test('a run is what its tasks are: one of them may fail, or go on after its end', () => {
  const failed = task({
    status: 'failed',
    outcome: 'not_executed',
    error: { code: 'expired', message: 'late' },
  })
  assert.deepEqual(endOf(chat(), [task(), task()]), ['completed', 'executed', null])
  assert.deepEqual(endOf(chat(), [task(), failed]), ['completed', 'partial', null])
  assert.deepEqual(endOf(chat(), [failed]), ['failed', 'not_executed', null])
  assert.equal(judgeRun({ chat: chat(), started: [failed], hasOrders: true }).error?.code, 'expired')
  const open = task({ status: 'running', outcome: null })
  assert.deepEqual(endOf(chat({ status: 'running' }), [task(), open]), ['completed', 'unknown', null])
  assert.deepEqual(endOf(chat({ status: 'failed' }), [task()]), ['completed', 'executed', null])
})

test('a chat that fails, is cancelled or does not end makes its run fail, or be cancelled', () => {
  const error = (code: string) => ({ code, message: 'away', retryable: true })
  assert.deepEqual(endOf(chat({ status: 'failed', error: error('unavailable') })), [
    'failed',
    'not_executed',
    'model_unavailable',
  ])
  assert.deepEqual(endOf(chat({ status: 'failed', error: error('internal') })), [
    'failed',
    'not_executed',
    null,
  ])
  assert.deepEqual(endOf(chat({ status: 'cancelled' })), ['cancelled', 'not_executed', null])
  assert.equal(
    judgeRun({ chat: chat({ status: 'running' }), started: [], hasOrders: false }).error?.code,
    'expired',
  )
})

test('three of one trouble in a row are found, whatever was skipped between them', () => {
  const skipped = (reason: string) => ({ status: 'cancelled', skip_reason: reason })
  const failed = { status: 'failed', skip_reason: null }
  const completed = { status: 'completed', skip_reason: null }
  assert.equal(troubleInARow([failed, failed, failed]), 'failed')
  assert.equal(troubleInARow([failed, skipped('frozen'), failed, skipped('market_closed'), failed]), 'failed')
  assert.equal(troubleInARow([failed, failed, completed, failed]), undefined)
  assert.equal(troubleInARow([failed, failed]), undefined)
  const poor = skipped('no_credits')
  assert.equal(troubleInARow([poor, poor, poor, failed]), 'no_credits')
  assert.equal(troubleInARow([poor, failed, poor]), undefined)
  const empty = skipped('insufficient_balance')
  assert.equal(troubleInARow([empty, empty, empty]), 'insufficient_balance')
  const frozen = skipped('frozen')
  assert.equal(troubleInARow([frozen, frozen, frozen]), undefined)
  assert.equal(troubleInARow([completed, failed, failed, failed]), undefined)
})
