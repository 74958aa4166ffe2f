/**
 * Authorization of every operation, generated from the contracts. A new operation is covered without being listed
 * anywhere.
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { type Scope, scopes } from '#kernel/contract/caller.ts'
import { group, isScope, read, task } from '#kernel/contract/operation.ts'
import { OpenObject } from '#kernel/contract/wire-types.ts'
import { testFunding } from '../harness/conservation.ts'
import {
  type Agent,
  bearer,
  eventually,
  freshGateway,
  http,
  newAgent,
  signedAct,
} from '../harness/gateway.ts'
import { signedInPerson } from '../journeys/signed-in.ts'
import { declared, type KnownOperation, operations, operationsOf, served } from './support/contracts.ts'
import { assertErrorForm, codeOf, jsonOf } from './support/error-forms.ts'
import {
  createHttpClient,
  type HttpClient,
  type HttpReply,
  type HttpRequest,
  runConcurrently,
} from './support/http-client.ts'
import { hashOf, type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import { minimalInput } from './support/input-mistakes.ts'
import { minimalRequest } from './support/minimal-request.ts'
import { requestOf } from './support/operation-request.ts'
import { unlimitedRates } from './support/unlimited.ts'

type Person = Agent & { userId: string }

let gateway: Awaited<ReturnType<typeof freshGateway>>
let client: HttpClient
let rows: IdentityRecords
let all: KnownOperation[]
let owner: Person
let stranger: Person
/** Objects of an owner, by the name under which requests refer to them. */
let owned: Record<string, string>
let cells = 0

before(async () => {
  gateway = await freshGateway(unlimitedRates)
  client = createHttpClient(gateway.url)
  rows = await openIdentityRecords(gateway.databaseUrl)
  all = await operationsOf(gateway.url)
  owner = await person()
  stranger = await person()
  await acknowledge(bearer(stranger))
  owned = await createObjects(owner)
})
after(async () => {
  console.log(`authorization: ${cells} cells over ${all.length} operations`)
  client[Symbol.dispose]()
  assert.equal(gateway.child.exitCode, null, gateway.lines.slice(-20).join('\n'))
  await rows[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

async function person(): Promise<Person> {
  const agent = await newAgent(gateway.url)
  const { body } = await http<{ user_id: string }>(`${gateway.url}/v1/user`, { headers: bearer(agent) })
  return { ...agent, userId: body.user_id }
}

/** The disclaimer of prediction markets, without which no order names a quote. */
async function acknowledge(headers: Record<string, string>): Promise<void> {
  const path = '/predmkt/disclaimer/acknowledge'
  const { status, body } = await http(gateway.url + path, { method: 'POST', body: {}, headers })
  assert.equal(status, 200, JSON.stringify(body))
}

async function createObjects(agent: Person): Promise<Record<string, string>> {
  const deposit = () =>
    http<{ task_id: string; status: string; result: { position_id: string } }>(
      `${gateway.url}/v1/earn/deposit?wait=true`,
      { method: 'POST', body: { amount_usdc: '2' }, headers: bearer(agent) },
    )
  // The faucet grant must arrive first: until then the balance covers no deposit.
  const { body } = await eventually(
    async () => {
      const answer = await deposit()
      return answer.status === 200 ? answer : undefined
    },
    'the first deposit',
    60_000,
  )
  assert.equal(body.status, 'completed', JSON.stringify(body))
  const perp = async (path: string, request: object) => {
    const answer = await http<{ status: string; result: { order_id: string } }>(
      `${gateway.url}/v1/perp/${path}?wait=true`,
      { method: 'POST', body: request, headers: bearer(agent) },
    )
    assert.equal(answer.body.status, 'completed', JSON.stringify(answer.body))
    return answer.body.result
  }
  await perp('setup', {})
  await perp('fund', { amount_usd: '50' })
  const limit = { order_type: 'limit', limit_price: '1000', size: '0.02' }
  const { order_id } = await perp('open', { asset: 'ETH', side: 'long', ...limit })
  const { body: swap } = await http<{ quote: { quote_id: string } }>(`${gateway.url}/v1/swap`, {
    method: 'POST',
    body: { ...validBodies.swap_execute, dryrun: true },
    headers: bearer(agent),
  })
  const { body: left } = await http<{ result: { order: { limit_order_id: string } } }>(
    `${gateway.url}/v1/limit-orders?wait=true`,
    { method: 'POST', body: limitOrder, headers: bearer(agent) },
  )
  const limitOrderId = left.result.order.limit_order_id
  const { body: listed } = await http<{ markets: { outcomes: { outcome_id: string }[] }[] }>(
    `${gateway.url}/predmkt/markets?limit=1`,
    { headers: bearer(agent) },
  )
  const purchase = { outcome_id: listed.markets[0]!.outcomes[0]!.outcome_id, side: 'BUY', amount_usd: '5' }
  validBodies.predmkt_order = { ...purchase, order_type: 'FOK' }
  const { body: prediction } = await http<{ quote_id: string }>(`${gateway.url}/predmkt/quote`, {
    method: 'POST',
    body: purchase,
    headers: bearer(agent),
  })
  const { body: webhook } = await http<{ webhook_id: string }>(`${gateway.url}/v1/webhooks`, {
    method: 'POST',
    // Nothing happens that it would send.
    body: { url: 'http://127.0.0.1:2/events', types: ['webhook.disabled'] },
    headers: bearer(agent),
  })
  const { body: chat } = await http<{
    chat_id: string
    thread_id: string
    recommendations: { id: string }[]
  }>(`${gateway.url}/v1/chat`, {
    method: 'POST',
    body: { query: 'swap 5 usdc to weth on base', stream: false },
    headers: bearer(agent),
  })
  return {
    chat_id: chat.chat_id,
    thread_id: chat.thread_id,
    recommendation_id: chat.recommendations[0]!.id,
    ...(await createSchedule(agent)),
    'limit_orders_get.order_id': limitOrderId,
    'limit_orders_cancel.order_id': limitOrderId,
    task_id: body.task_id,
    position_id: body.result.position_id,
    order_id,
    quote_id: swap.quote.quote_id,
    'predmkt_order.quote_id': prediction.quote_id,
    change_id: await raiseLimit(agent.userId),
    recipient_id: await allowRecipient(agent.userId),
    webhook_id: webhook.webhook_id,
    approval_id: await waitingApproval(agent),
  }
}

/** A draft with one run of it, and one of day trades. */
async function createSchedule(agent: Person): Promise<Record<string, string>> {
  const headers = bearer(agent)
  const { body } = await http<{ schedule_id: string }>(`${gateway.url}/schedule_chat`, {
    method: 'POST',
    body: validBodies.schedules_create,
    headers,
  })
  const { schedule_id } = body
  const run = await http<{ task_id: string }>(`${gateway.url}/schedule-chat/schedule/${schedule_id}/run`, {
    method: 'POST',
    headers,
  })
  assert.ok(run.body.task_id, JSON.stringify(run.body))
  const { task_id: runId } = run.body
  await eventually(async () => {
    const { body: children } = await http<{ items: object[] }>(
      `${gateway.url}/v1/tasks?parent_task_id=${runId}`,
      { headers },
    )
    return children.items.length > 0 || undefined
  }, 'the chat of the run')
  const dayTrades = await http<{ schedule_id: string }>(`${gateway.url}/schedule_chat`, {
    method: 'POST',
    body: { type: 'day_trade_farming', config: { asset: 'BTC', order_notional_usd: '200' } },
    headers,
  })
  assert.equal(dayTrades.status, 200, JSON.stringify(dayTrades.body))
  return {
    schedule_id,
    execution_id: runId,
    parent_task_id: runId,
    'schedules_day_trade_farming.schedule_id': dayTrades.body.schedule_id,
    'schedules_set_day_trade_farming.schedule_id': dayTrades.body.schedule_id,
  }
}

/** Nobody decides for the owner, who has a key pair, so that no request of theirs waits. */
async function waitingApproval({ userId, agentId }: { userId: string; agentId: string }): Promise<string> {
  const id = randomUUID()
  await rows.db.query(
    `insert into approval values ($1, $2, $3, 'earn_deposit', $4, '{}', repeat('0', 64), now(),
      now() + interval '30 minutes', null, null, null)`,
    [randomUUID(), id, userId, agentId],
  )
  return id
}

/** Only a person adds one. */
async function allowRecipient(userId: string): Promise<string> {
  const id = randomUUID()
  await rows.db.query(
    `insert into transfer_recipient values ($1, $2, '8453', '0x70997970C51812dc3A010C7d01b50e0d17dc79C8', 'x',
      'denied', '', now(), now())`,
    [id, userId],
  )
  return id
}

/** Only a person raises a limit, and the owner has a key pair. */
async function raiseLimit(userId: string): Promise<string> {
  const id = randomUUID()
  await rows.db.query(
    `insert into policy_change (change_id, user_id, field, micros, requested_at, effective_at)
      values ($1, $2, 'perDayMicros', 1, now(), now() + interval '1 day')`,
    [id, userId],
  )
  return id
}

/** Far below every price, so that it stays open. */
const limitOrder = {
  chain_id_in: '8453',
  token_in: 'USDC',
  token_out: 'WETH',
  amount: '1000000',
  price_usd_trigger: '1',
  condition: 'lte',
}

/** Bodies of operations that look for the object only once the rest of the request is valid. */
const validBodies: Record<string, object> = {
  webhooks_replay: { after: '0' },
  schedules_create: { query: 'what do i hold', schedule: 'every Monday at 09:00' },
  recipients_add: {
    chain_id: '8453',
    address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    label: 'Cold wallet',
  },
  swap_execute: { chain_id_in: '8453', token_in: 'USDC', token_out: 'WETH', amount: '1000000' },
}

const ask = (known: KnownOperation, authorization: string | undefined): Promise<HttpReply> => {
  cells++
  return client.send(requestOf(known, minimalRequest(known.entry), authorization))
}

type Refusal = { status: number; code: string }
type Credential = { what: string; authorization: string | undefined; refusal: Refusal }

/** Every kind of invalid credential, with its expected answer. */
async function badCredentials(): Promise<Credential[]> {
  const unauthorized = { status: 401, code: 'unauthorized' }
  const invalid = { status: 401, code: 'invalid_token' }
  const good = await rows.token(owner.userId)
  const past = new Date(Date.now() - 1_000)
  const expired = await rows.token(owner.userId, { expiresAt: past })
  const revoked = await rows.token(owner.userId)
  await rows.db.query('delete from access_token where hash = $1', [hashOf(revoked)])
  const suspended = await person()
  const ofSuspended = await rows.token(suspended.userId)
  await rows.suspend(suspended.userId)
  testFunding.excludeUser(suspended.agentId, 'a suspended user reads nothing')
  const jwt = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"x"}').toString('base64url')}.`
  return [
    { what: 'none', authorization: undefined, refusal: unauthorized },
    { what: 'empty', authorization: '', refusal: unauthorized },
    { what: 'a scheme alone', authorization: 'Bearer', refusal: unauthorized },
    { what: 'the token alone', authorization: good, refusal: unauthorized },
    {
      what: 'Basic',
      authorization: `Basic ${Buffer.from(`x:${good}`).toString('base64')}`,
      refusal: unauthorized,
    },
    { what: 'another scheme', authorization: `Token ${good}`, refusal: unauthorized },
    { what: 'two tokens', authorization: `Bearer ${good} ${good}`, refusal: unauthorized },
    { what: 'garbage', authorization: 'Bearer garbage', refusal: invalid },
    { what: 'an unsigned JWT', authorization: `Bearer ${jwt}`, refusal: invalid },
    {
      what: 'a token that was never issued',
      authorization: `Bearer ${rows.unknownToken()}`,
      refusal: invalid,
    },
    { what: 'a token cut short', authorization: `Bearer ${good.slice(0, -1)}`, refusal: invalid },
    { what: 'a token with additional characters', authorization: `Bearer ${good}A`, refusal: invalid },
    { what: 'a token in capitals', authorization: `Bearer ${good.toUpperCase()}`, refusal: invalid },
    { what: 'an expired token', authorization: `Bearer ${expired}`, refusal: invalid },
    { what: 'a revoked token', authorization: `Bearer ${revoked}`, refusal: invalid },
    { what: 'an agent id', authorization: `Bearer ${owner.agentId}`, refusal: invalid },
    {
      what: 'a suspended user',
      authorization: `Bearer ${ofSuspended}`,
      refusal: { status: 403, code: 'suspended' },
    },
  ]
}

const isCredentialRefusal = (got: HttpReply): boolean =>
  got.status >= 400 &&
  ['unauthorized', 'invalid_token', 'suspended', 'insufficient_scope'].includes(String(codeOf(got)))

test('an entry without a declared access does not pass the type check', () => {
  const bare = { summary: 'Nothing', output: OpenObject }
  // @ts-expect-error: `access` is missing
  const reading = read('GET /v1/nothing', bare)
  // @ts-expect-error: `access` is missing
  const moving = task('POST /v1/nothing', { ...bare, waitSeconds: 60 })
  // @ts-expect-error: an access that no token can have
  const odd = read('GET /v1/nothing', { ...bare, access: 'root' })
  assert.equal(
    Object.keys(group('nothing', 'Operations of a test.', { reading, moving, odd }).entries).length,
    3,
  )
})

test('the running gateway serves exactly the operations of the contracts', async () => {
  const { body } = await http<{ paths: Parameters<typeof served>[0] }>(`${gateway.url}/openapi.json`)
  assert.deepEqual(served(body.paths).sort(), (await operations()).map(declared).sort())
})

test('every operation rejects an invalid credential, with the same text', async () => {
  const challenge = `Bearer resource_metadata="${gateway.url}/.well-known/oauth-protected-resource"`
  const credentials = await badCredentials()
  const guarded = all.filter(({ entry }) => entry.access !== 'public')
  const pairs = guarded.flatMap((known) => credentials.map((credential) => ({ known, credential })))
  await runConcurrently(pairs, 8, async ({ known, credential: { what, authorization, refusal } }) => {
    const got = await ask(known, authorization)
    const reply = `${known.name} with ${what}`
    const body = assertErrorForm(got, reply)
    // The key of a backend is another header, so no bearer token is one.
    const expected = known.entry.access === 'backend' ? { status: 401, code: 'unauthorized' } : refusal
    assert.deepEqual({ status: got.status, code: body.code }, expected, `${reply}: ${got.text}`)
    assert.equal(got.headers['www-authenticate'], expected.status === 401 ? challenge : undefined, reply)
  })
})

test('HEAD requires the same credential as GET', async () => {
  const readable = all.filter(({ entry }) => entry.method === 'GET' && entry.access !== 'public')
  assert.ok(readable.length >= 10)
  for (const known of readable) {
    cells++
    const { headers, path } = requestOf(known, minimalRequest(known.entry), 'Bearer garbage')
    const got = await client.send({ method: 'HEAD', path, ...(headers && { headers }) })
    // A stream has no HEAD at all.
    assert.equal(got.status, known.entry.kind === 'stream' ? 405 : 401, known.name)
    assert.equal(got.text, '')
  }
})

test('a public operation answers alike with and without any credential', async () => {
  const credentials = await badCredentials()
  const open = all.filter(({ entry }) => entry.access === 'public')
  assert.ok(open.length >= 7)
  const pairs = open.flatMap((known) => credentials.map((credential) => ({ known, credential })))
  await runConcurrently(pairs, 8, async ({ known, credential: { what, authorization } }) => {
    const got = await ask(known, authorization)
    assert.ok(!isCredentialRefusal(got), `${known.name} with ${what}: ${got.status} ${got.text}`)
    assert.equal(got.headers['www-authenticate'], undefined)
    if (known.entry.method === 'GET') assert.equal(got.status, 200, `${known.name}: ${got.text}`)
  })
})

test('a credential counts in its header alone', async () => {
  const token = await rows.token(owner.userId)
  for (const known of all.filter(({ entry }) => entry.access !== 'public')) {
    const { path, headers = {}, ...plain } = requestOf(known, minimalRequest(known.entry), undefined)
    const more = path.includes('?') ? '&' : '?'
    const elsewhere: HttpRequest[] = [
      {
        ...plain,
        headers,
        path: `${path}${more}access_token=${token}&token=${token}&authorization=Bearer%20${token}`,
      },
      { ...plain, path, headers: { ...headers, cookie: `token=${token}; access_token=${token}` } },
      { ...plain, path, headers: { ...headers, 'x-api-key': token, 'x-authorization': `Bearer ${token}` } },
      { ...plain, path, headers: { ...headers, 'x-user-id': owner.userId, 'x-agent-id': owner.agentId } },
    ]
    for (const request of elsewhere) {
      cells++
      const got = await client.send(request)
      assert.equal(got.status, 401, `${known.name} ${JSON.stringify(request)} ${got.text}`)
      assert.equal(assertErrorForm(got).code, 'unauthorized')
    }
  }
})

test('a token reaches the operations of its scopes and no others', async () => {
  const only = new Map<Scope, string>()
  const but = new Map<Scope, string>()
  for (const scope of scopes) {
    only.set(scope, await rows.token(stranger.userId, { scopes: [scope] }))
    but.set(scope, await rows.token(stranger.userId, { scopes: scopes.filter((each) => each !== scope) }))
  }
  const none = await rows.token(stranger.userId, { scopes: [] })
  // Last, because it revokes its own token.
  const endsToken = ({ name }: KnownOperation) => Number(name === 'auth_revoke')
  for (const known of all.toSorted((a, b) => endsToken(a) - endsToken(b))) {
    const { access } = known.entry
    if (!isScope(access)) continue
    const lacking = [none, but.get(access)!, ...scopes.filter((s) => s !== access).map((s) => only.get(s)!)]
    for (const token of lacking) {
      const got = await ask(known, `Bearer ${token}`)
      const body = assertErrorForm(got, known.name)
      assert.deepEqual([got.status, body.code, body.scope], [403, 'insufficient_scope', access], known.name)
      assert.equal(got.headers['www-authenticate'], undefined, known.name)
    }
    const got = await ask(known, `bearer   ${only.get(access)}`)
    assert.ok(!isCredentialRefusal(got), `${known.name}: ${got.status} ${got.text}`)
    if (known.entry.method !== 'GET' || known.entry.path.includes('{')) continue
    // Only an account at the venue has open orders.
    const isOfAccount = known.name === 'predmkt_open_orders'
    assert.equal(got.status, isOfAccount ? 409 : 200, `${known.name}: ${got.text}`)
  }
})

const absentId = '01890000-0000-7000-8000-000000000000'
/** Ids that are not objects of a user: they identify the caller, or a part of the world. */
const notObjects = new Set([
  // A list of ids answers which of them it has not found.
  'outstanding_order_ids',
  'schedule_ids',
  'schedules_disable.schedule_id',
  'agent_id',
  'user_id',
  'application_id',
  'chain_id',
  'source_chain_id',
  'destination_chain_id',
  // A label of the caller's own.
  'client_order_id',
  // One of three that everybody may buy.
  'pack_id',
  // A plan that everybody may buy, and a label of the caller's own.
  'price_id',
  'client_intent_id',
  // Markets and their outcomes, which everybody may trade.
  'outcome_id',
  'token_id',
  'condition_id',
  'market_id',
  // The result of the cancel names what it has not cancelled.
  'predmkt_cancel.order_id',
  'predmkt_cancel.order_ids',
])

/** An id of the same form that does not exist. */
const similarId = (id: string): string => id.replace(/.$/, (last) => (last === '0' ? '1' : '0'))

/** An agent that the caller decides for is an object of the caller, under this name or as the id of one. */
const isObject = (name: string, field: string): boolean =>
  field === 'for_agent' ||
  `${name}.${field}` === 'agents_unlink.agent_id' ||
  (/_ids?$/.test(field) && !notObjects.has(field) && !notObjects.has(`${name}.${field}`))
/** Their ids have a form of their own. */
const namesAgent = ({ field }: IdField): boolean => ['for_agent', 'agent_id'].includes(field)

/** Orders at a venue and limit orders have ids of the same name. */
const ownedBy = ({ known, field }: IdField): string | undefined =>
  owned[`${known.name}.${field}`] ?? owned[field]

type IdField = { known: KnownOperation; part: 'params' | 'query' | 'body'; field: string }

function idFieldsOf(): IdField[] {
  return all.flatMap((known) =>
    (['params', 'query', 'body'] as const).flatMap((part) => {
      const schema = known.entry[part] as { properties?: object } | undefined
      const names = Object.keys(schema?.properties ?? {}).filter((name) => isObject(known.name, name))
      return names.map((field) => ({ known, part, field }))
    }),
  )
}

/** Beside the name of an agent: something that this agent has. */
const paramsBeside = ({ known, field }: IdField): object =>
  field === 'for_agent' && known.name === 'tasks_get' ? { task_id: owned['the task of the agent'] } : {}

const requestNaming = (idField: IdField, id: string, token: string): HttpRequest => {
  const { known, part, field } = idField
  const minimal = minimalRequest(known.entry)
  const body = minimal.body && { ...minimal.body, ...validBodies[known.name] }
  const given = { ...minimal, body, params: { ...minimal.params, ...paramsBeside(idField) } }
  return requestOf(known, { ...given, [part]: { ...given[part], [field]: id } }, `Bearer ${token}`)
}

/** The same request as a tool of MCP. */
const toolRequestNaming = (idField: IdField, id: string, token: string): HttpRequest => ({
  method: 'POST',
  path: '/mcp',
  headers: {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2025-11-25',
  },
  body: JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: idField.known.name,
      arguments: {
        ...minimalInput(idField.known.entry),
        ...validBodies[idField.known.name],
        ...paramsBeside(idField),
        [idField.field]: id,
      },
    },
  }),
})

/** Reads an answer of MCP, which may be a stream, to its end. */
async function streamed({ method, path, headers, body }: HttpRequest): Promise<HttpReply> {
  const init = { method, headers: headers as Record<string, string>, body: String(body) }
  const reply = await fetch(gateway.url + path, init)
  return { status: reply.status, headers: Object.fromEntries(reply.headers), text: await reply.text(), ms: 0 }
}

/** The same request id makes the whole answer comparable, headers included. */
async function bytes(request: HttpRequest): Promise<string> {
  const headers = { ...request.headers, 'x-request-id': 'the-same-request-id' }
  const got = await (request.path === '/mcp' ? streamed : client.send)({ ...request, headers })
  const { date: _, 'content-length': __, ...comparable } = got.headers
  return JSON.stringify([got.status, comparable, got.text])
}

/** An event of the reader may come between two readings; a real difference is in every pair. */
async function settledPair(
  read: (id: string) => Promise<string>,
  foreign: string,
  absent: string,
): Promise<[string, string]> {
  for (let left = 3; ; left--) {
    const pair: [string, string] = [await read(foreign), await read(absent)]
    if (pair[0] === pair[1] || left === 0) return pair
  }
}

type Reader = { what: string; token: string }

/** Somebody of each scheme to whom nothing of the owner belongs; the person has an agent of their own. */
async function strangers(): Promise<Reader[]> {
  const { token } = await signedInPerson(gateway)
  await acknowledge(bearer({ token }))
  return [
    { what: 'a key pair', token: await rows.token(stranger.userId) },
    { what: 'a person', token },
  ]
}

/** A person decides for the agent; returns a token of the person. */
async function linkAgent(): Promise<string> {
  const decider = await signedInPerson(gateway)
  const agent = await person()
  const { body } = await http<{ code: string }>(`${gateway.url}/v1/agents/link-codes`, {
    method: 'POST',
    headers: bearer(agent),
    body: signedAct(agent, 'agents_link_code'),
  })
  const linked = await decider.call('POST /v1/agents', { body: { code: body.code } })
  assert.equal(linked.status, 200, JSON.stringify(linked.body))
  const { items } = (
    await decider.call<{ items: { task_id: string }[] }>(`GET /v1/tasks?for_agent=${agent.agentId}`)
  ).body
  Object.assign(owned, {
    for_agent: agent.agentId,
    'agents_unlink.agent_id': agent.agentId,
    'the task of the agent': items[0]!.task_id,
  })
  return decider.token
}

test("another user's object is answered exactly like an absent one", async () => {
  const decider = await linkAgent()
  const idFields = idFieldsOf()
  assert.ok(idFields.length >= 20, String(idFields.map(({ known, field }) => `${known.name}.${field}`)))
  const own = await rows.token(owner.userId)
  const readers = await strangers()
  for (const idField of idFields) {
    const id = ownedBy(idField)
    assert.ok(id, `${idField.known.name}: the matrix has no object for ${idField.field}`)
    for (const { what, token } of readers) {
      const reply = `${idField.known.name}.${idField.field} by ${what}`
      for (const request of [requestNaming, toolRequestNaming]) {
        const read = (wanted: string) => bytes(request(idField, wanted, token))
        for (const absent of namesAgent(idField) ? [similarId(id)] : [absentId, similarId(id)]) {
          cells++
          assert.equal(...(await settledPair(read, id, absent)), reply)
        }
      }
      const [status, , text] = JSON.parse(await bytes(requestNaming(idField, id, token))) as Answered
      cells++
      // A list is empty; a key pair learns first that only a person who has just signed in may.
      const isPeoples = text.includes('step_up_required')
      const expected = isPeoples ? 403 : idField.part === 'query' && !namesAgent(idField) ? 200 : 404
      assert.equal(status, expected, `${reply}: ${text}`)
      assert.ok(!isPeoples || what === 'a key pair', `${reply}: ${text}`)
      const [, , shown] = JSON.parse(await bytes(toolRequestNaming(idField, id, token))) as Answered
      if (expected !== 200)
        assert.match(shown, new RegExp(`\\\\"status\\\\":${expected}`), `${reply}: ${shown}`)
    }
    if (idField.known.entry.kind !== 'read') continue
    // Without this the comparison above proves nothing: the owner does see it, be it as an empty list of its parts.
    const shown = await client.send(requestNaming(idField, id, namesAgent(idField) ? decider : own))
    const isShown =
      shown.status === 200 && (idField.part === 'params' || namesAgent(idField) || shown.text.includes(id))
    assert.ok(isShown, `${idField.known.name}.${idField.field}: ${shown.status} ${shown.text}`)
  }
})
type Answered = [status: number, headers: object, text: string]

test("a request for another user's object takes as long as for an absent one", async () => {
  if (!owned.for_agent) await linkAgent()
  const readers = await strangers()
  const rounds = 40
  // Other work on the machine only adds time, so the fastest quarter is the time of the code.
  const quartile = (list: number[]) => list.sort((a, b) => a - b)[rounds >> 2]!
  const compared = async (idField: IdField, reader: Reader): Promise<{ differ: boolean; reply: string }> => {
    const foreign: number[] = []
    const absent: number[] = []
    const msOf = async (id: string) => (await client.send(requestNaming(idField, id, reader.token))).ms
    for (let round = 0; round < rounds; round++) {
      foreign.push(await msOf(ownedBy(idField)!))
      absent.push(await msOf(similarId(ownedBy(idField)!)))
    }
    const [a, b] = [quartile(foreign), quartile(absent)]
    const reply = `${idField.known.name}.${idField.field} by ${reader.what}: ${a} ms against ${b} ms`
    return { differ: Math.abs(a - b) > Math.max(1.5, 0.5 * Math.min(a, b)), reply }
  }
  for (const idField of idFieldsOf().filter((each) => each.part !== 'query' || namesAgent(each)))
    for (const reader of readers) {
      let last = await compared(idField, reader)
      // Slow code is slow each time; the load of the machine differs.
      for (let again = 0; again < 3 && last.differ; again++) last = await compared(idField, reader)
      assert.ok(!last.differ, last.reply)
    }
})

test('the requests of the other user changed nothing for the owner', async () => {
  for (const { token } of await strangers())
    for (const wanted of [{ schedule_ids: [owned.schedule_id] }, { all: true }]) {
      const ended = await client.send({
        method: 'PUT',
        path: '/disable_schedule_chats',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(wanted),
      })
      assert.deepEqual(jsonOf(ended).disabled, [], ended.text)
    }
  const own = await rows.token(owner.userId)
  const read = async (path: string) =>
    jsonOf(await client.send({ method: 'GET', path, headers: { authorization: `Bearer ${own}` } }))
  const task = await read(`/v1/tasks/${owned.task_id}`)
  assert.equal(task.status, 'completed')
  assert.equal((await read(`/schedule-chat/schedule/${owned.schedule_id}`)).status, 'draft')
  const { positions } = (await read('/v1/earn/positions')) as { positions: { id: string; status: string }[] }
  assert.deepEqual(
    positions.map(({ id, status }) => [id, status]),
    [[owned.position_id, 'active']],
  )
})

test('a revoked or expired token is invalid although it was in use', async () => {
  const use = async (token: string) =>
    (await client.send({ method: 'GET', path: '/v1/credits', headers: { authorization: `Bearer ${token}` } }))
      .status
  const shortLived = await rows.token(owner.userId, { expiresAt: new Date(Date.now() + 1_500) })
  const revoked = await rows.token(owner.userId)
  assert.deepEqual([await use(shortLived), await use(revoked)], [200, 200])
  await rows.db.query('delete from access_token where hash = $1', [hashOf(revoked)])
  await rows.db.query("select pg_notify('portico_wake', $1)", [
    `elsewhere,r:${hashOf(revoked).toString('hex')}`,
  ])
  const dead = async (token: string) => ((await use(token)) === 401 ? true : undefined)
  await eventually(() => dead(revoked), 'the end of the revoked token', 20_000)
  await eventually(() => dead(shortLived), 'the end of the brief token', 20_000)
})
