import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nodeMismatch } from './node-check.ts'

const anvil = { chainId: '8453', clientVersion: 'anvil/v1.7.1' }
const real = { chainId: '8453', clientVersion: 'op-reth/v1.3.0' }

test('a node of the configured chain and environment is accepted', () => {
  assert.equal(nodeMismatch(anvil, { chainId: '8453', local: true }), undefined)
  assert.equal(nodeMismatch(real, { chainId: '8453', local: false }), undefined)
})

test('development keys never meet a real chain, nor real funds a development chain', () => {
  assert.match(nodeMismatch(anvil, { chainId: '8453', local: false })!, /development node/)
  assert.match(nodeMismatch(real, { chainId: '8453', local: true })!, /real node/)
  assert.match(nodeMismatch(real, { chainId: '1', local: false })!, /serves chain 8453/)
})
