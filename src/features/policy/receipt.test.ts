import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createReceipts } from './receipt.ts'

const facts = { id: '1', userId: 'u', taskId: 't', intentHash: 'h', expiresAt: new Date(0) }

test('a receipt is authentic; its copy and one of another policy are not', () => {
  const { make, isAuthentic } = createReceipts()
  const receipt = make(facts)
  assert.equal(isAuthentic(receipt), true)
  assert.equal(isAuthentic({ ...receipt }), false)
  assert.equal(isAuthentic(structuredClone(receipt)), false)
  assert.equal(isAuthentic(createReceipts().make(facts)), false)
})

test('a receipt cannot be changed into one for another intent', () => {
  const receipt = createReceipts().make(facts)
  assert.throws(() => Object.assign(receipt, { intentHash: 'other' }), TypeError)
})
