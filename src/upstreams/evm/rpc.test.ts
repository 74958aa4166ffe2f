import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import { createBatchLimit, type RpcCall } from '#kernel/wire/json-rpc.ts'
import { coalesceCalls, createNode as createChainNode } from './rpc.ts'

const callsOf = (...methods: string[]): RpcCall[] => methods.map((method) => ({ method, params: [] }))

function createNode() {
  const requests: string[][] = []
  const rpc = coalesceCalls(async (calls) => {
    requests.push(calls.map(({ method }) => method))
    if (calls.some(({ method }) => method === 'broken')) throw new Error('no reply')
    return calls.map(({ method }) => ({ result: method }))
  }, createBatchLimit())
  return { rpc, requests }
}

test('calls of one turn go out as one request, and each caller gets its own answers', async () => {
  const { rpc, requests } = createNode()
  const [first, second] = await Promise.all([rpc(callsOf('a', 'b')), rpc(callsOf('c'))])
  assert.deepEqual(requests, [['a', 'b', 'c']])
  assert.deepEqual(first, [{ result: 'a' }, { result: 'b' }])
  assert.deepEqual(second, [{ result: 'c' }])
})

test('a request without a reply fails each of its callers', async () => {
  const { rpc } = createNode()
  const ends = await Promise.allSettled([rpc(callsOf('a')), rpc(callsOf('broken'))])
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
})

test('broadcasts of one turn share a request without reads, which fail with no broadcast', async () => {
  const { rpc, requests } = createNode()
  const send = 'eth_sendRawTransaction'
  const ends = await Promise.allSettled([
    rpc(callsOf('a')),
    rpc(callsOf(send)),
    rpc(callsOf('b')),
    rpc(callsOf(send, 'broken')),
  ])
  assert.deepEqual(requests, [
    [send, send, 'broken'],
    ['a', 'b'],
  ])
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected'],
  )
})

test('a request has a limit of calls, and a call that can be aborted goes alone', async () => {
  const { rpc, requests } = createNode()
  const { signal } = new AbortController()
  await Promise.all([...Array.from({ length: 60 }, () => rpc(callsOf('a'))), rpc(callsOf('alone'), signal)])
  assert.deepEqual(
    requests.map(({ length }) => length),
    [1, 50, 10],
  )
})

test('a node without the code of the multicall contract is unavailable, and its answer is not kept', async () => {
  const codes = ['0x', '0x', '0x6001']
  const node = createChainNode({
    row: { id: '8453', displayName: 'Base', rpcUrl: 'http://node', multicall: '0xca11' } as EvmChainRow,
    net: {
      async fetch({ body }) {
        const asked = JSON.parse(body!) as { id: unknown } | [{ id: unknown }]
        const { id } = Array.isArray(asked) ? asked[0] : asked
        const reply = { jsonrpc: '2.0', id, result: codes.shift() }
        return { status: 200, body: JSON.stringify(Array.isArray(asked) ? [reply] : reply) }
      },
    },
    timeoutMs: 1_000,
  })
  for (const _ of [1, 2])
    await assert.rejects(node.multicallCode.get(), ({ code, retryable }: Fault) => {
      assert.deepEqual([code, retryable], ['unavailable', true])
      return true
    })
  assert.equal(await node.multicallCode.get(), '0x6001')
  assert.equal(await node.multicallCode.get(), '0x6001')
})
