import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { RpcAnswer } from '#kernel/wire/json-rpc.ts'
import { nativeGainsOf, readBlockTransactions, readNativeGains } from './native-transfers.ts'
import type { EvmNode } from './rpc.ts'

const owner = `0x${'Aa'.repeat(20)}`
const payer = `0x${'bb'.repeat(20)}`
const own = owner.toLowerCase()
const call = (from: string, to: string, value: string, more: object = {}) => ({
  type: 'CALL',
  from,
  to,
  value,
  ...more,
})

test('what a contract pays is gained, and what is paid back is not', () => {
  const trace = call(own, payer, '0x3', {
    calls: [
      call(payer, own, '0xa'),
      { type: 'STATICCALL', from: payer, to: own },
      { type: 'CALL', from: payer, to: own, value: '0x5', calls: [call(own, payer, '0x1')] },
    ],
  })
  assert.deepEqual(nativeGainsOf(trace, owner), [11n])
})

test('each payment of one transaction is one, in the order of the calls', () => {
  const calls = [
    call(payer, own, '0x5', { calls: [call(payer, own, '0x0'), call(payer, own, '0x6')] }),
    call(payer, own, '0x7'),
  ]
  assert.deepEqual(nativeGainsOf(call(payer, payer, '0x0', { calls }), owner), [5n, 6n, 7n])
})

test('a failed call moves nothing, whatever it called', () => {
  const failed = call(payer, own, '0xa', { error: 'execution reverted', calls: [call(payer, own, '0x7')] })
  assert.deepEqual(
    nativeGainsOf(call(payer, payer, '0x0', { calls: [failed, call(payer, own, '0x2')] }), owner),
    [2n],
  )
})

test('a delegate call repeats the value of its caller and moves none; a destroyed contract pays', () => {
  const trace = call(payer, payer, '0x0', {
    calls: [
      { type: 'DELEGATECALL', from: payer, to: own, value: '0x9' },
      { type: 'CALLCODE', from: payer, to: own, value: '0x9' },
      { type: 'SELFDESTRUCT', from: payer, to: own, value: '0x4' },
    ],
  })
  assert.deepEqual(nativeGainsOf(trace, owner), [4n])
})

test('a malformed trace is refused, and so is one of too many calls', () => {
  for (const trace of [
    null,
    {},
    { type: 'CALL', from: payer, to: own, value: 3 },
    { type: 'CALL', calls: 1 },
  ])
    assert.throws(() => nativeGainsOf(trace, owner), { code: 'unavailable' })
  const calls = Array.from({ length: 20_001 }, () => call(payer, own, '0x1'))
  assert.throws(() => nativeGainsOf(call(payer, payer, '0x0', { calls }), owner), { code: 'unavailable' })
})

function nodeOf(answer: RpcAnswer) {
  const isOwn: boolean[] = []
  const node: EvmNode = {
    row: { displayName: 'Base' } as EvmChainRow,
    async rpc(calls, signal) {
      isOwn.push(calls.length === 1 && signal !== undefined)
      return [answer]
    },
    multicallCode: createCachedValue(() => Promise.reject(new Error('not asked')), {
      ttlMs: 0,
      nowMs: () => 0,
    }),
  }
  return { node, isOwn }
}
const asked = { txHash: '0x1', owner, timeoutMs: 1_000 }

test('a trace is asked for in a request of its own; a node without traces leaves the gain open', async () => {
  const traced = nodeOf({ result: call(payer, own, '0x6') })
  assert.deepEqual(await readNativeGains(traced.node, asked), [6n])
  assert.deepEqual(traced.isOwn, [true])
  const refused = nodeOf({ error: { code: -32601, message: 'the method does not exist' } })
  assert.equal(await readNativeGains(refused.node, asked), undefined)
  // A form of traces that is not ours would stay so; a node that has none yet is asked again.
  assert.equal(await readNativeGains(nodeOf({ result: [{ action: {} }] }).node, asked), undefined)
  await assert.rejects(readNativeGains(nodeOf({ result: null }).node, asked))
})

test('the transactions of a block are those that it lists', async () => {
  const { node } = nodeOf({
    result: {
      transactions: [{ hash: '0xAB', from: owner, nonce: '0x3', to: null, value: '0x2', input: '0xAB' }],
    },
  })
  assert.deepEqual(await readBlockTransactions(node, 7n), [
    { hash: '0xab', from: own, nonce: 3n, to: null, valueUnits: 2n, input: '0xab' },
  ])
})
