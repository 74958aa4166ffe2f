import assert from 'node:assert/strict'
import { test } from 'node:test'
import { receipts } from './receipt.ts'

const facts = { id: '1', userId: 'u', taskId: 't', intentHash: 'h', expiresAt: new Date(0) }

test('a receipt is authentic; its copy and one of another policy are not', () => {
  const { make, isAuthentic } = receipts()
  const receipt = make(facts)
  assert.equal(isAuthentic(receipt), true)
  assert.equal(isAuthentic({ ...receipt }), false)
  assert.equal(isAuthentic(structuredClone(receipt)), false)
  assert.equal(isAuthentic(receipts().make(facts)), false)
})

test('a receipt cannot be changed into one for another intent', () => {
  const receipt = receipts().make(facts)
  assert.throws(() => Object.assign(receipt, { intentHash: 'other' }), TypeError)
})
