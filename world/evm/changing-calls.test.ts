import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changeKind, changingCalls, withGasLimits } from './changing-calls.ts'

const changes = {
  raw: ['eth_sendRawTransaction', 'eth_sendRawTransactionSync'],
  node: ['eth_sendTransaction', 'eth_sendUnsignedTransaction'],
  set: [
    'anvil_setBalance',
    'hardhat_setCode',
    'anvil_addBalance',
    'tenderly_setBalance',
    'evm_setAccountNonce',
    'anvil_setNextBlockBaseFeePerGas',
  ],
  rewind: ['anvil_reorg', 'anvil_rollback', 'evm_revert', 'anvil_dropAllTransactions'],
  mine: ['evm_mine', 'hardhat_mine', 'evm_setAutomine'],
} as const

test('every call that changes a chain is listed with its kind', () => {
  for (const [change, methods] of Object.entries(changes))
    for (const method of methods) assert.equal(changeKind({ method }), change, method)
  for (const method of [
    'eth_call',
    'eth_getBalance',
    'evm_snapshot',
    'anvil_setLoggingEnabled',
    'evm_setTime',
    'anvil_impersonateAccount',
    'anvil_nodeInfo',
  ])
    assert.equal(changeKind({ method }), undefined, method)
})

test('a change is found in a batch and behind escapes, and not in text that is no call', () => {
  const send = { id: 1, method: 'eth_sendRawTransaction', params: ['0x'] }
  const read = { id: 2, method: 'eth_blockNumber' }
  assert.equal(changingCalls(JSON.stringify([read, send]))?.length, 2)
  assert.ok(changingCalls(JSON.stringify(send).replace('eth_send', 'eth\\u005fsend')))
  for (const body of ['', 'null', '{"method":', '[null]', '7', JSON.stringify([read])])
    assert.equal(changingCalls(body), undefined, body)
})

test('a transaction that the node signs has no more gas than one may have', () => {
  const send = { id: 1, method: 'eth_sendTransaction', params: [{ from: '0x1', to: '0x2' }] }
  const limited = { ...send, params: [{ from: '0x1', to: '0x2', gas: '0x1000000' }] }
  const raw = { id: 2, method: 'eth_sendRawTransaction', params: ['0x'] }
  assert.deepEqual(JSON.parse(withGasLimits(JSON.stringify(send))), limited)
  assert.deepEqual(JSON.parse(withGasLimits(JSON.stringify([raw, send]))), [raw, limited])
  const given = { ...send, params: [{ from: '0x1', gas: '0x5208' }] }
  for (const same of [JSON.stringify(given), JSON.stringify(raw), '{"method":'])
    assert.equal(withGasLimits(same), same)
})
