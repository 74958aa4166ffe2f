/** A message that the MCP door refuses costs a point, as a refused request over HTTP does. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newAgent } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp } from '../oauth/oauth-app.ts'

let app: OAuthApp
before(async () => {
  // One point, so that the second request of a user is the first one too many.
  app = await createOAuthApp({ env: { RATE_READ: '1', RATE_EXIT: '100' } })
})
after(() => app?.[Symbol.asyncDispose]())

type Fields = Record<string, unknown>
type Sent = { body: unknown; path?: string; headers?: Record<string, string> }
type Got = { status: number; text: string }

async function caller() {
  const { token } = await newAgent(app.base)
  return async ({ body, path = '/mcp', headers = {} }: Sent): Promise<Got> => {
    const reply = await fetch(app.base + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: reply.status, text: await reply.text() }
  }
}

const message = (method: string, params: unknown, changes: Fields = {}): Fields => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params,
  ...changes,
})
const call = (params: Fields, changes: Fields = {}): Fields => message('tools/call', params, changes)
const meta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const recent = (method: string, name: string) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  'mcp-name': name,
})
const known = { name: 'tasks_cancel', arguments: { task_id: 'x' } }
const noSession = '/mcp/messages?session_id='

/** What the first request is answered with. */
const refusals: Readonly<Record<string, Sent & { status: number; answer: RegExp }>> = {
  'an unknown tool': { body: call({ name: 'no_such_tool' }), status: 200, answer: /Unknown tool/ },
  'an unknown tool, of the newest revision': {
    body: call({ name: 'no_such_tool', arguments: {}, _meta: meta }),
    headers: recent('tools/call', 'no_such_tool'),
    status: 200,
    answer: /Unknown tool/,
  },
  'a call without a name': { body: call({ arguments: {} }), status: 200, answer: /"error"/ },
  'arguments that are a list': { body: call({ ...known, arguments: [] }), status: 200, answer: /"error"/ },
  'a progress token that is none': {
    body: call({ ...known, _meta: { progressToken: {} } }),
    status: 400,
    answer: /-32600/,
  },
  'headers that name another tool': {
    body: call({ ...known, _meta: meta }),
    headers: recent('tools/call', 'tasks_get'),
    status: 400,
    answer: /-32020/,
  },
  'an unknown revision': {
    body: call({ ...known, _meta: { ...meta, 'io.modelcontextprotocol/protocolVersion': '2030-01-01' } }),
    headers: { ...recent('tools/call', 'tasks_cancel'), 'mcp-protocol-version': '2030-01-01' },
    status: 400,
    answer: /-32022/,
  },
  'a client that accepts no stream': {
    body: call(known),
    headers: { accept: 'application/json' },
    status: 406,
    answer: /Not Acceptable/,
  },
  'another version of JSON-RPC': { body: call(known, { jsonrpc: '1.0' }), status: 400, answer: /"error"/ },
  'a request without an id': { body: call(known, { id: undefined }), status: 202, answer: /^$/ },
  'an unknown method': { body: message('no/such', {}), status: 200, answer: /-32601/ },
  'a task of a former revision': {
    body: message('tasks/get', { taskId: 'x' }),
    status: 200,
    answer: /-32601/,
  },
  'a task of a client without the extension': {
    body: message('tasks/get', { taskId: 'x', _meta: meta }),
    headers: recent('tasks/get', 'x'),
    status: 400,
    answer: /-32021/,
  },
  'a body that is no JSON': { body: '{"jsonrpc":', status: 400, answer: /-32700/ },
  'an empty body': { body: '', status: 400, answer: /"error"/ },
  'a body of another type': {
    body: 'x=1',
    headers: { 'content-type': 'text/plain' },
    status: 415,
    answer: /unsupported_media_type/,
  },
  'a body that is too large': {
    body: JSON.stringify({ pad: 'x'.repeat(1_048_576) }),
    status: 413,
    answer: /body_too_large/,
  },
  'a session that is not open': {
    body: call(known),
    path: `${noSession}${'A'.repeat(43)}`,
    status: 404,
    answer: /no such session/,
  },
  'a session that cannot be': { body: call(known), path: noSession, status: 404, answer: /no such session/ },
}

for (const [name, { status, answer, ...sent }] of Object.entries(refusals))
  test(`${name} is refused and costs a point`, async () => {
    const send = await caller()
    const first = await send(sent)
    assert.equal(first.status, status, first.text)
    assert.match(first.text, answer)
    const second = await send(sent)
    assert.equal(second.status, 429, second.text)
    assert.match(second.text, /rate_limited/)
  })

test('each message of a batch costs a point', async () => {
  const send = await caller()
  const body = [1, 2].map((id) => call({ name: 'no_such_tool' }, { id }))
  assert.equal((await send({ body })).status, 429)
})

test('a call that an operation counts costs no read, also where its input is wrong', async () => {
  const send = await caller()
  const former: Sent = { body: call(known) }
  const newest: Sent = { body: call({ ...known, _meta: meta }), headers: recent('tools/call', known.name) }
  const wrong: Sent = { body: call({ ...known, arguments: {} }) }
  for (const sent of [former, newest, wrong, former]) assert.match((await send(sent)).text, /"isError":true/)
  assert.equal((await send({ body: message('ping', {}) })).status, 200)
  assert.equal((await send({ body: message('ping', {}) })).status, 429)
  assert.match((await send(former)).text, /"isError":true/, 'a spent budget of reads stops no cancel')
})
