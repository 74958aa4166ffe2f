import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OperatorFinding } from '#kernel/task/operator-end.ts'
import type { EndResult, TaskView } from '#kernel/task/task.ts'
import { unquotedEnd } from './operator-end-of-found-sale.ts'

const error = { code: 'ended_by_operator', message: 'A part was executed', retryable: false }
const endedBy = (finding: Partial<OperatorFinding>) => {
  const none = { txHash: null, payment: null, inUnits: null, outUnits: null, at: new Date(0) }
  const outcome = finding.outcome ?? 'partial'
  const ending = { end: 'failed', outcome, error } as EndResult
  return unquotedEnd({ data: {} } as TaskView<object>, ending, { ...none, ...finding, outcome })
}

test('a sale of before that brought nothing is partial, by what left the wallet', () => {
  assert.match(JSON.stringify(endedBy({ inUnits: 7n })), /--tx-hash is required/)
  const ended = endedBy({ txHash: '0xf', inUnits: 7n })
  assert.ok('result' in ended)
  assert.deepEqual(ended.result, { amount_in: '7', amount_out: '0', tx_hash: '0xf', refunded: null })
})

test('an order that sold nothing before has no amounts', () => {
  assert.match(JSON.stringify(endedBy({ outcome: 'not_executed', inUnits: 7n })), /--amount-in says nothing/)
  assert.ok(!('refusal' in endedBy({ outcome: 'not_executed' })))
})
