import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/fault.ts'
import { answersOf, quantityOf, receiptOf, requestOf, sendVerdictOf } from './wire.ts'

const refusal = (message: string) => sendVerdictOf({ error: { code: -32000, message } }).verdict

test('the answers of a batch are matched by id, in any order', () => {
  const body = '[{"jsonrpc":"2.0","id":2,"result":"0x2"},{"jsonrpc":"2.0","id":1,"result":"0x1"}]'
  assert.deepEqual(answersOf(body, 2), [{ result: '0x1' }, { result: '0x2' }])
  assert.equal(JSON.parse(requestOf([{ method: 'a', params: [] }])).id, 1)
  assert.equal(
    JSON.parse(
      requestOf([
        { method: 'a', params: [] },
        { method: 'b', params: [] },
      ]),
    ).length,
    2,
  )
})

test('one error for a whole batch applies to each of its calls', () => {
  const body = '{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"limit exceeded"}}'
  assert.equal(answersOf(body, 2).length, 2)
  assert.ok(answersOf(body, 2).every((answer) => 'error' in answer && answer.error.code === -32005))
})

test('HTML pages, incomplete answers and unknown shapes count as an unavailable node, never as a result', () => {
  for (const body of ['<html>502</html>', '', '[]', '[1]', '{"id":1}', '{"id":7,"result":"0x"}'])
    assert.throws(
      () => answersOf(body, 1),
      (fault) => fault instanceof Fault && fault.code === 'unavailable',
      body,
    )
  for (const value of [undefined, null, 5, '', '0x', '5', '0xzz'])
    assert.throws(() => quantityOf(value), Fault, String(value))
})

test('a receipt without a block is no receipt yet', () => {
  assert.equal(receiptOf(null), undefined)
  assert.equal(receiptOf({ blockNumber: null, logs: [] }), undefined)
  assert.throws(() => receiptOf({ blockNumber: '0x1' }), Fault)
})

test('node replies to a sent transaction are classified', () => {
  assert.deepEqual(sendVerdictOf({ result: '0xabc' }), { verdict: 'accepted' })
  for (const text of ['already known', 'transaction already imported', 'AlreadyKnown'])
    assert.equal(refusal(text), 'accepted', text)
  for (const text of ['nonce too low', 'nonce too low: next nonce 5, tx nonce 4', 'OldNonce'])
    assert.equal(refusal(text), 'nonce_used', text)
  for (const text of [
    'replacement transaction underpriced',
    'transaction underpriced',
    'max fee per gas less than block base fee: address 0x1',
  ])
    assert.equal(refusal(text), 'underpriced', text)
  for (const text of [
    'insufficient funds for gas * price + value',
    'intrinsic gas too low',
    'invalid sender',
  ])
    assert.equal(refusal(text), 'rejected', text)
})
