/** The MCP door over real sockets, with the clients of both lines of the library. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { createHttpApp, type HttpApp, noLimits, sendRequest, tokens } from '../edges/http-app.ts'
import { clientsOf, errorOf, type McpClient } from './clients.ts'

let app: HttpApp
let clients: McpClient[]

before(async () => {
  app = await createHttpApp()
  clients = await clientsOf(app.url, { authorization: tokens.all, query: '?sections=all' })
})
after(async () => {
  for (const client of clients) await client[Symbol.asyncDispose]()
  await app.close()
})

const eachClient = (title: string, run: (client: McpClient) => Promise<void>) =>
  test(title, async () => {
    for (const client of clients) await run(client)
  })

eachClient('a client lists one tool for each operation', async (client) => {
  const names = (await client.listTools()).map(({ name }) => name)
  assert.equal(names[0], 'probe_list')
  assert.ok(names.includes('probe_pay') && names.includes('probe_watch'), String(names))
})

eachClient('a reader sees the tools of its scopes only', async ({ name }) => {
  const readers = await clientsOf(app.url, { authorization: tokens.reader, query: '?sections=all' })
  const reader = readers.find((each) => each.name === name)!
  const names = (await reader.listTools()).map((tool) => tool.name)
  assert.ok(names.includes('probe_list') && !names.includes('probe_pay'), String(names))
  assert.equal(errorOf(await reader.call('probe_pay', { amount_usdc: '1' }))?.code, 'insufficient_scope')
  for (const each of readers) await each[Symbol.asyncDispose]()
})

eachClient('the parts of an input are one record', async (client) => {
  const reply = await client.call('probe_get', { probe_id: 'x' })
  assert.deepEqual(reply.structuredContent, { probe_id: 'x', at: 'now' })
})

eachClient('a wrong input is an error result that names the field', async (client) => {
  const error = errorOf(await client.call('probe_check', { name: 'abc', count: 99 }))
  assert.equal(error?.code, 'validation')
  assert.deepEqual(
    ((error?.issues ?? []) as { field: string; type: string }[]).map(({ field, type }) => [field, type]),
    [['count', 'less_than_equal']],
  )
})

eachClient('a money tool says to reuse the key, and takes it', async (client) => {
  const tool = (await client.listTools()).find(({ name }) => name === 'probe_pay')!
  assert.match(tool.inputSchema.properties?.idempotency_key?.description ?? '', /REUSE it/)
  assert.deepEqual(Object.keys(tool.inputSchema.properties ?? {}).sort(), [
    'amount_usdc',
    'confirm_repeat',
    'idempotency_key',
    'legs',
    'memo',
    'timeout',
    'wait',
  ])
  const key = `k-${client.name}`
  app.seen.length = 0
  await client.call('probe_pay', { amount_usdc: '1.50', idempotency_key: key })
  const again = await client.call('probe_pay', {
    amount_usdc: '1.50',
    idempotency_key: key,
    confirm_repeat: true,
  })
  assert.equal(again._meta?.['portico/replayed'], true)
  assert.deepEqual(
    app.seen.map(({ options }) => [options.key, options.duplicates]),
    [
      [key, 'refuse'],
      [key, 'allow'],
    ],
  )
})

test('the list of tools is sent compressed to those who take it, and costs 20 reads', async (t) => {
  const limited = await createHttpApp({ limits: { ...noLimits, read: { points: 39, windowSeconds: 60 } } })
  t.after(() => limited.close())
  const list = (url: string, encoding: string) =>
    new Promise<{ status: number; encoding: string | undefined; bytes: Buffer }>((resolve, reject) => {
      const headers = {
        authorization: tokens.all,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'accept-encoding': encoding,
      }
      const sent = request(`${url}/mcp?sections=all`, { method: 'POST', headers }, async (reply) => {
        const bytes = Buffer.concat(await reply.toArray())
        resolve({ status: reply.statusCode ?? 0, encoding: reply.headers['content-encoding'], bytes })
      })
      sent.on('error', reject)
      sent.end('{"jsonrpc":"2.0","id":"ä","method":"tools/list"}')
    })
  const [plain, small] = [await list(app.url, 'identity'), await list(app.url, 'br, gzip')]
  assert.deepEqual([plain.encoding, small.encoding], [undefined, 'gzip'])
  assert.equal(gunzipSync(small.bytes).toString(), plain.bytes.toString())
  assert.ok(small.bytes.length < plain.bytes.length / 2, `${small.bytes.length} of ${plain.bytes.length}`)
  const { id, result } = JSON.parse(plain.bytes.toString()) as {
    id: string
    result: { tools: { name: string }[] }
  }
  assert.deepEqual(
    [id, result.tools.map(({ name }) => name)],
    ['ä', (await clients[0]!.listTools()).map(({ name }) => name)],
  )
  assert.deepEqual(
    [(await list(limited.url, 'gzip')).status, (await list(limited.url, 'gzip')).status],
    [200, 429],
  )
})

test('a list has one page, and a batch has its own list', async () => {
  const headers = { accept: 'application/json, text/event-stream' }
  const listed = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const next = await sendRequest(app.url, 'POST /mcp?sections=all', {
    headers,
    body: { ...listed, params: { cursor: '2' } },
  })
  assert.match(next.text, /-32602/)
  const first = await sendRequest(app.url, 'POST /mcp?sections=all', {
    headers,
    body: { ...listed, params: { cursor: '' } },
  })
  assert.match(first.text, /"name":"probe_list"/)
  const batch = await sendRequest(app.url, 'POST /mcp?sections=all', { headers, body: [listed] })
  assert.match(batch.text, /"name":"probe_list"/)
})

test('a message with a long id is refused, and its id does not come back', async () => {
  const headers = { accept: 'application/json, text/event-stream' }
  const body = { jsonrpc: '2.0', id: 'i'.repeat(257), method: 'tools/list' }
  const { status, text } = await sendRequest(app.url, 'POST /mcp', { headers, body })
  assert.deepEqual([status, text.length < 200], [400, true])
  assert.match(text, /-32600/)
})

test('numbers of a call keep their digits', async () => {
  app.seen.length = 0
  const body =
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"probe_pay","arguments":' +
    '{"amount_usdc":12345678901234567.000001}}}'
  const { status, text } = await sendRequest(app.url, 'POST /mcp', {
    raw: body,
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  })
  assert.equal(status, 200, text)
  assert.equal(app.seen[0]?.input.amount_usdc, '12345678901234567.000001')
})

test('without a credential each path answers 401 with the header that leads to one', async () => {
  for (const route of ['POST /mcp', 'GET /mcp', 'DELETE /mcp']) {
    const { status, headers } = await sendRequest(app.url, route, { headers: { authorization: undefined } })
    assert.equal(status, 401, route)
    assert.equal(
      headers.get('www-authenticate'),
      `Bearer resource_metadata="${app.url}/.well-known/oauth-protected-resource"`,
    )
  }
})

test('a foreign host and a foreign origin are refused before the credential is read', async () => {
  const statusFor = (headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const sent = request(`${app.url}/mcp`, { method: 'POST', headers }, (reply) => {
        reply.resume()
        resolve(reply.statusCode)
      })
      sent.on('error', reject)
      sent.end()
    })
  assert.equal(await statusFor({ host: 'evil.example' }), 403)
  assert.equal(await statusFor({ origin: 'https://evil.example' }), 403)
  assert.equal(await statusFor({ origin: 'https://app.example' }), 401)
  assert.equal(await statusFor({ host: 'localhost' }), 401)
})

test('a body over 1 MiB and one that is not JSON are refused', async () => {
  const large = await sendRequest(app.url, 'POST /mcp', {
    body: { jsonrpc: '2.0', pad: 'x'.repeat(1024 * 1024) },
  })
  assert.equal(large.status, 413)
  const broken = await sendRequest(app.url, 'POST /mcp', {
    raw: '{"jsonrpc":',
    headers: { 'content-type': 'application/json' },
  })
  assert.deepEqual([broken.status, (broken.body.error as { code: number }).code], [400, -32_700])
})

test('the card describes the server', async () => {
  const { status, body, headers } = await sendRequest(app.url, 'GET /.well-known/mcp/server-card.json')
  assert.equal(status, 200)
  assert.match(headers.get('content-type') ?? '', /^application\/mcp-server-card\+json/)
  assert.match(String(body.name), /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
  assert.ok(String(body.description).length <= 100)
  const [remote] = body.remotes as { type: string; url: string }[]
  assert.deepEqual([remote?.type, remote?.url], ['streamable-http', `${app.url}/mcp`])
  const catalogue = await sendRequest(app.url, 'GET /.well-known/api-catalog')
  const [, door] = catalogue.body.linkset as { anchor: string; 'service-desc': { href: string }[] }[]
  assert.deepEqual(
    [door?.anchor, door?.['service-desc'][0]?.href],
    [`${app.url}/mcp`, `${app.url}/.well-known/mcp/server-card.json`],
  )
})
