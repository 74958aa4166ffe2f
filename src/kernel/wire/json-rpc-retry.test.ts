import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createJsonRpc, type RpcAnswer, type RpcCall } from './json-rpc.ts'
import { repeatRateLimited } from './json-rpc-retry.ts'

const refusal: RpcAnswer = {
  error: { code: 429, message: 'Your app has exceeded its compute units per second capacity' },
}
const calls = ['a', 'b', 'c'].map((method) => ({ method, params: [] }))
const methodsOf = (sent: readonly RpcCall[]) => sent.map(({ method }) => method).join('')
const options = { timeoutMs: 5_000, waitsMs: [1, 1] }

/** Refuses a call so many times. */
function nodeOf(refused: Record<string, number>) {
  const requests: string[] = []
  const rpc = repeatRateLimited(async (sent) => {
    requests.push(methodsOf(sent))
    return sent.map(({ method }) => {
      const left = refused[method] ?? 0
      refused[method] = left - 1
      return left > 0 ? refusal : { result: method }
    })
  }, options)
  return { rpc, requests }
}

test('only the calls that a rate limit refused are repeated', async () => {
  const { rpc, requests } = nodeOf({ b: 1, c: 2 })
  assert.deepEqual(await rpc(calls), [{ result: 'a' }, { result: 'b' }, { result: 'c' }])
  assert.deepEqual(requests, ['abc', 'bc', 'c'])
})

test('a call that stays refused keeps its error, and is repeated a limited number of times', async () => {
  const { rpc, requests } = nodeOf({ b: 9 })
  assert.deepEqual(await rpc(calls), [{ result: 'a' }, refusal, { result: 'c' }])
  assert.deepEqual(requests, ['abc', 'b', 'b'])
})

test('nothing is repeated where the time limit would pass, nor for an error of the call itself', async () => {
  const requests: string[] = []
  const failing =
    (answer: RpcAnswer) =>
    async (sent: readonly RpcCall[]): Promise<RpcAnswer[]> => {
      requests.push(methodsOf(sent))
      return sent.map(() => answer)
    }
  await repeatRateLimited(failing(refusal), { timeoutMs: 100, waitsMs: [200] })(calls)
  for (const [code, message] of [
    [3, 'execution reverted: capacity exceeded'],
    [-32005, 'query returned more than 10000 results'],
    [-32601, 'the method eth_foo does not exist'],
  ] as const)
    await repeatRateLimited(failing({ error: { code, message } }), options)(calls)
  assert.deepEqual(requests, ['abc', 'abc', 'abc', 'abc'])
})

test('a request that was refused as a whole is repeated, and unavailable at the end', async () => {
  let left = 1
  let sent = 0
  const single = createJsonRpc({
    url: 'http://node',
    net: {
      async fetch() {
        sent += 1
        left -= 1
        return left >= 0 ? { status: 429, body: '' } : { status: 200, body: '{"id":1,"result":"0x1"}' }
      },
    },
    name: 'Base',
    timeoutMs: 1_000,
  })
  const rpc = repeatRateLimited(single, options)
  assert.deepEqual(await rpc([calls[0]!]), [{ result: '0x1' }])
  assert.equal(sent, 2)
  left = 9
  await assert.rejects(rpc([calls[0]!]), { code: 'unavailable', message: /429/ })
  assert.equal(sent, 5)
})
