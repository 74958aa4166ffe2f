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
