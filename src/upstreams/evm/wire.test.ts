import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { parseQuantity, parseReceipt, sendVerdictOf } from './wire.ts'

const refusal = (message: string) => sendVerdictOf({ error: { code: -32000, message } }).verdict

test('a quantity of an unknown shape is invalid', () => {
  for (const value of [undefined, null, 5, '', '0x', '5', '0xzz'])
    assert.throws(() => parseQuantity(value), Fault, String(value))
})

test('a receipt without a block is no receipt yet', () => {
  assert.equal(parseReceipt(null), undefined)
  assert.equal(parseReceipt({ blockNumber: null, logs: [] }), undefined)
  assert.throws(() => parseReceipt({ blockNumber: '0x1' }), Fault)
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
    'invalid sender',
    'txpool is full',
    'gas required exceeds allowance',
    'request limit exceeded',
  ])
    assert.equal(refusal(text), 'rejected', text)
})

test('a refusal of the gas limit is for good, in the words of each node', () => {
  for (const text of [
    'exceeds block gas limit',
    'exceeds transaction gas limit',
    'transaction gas limit too high (cap: 16777216, tx: 20000000)',
    'intrinsic gas too low: gas 20000, minimum needed 21000',
    'insufficient gas for floor data gas cost: gas 25000, minimum needed 29000',
    "transaction's gas limit 31000000 exceeds block's gas limit 30000000",
    'IntrinsicGasTooLow',
    'GasLimitExceeded, Gas limit: 30000000, gas limit of rejected tx: 31000000',
    'TxGasLimitCapExceeded: Gas limit 16777217 exceeded cap of 16777216.',
    'Transaction gas limit must be at most 16777216',
    'Intrinsic gas exceeds gas limit',
    'intrinsic gas too high -- tx.gas_limit > env.cfg.tx_gas_limit_cap',
  ])
    assert.equal(refusal(text), 'invalid', text)
})
