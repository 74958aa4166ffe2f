/** MCP clients and the whole product, two instances behind one address: money moves once, whatever a model repeats. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../harness/gateway.ts'
import {
  clientsOf,
  errorOf,
  everyClientOf,
  type McpClient,
  type ProgressReport,
  type ToolReply,
} from './clients.ts'
import { openPair, type Pair } from './instances.ts'

let pair: Pair
let clients: McpClient[]

before(async () => {
  pair = await openPair()
  clients = await everyClientOf(pair.url, { ...(await pair.user()), query: '?sections=all' })
})
after(async () => {
  for (const client of clients) await client[Symbol.asyncDispose]()
  await pair[Symbol.asyncDispose]()
})

type Json = Record<string, unknown>
const body = ({ structuredContent, content }: ToolReply): Json => {
  assert.ok(structuredContent, JSON.stringify(content))
  return structuredContent
}
const own = async (): Promise<McpClient> => (await clientsOf(pair.url, await pair.user()))[0]!
const deposits = async (client: McpClient): Promise<number> => {
  const { items } = body(await client.call('tasks_list', { kind: 'earn_deposit', limit: 100 })) as {
    items: { outcome: string }[]
  }
  return items.filter(({ outcome }) => outcome !== 'not_executed').length
}

test('clients of every transport list the tools of every operation, and read without arguments', async () => {
  const operations = pair.instances[0]!.features.operations.filter(
    ({ entry }) =>
      entry.access !== 'person' &&
      entry.access !== 'backend' &&
      entry.callers === undefined &&
      !(entry.kind === 'act' && entry.isSigned),
  )
  for (const client of clients) {
    const tools = await client.listTools()
    const names = tools.map(({ name }) => name)
    assert.deepEqual(
      names.filter((name) => name !== 'tasks_wait'),
      operations.map(({ name }) => name),
    )
    // A model that is given all of them reads them all.
    const characters = JSON.stringify(tools).length
    assert.ok(characters < 1_600 * tools.length, `${characters} characters for ${tools.length} tools`)
    for (const { name, entry } of operations) {
      const isPlain = entry.kind === 'read' && !entry.params && !entry.body && !entry.query?.required?.length
      if (!isPlain) continue
      const reply = await client.call(name)
      assert.equal(reply.isError, undefined, `${name}: ${JSON.stringify(reply)}`)
    }
    assert.ok((await client.resources()).includes('portico://holdings'))
    assert.ok('holdings' in JSON.parse(await client.read('portico://holdings')))
  }
})

test('the documents for models are resources, as they are served over HTTP', async () => {
  for (const client of clients)
    for (const name of ['llms.txt', 'skill.md']) {
      assert.ok((await client.resources()).includes(`portico://${name}`))
      const served = await fetch(`${pair.url}/${name}`).then((reply) => reply.text())
      assert.equal(await client.read(`portico://${name}`), served)
    }
})

test('every resource can be read, and an unknown one is refused', async () => {
  for (const client of clients) {
    const texts = await Promise.all((await client.resources()).map((uri) => client.read(uri)))
    for (const text of texts) {
      assert.notEqual(text, '')
      assert.doesNotMatch(text, /"isError"|^\{"error"/)
    }
    await assert.rejects(client.read('portico://nothing'), /not found/i)
  }
})

test('every prompt names tools that exist, takes its arguments, and says which one is missing', async () => {
  const tools = new Set(pair.instances[0]!.features.operations.map(({ name }) => name))
  const given = {
    token_in: 'USDC',
    token_out: 'WETH',
    amount: '5',
    asset: 'ETH',
    side: 'long',
    size_usd: '50',
  }
  for (const client of clients) {
    assert.deepEqual(await client.prompts(), ['portfolio_review', 'safe_swap', 'perp_trade'])
    for (const name of await client.prompts()) {
      const text = await client.prompt(name, given)
      const named = text
        .match(/\b[a-z]+_[a-z_]+\b/g)
        ?.filter((word) => /^(wallets|perp|spot|earn|swap|security|tasks)_/.test(word))
      assert.deepEqual(
        named?.filter((word) => !tools.has(word)),
        [],
        text,
      )
    }
    assert.match(await client.prompt('safe_swap', given), /5 USDC to WETH/)
    await assert.rejects(client.prompt('perp_trade', { asset: 'ETH' }), /side is missing/)
  }
})

test('a call that waits reports progress and answers with the ended task', async () => {
  for (const client of clients) {
    const reports: ProgressReport[] = []
    const amount = String(20 + clients.indexOf(client))
    const input = { amount_usdc: amount, wait: true, idempotency_key: `progress-${amount}` }
    const task = body(await client.call('earn_enable', input, (report) => reports.push(report)))
    assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], JSON.stringify(task))
    assert.ok(reports.length >= 1)
    const waited = body(await client.call('tasks_wait', { task_id: task.task_id }))
    assert.equal(waited.status, 'completed')
  }
})

test('a model that repeats every timeout with fresh keys or none moves money once', async () => {
  const client = await own()
  const first = body(await client.call('earn_enable', { amount_usdc: '30' }))
  for (const key of [undefined, 'fresh-1', undefined, 'fresh-2']) {
    const again = await client.call('earn_enable', {
      amount_usdc: key ? '30.00' : 30,
      wait: key === 'fresh-1',
      ...(key && { idempotency_key: key }),
    })
    const error = errorOf(again)
    // A client that repeats what is retryable would repeat it in vain for ten minutes.
    assert.deepEqual([error?.code, error?.retryable], ['possible_duplicate', false])
    assert.equal((error?.details as Json | undefined)?.task_id, first.task_id)
  }
  assert.equal(body(await client.call('tasks_wait', { task_id: first.task_id })).outcome, 'executed')
  assert.equal(await deposits(client), 1)
  const wanted = body(
    await client.call('earn_enable', { amount_usdc: '30', wait: true, confirm_repeat: true }),
  )
  assert.equal(wanted.outcome, 'executed')
  assert.equal(await deposits(client), 2)
  await client[Symbol.asyncDispose]()
})

test('of parallel repetitions over two instances one is accepted', async () => {
  const client = await own()
  const replies = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      client.call('earn_enable', { amount_usdc: '40', ...(index % 2 && { idempotency_key: `p-${index}` }) }),
    ),
  )
  const refused = replies.map(errorOf).filter((error) => error?.code === 'possible_duplicate')
  assert.equal(refused.length, 7, JSON.stringify(replies))
  assert.equal(await deposits(client), 1)
  await client[Symbol.asyncDispose]()
})

test('what moves nothing twice may be repeated', async () => {
  const client = await own()
  for (let times = 0; times < 2; times++)
    assert.equal(errorOf(await client.call('perp_setup', { wait: true })), undefined)
  await client[Symbol.asyncDispose]()
})

test('a session of the transport of 2024 is bound to its user, and limited in number', async () => {
  const [{ authorization }, other] = [await pair.user(), await pair.user()]
  const opened: AbortController[] = []
  const open = async () => {
    const leaving = new AbortController()
    opened.push(leaving)
    const reply = await fetch(`${pair.url}/mcp/sse`, { headers: { authorization }, signal: leaving.signal })
    if (reply.status !== 200) return { status: reply.status, path: '' }
    const { value } = await reply.body!.getReader().read()
    return { status: 200, path: /data: (.*)/.exec(new TextDecoder().decode(value))?.[1] ?? '' }
  }
  const send = (path: string, headers: Record<string, string>) =>
    fetch(pair.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    }).then(({ status }) => status)
  const { path } = await open()
  assert.match(path, /^\/mcp\/messages\?session_id=[\w-]{43}$/)
  assert.deepEqual(
    [await send(path, { authorization }), await send(path, other), await send(path, {})],
    [202, 404, 401],
  )
  assert.equal(await send(`${path.slice(0, -1)}x`, { authorization }), 404)
  for (let count = 1; count < 10; count++) assert.equal((await open()).status, 200)
  assert.equal((await open()).status, 429)
  for (const leaving of opened) leaving.abort()
  await eventually(async () => ((await send(path, { authorization })) === 404 ? true : undefined), 'the end')
  assert.equal((await open()).status, 200)
  opened.at(-1)?.abort()
})

test('without a credential every path of every transport answers 401 with its header', async () => {
  for (const [method, path] of [
    ['POST', '/mcp'],
    ['GET', '/mcp/sse'],
    ['POST', '/mcp/messages?session_id=x'],
  ] as const) {
    const reply = await fetch(pair.url + path, { method })
    assert.equal(reply.status, 401, path)
    assert.equal(
      reply.headers.get('www-authenticate'),
      `Bearer resource_metadata="${pair.url}/.well-known/oauth-protected-resource"`,
    )
  }
})
