import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgePayment } from './payment-verdict.ts'

const payment = { chainId: '8453', txHash: '0xAA', payer: '0xabc', amountUnits: 7n }
const task = { isLive: false, account: '0xABC', chainId: '8453', amountUnits: 7n, txHash: null }

test('a payment waits for its task while that runs', () => {
  assert.equal(judgePayment(payment, { ...task, isLive: true }), 'wait')
})

test('a payment that the task has counted under another number of its log is not counted twice', () => {
  assert.equal(judgePayment(payment, { ...task, txHash: '0xaa' }), 'credited')
})

test('any other payment is stray: of no task, another payer, chain or amount, or for a task that has ended', () => {
  assert.equal(judgePayment(payment, undefined), 'unknown_task')
  assert.equal(judgePayment(payment, { ...task, isLive: true, account: '0xdef' }), 'other_payer')
  assert.equal(judgePayment(payment, { ...task, isLive: true, chainId: '1' }), 'other_chain')
  assert.equal(judgePayment(payment, { ...task, isLive: true, amountUnits: 8n }), 'other_amount')
  assert.equal(judgePayment({ ...payment, amountUnits: 8n }, { ...task, txHash: '0xaa' }), 'other_amount')
  assert.equal(judgePayment(payment, task), 'task_ended')
  assert.equal(judgePayment(payment, { ...task, txHash: '0xbb' }), 'task_ended')
})
