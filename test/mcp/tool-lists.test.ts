/** Which tools the address of a client gives it, what a list costs, and that tools found by words are the same calls. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { errorOf, everyClientOf, type McpClient, modernClient, type ToolReply } from './clients.ts'
import { openPair, type Pair } from './instances.ts'

let pair: Pair
let user: { authorization: string }
before(async () => {
  pair = await openPair()
  user = await pair.user()
})
after(() => pair[Symbol.asyncDispose]())

const namesAt = async (query: string): Promise<string[]> => {
  await using client = await modernClient(pair.url, { ...user, query })
  return (await client.listTools()).map(({ name }) => name)
}
const operations = () => pair.instances[0]!.features.operations
const isTaskTool = (name: string) => /^tasks_(?:get|wait|cancel)$/.test(name)

async function listText(query: string, encoding = 'identity') {
  const reply = await fetch(`${pair.url}/mcp${query}`, {
    method: 'POST',
    headers: {
      ...user,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'accept-encoding': encoding,
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  })
  return { reply, text: await reply.text() }
}

test('the default list has at most 30 tools, 40 KB and about 8,000 tokens', async () => {
  const { text } = await listText('')
  const { tools } = JSON.parse(text).result as { tools: { name: string }[] }
  assert.ok(tools.length <= 30, `${tools.length} tools`)
  const list = JSON.stringify(tools)
  const bytes = Buffer.byteLength(list)
  assert.ok(bytes <= 40_000, `${bytes} bytes`)
  // No tokenizer is installed; JSON of tools has about 3.6 bytes in a token.
  assert.ok(bytes / 3.6 <= 8_000, `${Math.ceil(bytes / 3.6)} tokens`)
  const main = operations().filter(({ entry }) => entry.mainTool !== undefined)
  assert.deepEqual(
    tools.map(({ name }) => name).filter((name) => name !== 'tasks_wait'),
    [...main.map(({ name }) => name), 'find_operation', 'call_operation'],
  )
})

test('each field of every input has one type', async () => {
  const { text } = await listText('?sections=all')
  const { tools } = JSON.parse(text).result as { tools: { name: string; inputSchema: object }[] }
  assert.ok(tools.length > 100)
  const several = (schema: unknown, path: string): string[] => {
    if (schema === null || typeof schema !== 'object') return []
    const own = Object.entries(schema).some(
      ([keyword, value]) =>
        /^(?:anyOf|oneOf|allOf)$/.test(keyword) || (keyword === 'type' && Array.isArray(value)),
    )
    return [
      ...(own ? [path] : []),
      ...Object.entries(schema).flatMap(([key, value]) => several(value, `${path}.${key}`)),
    ]
  }
  assert.deepEqual(
    tools.flatMap(({ name, inputSchema }) => several(inputSchema, name)),
    [],
  )
})

test('numbers and text are both accepted where the list says text', async () => {
  await using client = await modernClient(pair.url, await pair.user())
  const deposit = (await client.listTools()).find(({ name }) => name === 'earn_deposit')!
  assert.equal(deposit.inputSchema.properties?.amount_usdc?.type, 'string')
  for (const amount_usdc of ['20', 21]) {
    const reply = await client.call('earn_deposit', { amount_usdc, wait: true })
    assert.equal(reply.structuredContent?.outcome, 'executed', JSON.stringify(reply))
  }
})

test('an address names sections, all tools, or reads alone', async () => {
  const groupOf = new Map(operations().map(({ name, group }) => [name, group]))
  const swapAndPerp = await namesAt('?sections=swap,perp')
  assert.deepEqual(
    swapAndPerp.filter((name) => !isTaskTool(name)),
    operations().flatMap(({ name, group }) => (group === 'swap' || group === 'perp' ? [name] : [])),
  )
  assert.deepEqual(swapAndPerp.filter(isTaskTool), ['tasks_get', 'tasks_wait', 'tasks_cancel'])
  assert.deepEqual(await namesAt('?sections=perp&sections=swap'), swapAndPerp)
  assert.deepEqual(await namesAt('?sections=chains'), ['chains_list'])
  const withPolicy = await namesAt('?sections=default,policy')
  assert.ok(withPolicy.includes('swap_execute') && withPolicy.includes('find_operation'))
  assert.ok(operations().every(({ name, group }) => group !== 'policy' || withPolicy.includes(name)))
  await using client = await modernClient(pair.url, { ...user, query: '?mode=read' })
  const reads = await client.listTools()
  assert.ok(reads.every(({ annotations }) => annotations?.readOnlyHint))
  assert.ok(
    reads.some(({ name }) => name === 'perp_orders') && !reads.some(({ name }) => name === 'perp_open'),
  )
  assert.ok(
    reads.every(
      ({ name }) => groupOf.has(name) || /^(?:tasks_wait|find_operation|call_operation)$/.test(name),
    ),
  )
})

test('what an address does not serve is refused there, by its name and by its tool', async () => {
  await using reading = await modernClient(pair.url, { ...user, query: '?mode=read' })
  await assert.rejects(reading.call('earn_deposit', { amount_usdc: '20' }), /mode=read/)
  const named = await reading.call('call_operation', {
    name: 'earn_deposit',
    arguments: { amount_usdc: '20' },
  })
  assert.equal(errorOf(named)?.code, 'not_found')
  assert.equal(errorOf(await reading.call('call_operation', { name: 'earn_info' })), undefined)
  assert.ok(!(await reading.prompts()).includes('safe_swap'))
  await using swaps = await modernClient(pair.url, { ...user, query: '?sections=swap' })
  assert.match(reading.instructions(), /find_operation/)
  assert.doesNotMatch(swaps.instructions(), /find_operation/)
  await assert.rejects(swaps.call('earn_info'), /sections=swap/)
  await assert.rejects(swaps.call('find_operation', { query: 'yield' }), /Unknown tool/)
})

test('an unknown section, mode or parameter is refused with the known ones', async () => {
  for (const [query, field, known] of [
    ['?sections=swaps', 'sections', /default, all, .*swap/],
    ['?sections=', 'sections', /swap/],
    ['?mode=write', 'mode', /'read'/],
    ['?section=swap', 'section', /`sections`/],
  ] as const) {
    const { reply, text } = await listText(query)
    assert.equal(reply.status, 422, text)
    const [issue] = (JSON.parse(text) as { detail: { loc: string[]; msg: string }[] }).detail
    assert.deepEqual(issue?.loc, ['query', field])
    assert.match(issue.msg, known)
  }
})

test('the transport of 2024 keeps the selection of its address', async () => {
  const clients = await everyClientOf(pair.url, { ...user, query: '?sections=earn&mode=read' })
  const lists = await Promise.all(
    clients.map(async (client) => (await client.listTools()).map(({ name }) => name)),
  )
  for (const names of lists) assert.deepEqual(names, ['earn_info', 'earn_vault', 'earn_positions'])
  for (const client of clients) await client[Symbol.asyncDispose]()
})

test('a list is sent compressed to a client that also takes br', async () => {
  const [plain, compressed] = [await listText(''), await listText('', 'br, gzip')]
  assert.equal(compressed.reply.headers.get('content-encoding'), 'gzip')
  // The client of this test has decompressed it.
  assert.equal(compressed.text, plain.text)
})

const fieldOf = (reply: ToolReply): string | undefined =>
  (errorOf(reply)?.issues as { field: string }[] | undefined)?.[0]?.field

type Found = {
  operations: {
    name: string
    description: string
    input_schema: { properties: object; required?: string[] }
  }[]
}
const found = async (client: McpClient, input: Record<string, unknown>): Promise<Found['operations']> => {
  const reply = await client.call('find_operation', input)
  assert.equal(reply.isError, undefined, JSON.stringify(reply))
  return (JSON.parse(reply.content[0]!.text) as Found).operations
}

test('an operation outside the list is found by words and called like a tool', async () => {
  const credential = await pair.user()
  await using client = await modernClient(pair.url, credential)
  const names = (await found(client, { query: 'how many credits can I still spend' })).map(({ name }) => name)
  assert.ok(names.includes('credits_available') && names.length === 3, String(names))
  assert.equal((await found(client, { query: 'credits', limit: 5 })).length, 5)
  // The schemas of orders are the longest; what has no room is named.
  const orders = await client.call('find_operation', { query: 'order swap trade strategy', limit: 10 })
  const { operations, more } = JSON.parse(orders.content[0]!.text) as Found & { more: string[] }
  assert.equal(operations.length + more.length, 10)
  assert.ok(Buffer.byteLength(JSON.stringify(operations)) <= 16_400)
  const [exact, ...others] = await found(client, { query: 'policy_tighten' })
  assert.deepEqual([exact?.name, others], ['policy_tighten', []])
  assert.ok('per_day_usd' in exact!.input_schema.properties)
  const named = await client.call('call_operation', { name: 'credits_available' })
  assert.deepEqual(named.structuredContent, (await client.call('credits_available')).structuredContent)
  for (const [input, field] of [
    [{ query: '' }, 'query'],
    [{ query: 'x', limit: 0 }, 'limit'],
  ] as const)
    assert.equal(fieldOf(await client.call('find_operation', input)), field)
})

test('a call by name passes the same checks as the tool', async () => {
  const credential = await pair.user()
  await using client = await modernClient(pair.url, credential)
  const by = (name: string, input: Record<string, unknown> = {}) =>
    client.call('call_operation', { name, arguments: input })
  const deposit = { amount_usdc: '25', idempotency_key: 'by-name' }
  const first = await by('earn_deposit', deposit)
  const key = first._meta?.['portico/idempotency_key']
  assert.equal(key, 'by-name')
  // The same key replays over both ways, and the guard against duplicates counts them together.
  const again = await client.call('earn_deposit', deposit)
  assert.deepEqual(
    [again._meta?.['portico/replayed'], again.structuredContent?.task_id],
    [true, first.structuredContent?.task_id],
  )
  assert.equal(errorOf(await client.call('earn_deposit', { amount_usdc: '25' }))?.code, 'possible_duplicate')
  assert.equal(errorOf(await by('earn_deposit', { amount_usdc: 25 }))?.code, 'possible_duplicate')
  const wrong = errorOf(await by('earn_deposit', { amount_usdc: '-1' }))
  assert.deepEqual(
    [wrong?.code, fieldOf(await by('earn_deposit', { amount_usdc: '-1' }))],
    ['validation', 'amount_usdc'],
  )
  for (const [input, field] of [
    [{ name: 7 }, 'name'],
    [{ name: 'earn_deposit', arguments: [] }, 'arguments'],
    [{ name: 'earn_deposit', amount_usdc: '25' }, 'amount_usdc'],
  ] as const)
    assert.equal(fieldOf(await client.call('call_operation', input)), field)
  for (const name of ['nothing', 'find_operation', 'call_operation', 'tasks_wait'])
    assert.equal(errorOf(await by(name))?.code, name === 'tasks_wait' ? 'validation' : 'not_found', name)
  const tightened = await by('policy_tighten', { approval_above_usd: '5' })
  assert.equal(errorOf(tightened), undefined)
  assert.equal(errorOf(await by('earn_deposit', { amount_usdc: '30' }))?.code, 'approval_required')
})
