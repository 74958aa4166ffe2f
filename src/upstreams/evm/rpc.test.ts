import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RpcCall } from '#kernel/json-rpc.ts'
import { coalesceCalls } from './rpc.ts'

const callsOf = (...methods: string[]): RpcCall[] => methods.map((method) => ({ method, params: [] }))

function createNode() {
  const requests: string[][] = []
  const rpc = coalesceCalls(async (calls) => {
    requests.push(calls.map(({ method }) => method))
    if (calls.some(({ method }) => method === 'broken')) throw new Error('no reply')
    return calls.map(({ method }) => ({ result: method }))
  })
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

test('a request has a limit of calls, and a call that can be aborted goes alone', async () => {
  const { rpc, requests } = createNode()
  const { signal } = new AbortController()
  await Promise.all([...Array.from({ length: 60 }, () => rpc(callsOf('a'))), rpc(callsOf('alone'), signal)])
  assert.deepEqual(
    requests.map(({ length }) => length),
    [1, 50, 10],
  )
})
