import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/fault.ts'
import { quantityOf, receiptOf, sendVerdictOf } from './wire.ts'

const refusal = (message: string) => sendVerdictOf({ error: { code: -32000, message } }).verdict

test('a quantity of an unknown shape is invalid', () => {
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
