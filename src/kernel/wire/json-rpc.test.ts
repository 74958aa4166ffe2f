import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createJsonRpc } from './json-rpc.ts'

const [first, second] = [
  { method: 'a', params: [1] },
  { method: 'b', params: [] },
]

/** A node that gives one reply, whatever it is asked. */
function node(body: string, status = 200, parse?: (text: string) => unknown) {
  const sent: unknown[] = []
  const fetch = async (request: { body?: string }) => {
    sent.push(JSON.parse(request.body ?? ''))
    return { status, body }
  }
  const rpc = createJsonRpc({
    url: 'http://node',
    net: { fetch },
    name: 'Base',
    timeoutMs: 1_000,
    ...(parse && { parse }),
  })
  return { rpc, sent }
}

test('one call goes out alone, and several as one batch', async () => {
  const { rpc, sent } = node('[{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","id":2,"result":2}]')
  await rpc([first])
  await rpc([first, second])
  assert.deepEqual(sent, [
    { jsonrpc: '2.0', id: 1, ...first },
    [
      { jsonrpc: '2.0', id: 1, ...first },
      { jsonrpc: '2.0', id: 2, ...second },
    ],
  ])
})

test('the answers of a batch are matched by id, in any order', async () => {
  const { rpc } = node(
    '[{"jsonrpc":"2.0","id":2,"error":{"code":3,"message":"no"}},{"jsonrpc":"2.0","id":1,"result":"0x1"}]',
  )
  assert.deepEqual(await rpc([first, second]), [
    { result: '0x1' },
    { error: { code: 3, message: 'no', data: undefined } },
  ])
})

test('one error for a whole batch applies to each of its calls', async () => {
  const { rpc } = node('{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"limit exceeded"}}', 400)
  const answers = await rpc([first, second])
  assert.equal(answers.length, 2)
  assert.ok(answers.every((answer) => 'error' in answer && answer.error.code === -32005))
})

test('error pages, incomplete answers and unknown shapes count as an unavailable node, never as a result', async () => {
  const replies = ['<html>502</html>', '', '[]', '[1]', '5', '{"id":1}', '{"id":7,"result":"0x"}']
  for (const body of replies)
    await assert.rejects(node(body).rpc([first]), { code: 'unavailable', message: /The Base node/ }, body)
  const whole = '{"jsonrpc":"2.0","id":1,"result":1}'
  for (const status of [429, 500, 503])
    await assert.rejects(node(whole, status).rpc([first]), {
      code: 'unavailable',
      message: new RegExp(`${status}`),
    })
  await assert.rejects(node('not allowed', 403).rpc([first]), { code: 'unavailable', message: /403/ })
})

test('a chain may read numbers in its own way', async () => {
  const { rpc } = node('{"jsonrpc":"2.0","id":1,"result":5}', 200, (text) =>
    JSON.parse(text, (_key, value) => (value === 5 ? 'five' : value)),
  )
  assert.deepEqual(await rpc([first]), [{ result: 'five' }])
})

/** A node that takes so many calls in one batch, and refuses a longer one in its own way. */
function limitedNode(callsMax: number, refuse: (ids: number[]) => { status: number; body: unknown }) {
  const sizes: number[] = []
  const fetch = async ({ body }: { body?: string }) => {
    const parsed = JSON.parse(body ?? '')
    const sent: { id: number; method: string }[] = Array.isArray(parsed) ? parsed : [parsed]
    sizes.push(sent.length)
    if (sent.length > callsMax) {
      const { status, body: refusal } = refuse(sent.map(({ id }) => id))
      return { status, body: JSON.stringify(refusal) }
    }
    const answers = sent.map(({ id, method }) => ({ jsonrpc: '2.0', id, result: method }))
    return { status: 200, body: JSON.stringify(Array.isArray(parsed) ? answers : answers[0]) }
  }
  const rpc = createJsonRpc({ url: 'http://node', net: { fetch }, name: 'Base', timeoutMs: 1_000 })
  return { rpc, sizes }
}
const refusals: [string, number, (ids: number[]) => { status: number; body: unknown }][] = [
  [
    'with one error of no id',
    10,
    () => ({
      status: 200,
      body: { jsonrpc: '2.0', id: null, error: { code: -32014, message: 'maximum 10 calls in 1 batch' } },
    }),
  ],
  [
    'with an error of the server',
    3,
    () => ({
      status: 500,
      body: { message: 'Batch of more than 3 requests are not allowed on free tier', code: 31 },
    }),
  ],
  ['for its size', 20, () => ({ status: 413, body: 'Payload Too Large' })],
  [
    'with the same error for each call',
    1,
    (ids) => ({
      status: 200,
      body: ids.map((id) => ({ jsonrpc: '2.0', id, error: { code: -32600, message: 'Invalid request' } })),
    }),
  ],
  [
    'with errors for the calls beyond its limit',
    10,
    (ids) => ({
      status: 200,
      body: ids.map((id) =>
        id > 10 ? { id, error: { code: -32000, message: 'batch limit exceeded' } } : { id, result: 'early' },
      ),
    }),
  ],
]
for (const [how, callsMax, refuse] of refusals)
  test(`a batch that a node refuses ${how} is sent in smaller ones, whose size is remembered`, async () => {
    const { rpc, sizes } = limitedNode(callsMax, refuse)
    const calls = Array.from({ length: 48 }, (_, n) => ({ method: `m${n}`, params: [] }))
    const expected = calls.map(({ method }) => ({ result: method }))
    assert.deepEqual(await rpc(calls), expected)
    sizes.length = 0
    assert.deepEqual(await rpc(calls), expected)
    assert.ok(
      sizes.every((size) => size <= callsMax),
      sizes.join(),
    )
  })

test('calls that a node refuses one by one too keep their errors, and the size of batches', async () => {
  const sizes: number[] = []
  const fetch = async ({ body }: { body?: string }) => {
    const parsed = JSON.parse(body ?? '')
    const sent: { id: number }[] = Array.isArray(parsed) ? parsed : [parsed]
    sizes.push(sent.length)
    const error = { code: -32601, message: 'the method eth_foo does not exist' }
    return { status: 200, body: JSON.stringify(sent.map(({ id }) => ({ id, error }))) }
  }
  const rpc = createJsonRpc({ url: 'http://node', net: { fetch }, name: 'Base', timeoutMs: 1_000 })
  const calls = Array.from({ length: 48 }, () => first)
  for (const _ of [1, 2])
    assert.ok((await rpc(calls)).every((answer) => 'error' in answer && answer.error.code === -32601))
  const halves = [48, 24, 12, 6, 3, 1]
  assert.deepEqual(sizes, [...halves, ...halves])
})
