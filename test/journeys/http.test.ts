import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { bearer, eventually, freshGateway, freshToken, newAgent } from '../harness/gateway.ts'
import { sentEvents } from '../harness/stream.ts'
import { type Person, personOf } from './users.ts'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let person: Person
before(async () => {
  gateway = await freshGateway({ STREAMS_PER_USER: '2' })
  person = await personOf(gateway.url, await newAgent(gateway.url))
})
after(() => gateway[Symbol.asyncDispose]())

async function database(text: string, values: unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: gateway.databaseUrl })
  await client.connect()
  const { rows } = await client.query(text, values)
  await client.end()
  return rows
}

const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'

test('a misspelt event type is rejected, on the stream and page by page', async () => {
  for (const path of ['/v1/notifications', '/v1/notifications/stream']) {
    const { status, body } = await person.call<{ detail: { loc: string[]; type: string; msg: string }[] }>(
      `GET ${path}?types=task.completed,order.fill`,
    )
    assert.equal(status, 422, JSON.stringify(body))
    const [item] = body.detail
    assert.deepEqual([item?.loc, item?.type], [['query', 'types'], 'unknown_event_type'])
    assert.match(
      item?.msg ?? '',
      /'order\.fill' is not an event type\. Did you mean 'order\.filled'\? Valid types: .*order\.filled/,
    )
  }
  const { status } = await person.call('GET /v1/notifications?types=order.filled,%20funding.paid')
  assert.equal(status, 200)
})

test('a page searches at most a thousand events in the database', async () => {
  type Page = { events: { id: string }[]; skip: number }
  const first = await eventually(async () => {
    const { body } = await person.call<Page>('GET /v1/notifications?after=0&limit=2')
    return body.events.length === 2 ? body : undefined
  }, 'two events')
  const second = await person.call<Page>('GET /v1/notifications?after=0&limit=1&skip=1')
  assert.deepEqual([second.body.skip, second.body.events[0]?.id], [1, first.events[1]?.id])
  assert.equal((await person.call('GET /v1/notifications?skip=1000')).status, 200)
  for (const query of ['skip=1001', 'offset=1'])
    assert.equal((await person.call(`GET /v1/notifications?${query}`)).status, 422, query)
})

test('a repeated change of the policy answers as before, and changes nothing', async () => {
  const key = 'tighten-once'
  const tokens = Array.from({ length: 100 }, (_, at) => ({
    chain_id: '8453',
    address: `0x${at.toString(16).padStart(40, '0')}`,
  }))
  const sent = { key, body: { per_day_usd: '90', tokens } }
  type Policy = { version: number; per_day_usd: string; tokens: unknown[] }
  const first = await person.call<Policy>('PUT /v1/policy', sent)
  assert.equal(first.status, 200, JSON.stringify(first.body))
  assert.equal(first.body.tokens.length, 100)
  const later = await person.call<Policy>('PUT /v1/policy', { body: { per_day_usd: '80' } })
  const again = await person.call<Policy>('PUT /v1/policy', sent)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual(again.body, first.body)
  const { body: now } = await person.call<Policy>('GET /v1/policy')
  assert.deepEqual(
    [now.per_day_usd, now.version],
    ['80', later.body.version],
    'the repetition widens nothing',
  )
  const more = { body: { tokens: [...tokens, { chain_id: '8453', address: usdc }] } }
  assert.equal((await person.call('PUT /v1/policy', more)).status, 422)
})

test('a stream ends after its token was deleted, also where no instance was notified', async () => {
  const stop = new AbortController()
  const seen: { event?: string; data: unknown }[] = []
  const ended = (async () => {
    for await (const sent of sentEvents(
      `${gateway.url}/v1/notifications/stream`,
      bearer(person),
      stop.signal,
    ))
      seen.push(sent)
  })()
  await eventually(async () => (seen.length > 0 ? true : undefined), 'the stream is open', 20_000)
  await database('delete from access_token')
  // A token is cached for 30 s.
  const timer = setTimeout(() => stop.abort(new Error('the stream did not end')), 60_000)
  await ended
  clearTimeout(timer)
  const last = seen.at(-1)
  const { code } = (last?.data ?? {}) as { code?: string }
  assert.deepEqual([last?.event, code], ['error', 'invalid_token'])
  const token = await freshToken(gateway.url, person.agentId, person.privateKey)
  const { status } = await person.call('GET /v1/tasks', { headers: bearer({ token }) })
  assert.equal(status, 200)
})

test('the signal that opens a debugger opens none', async () => {
  process.kill(gateway.pid, 'SIGUSR1')
  const { status } = await person.call('GET /health')
  assert.equal(status, 200)
  assert.deepEqual(
    gateway.lines.filter((line) => /debugger/i.test(line)),
    [],
  )
})
