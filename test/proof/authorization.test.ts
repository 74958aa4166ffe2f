/**
 * Authorization of every operation, generated from the contracts. A new operation is covered without being listed
 * anywhere.
 */

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Scope, scopes } from '#kernel/caller.ts'
import { group, isForPeople, read, task } from '#kernel/operation.ts'
import { OpenObject } from '#kernel/wire-types.ts'
import { type Agent, bearer, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
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
import { type MinimalRequest, minimalRequest, pathOf } from './support/minimal-request.ts'
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
  return {
    'limit_orders_get.order_id': limitOrderId,
    'limit_orders_cancel.order_id': limitOrderId,
    task_id: body.task_id,
    position_id: body.result.position_id,
    order_id,
    quote_id: swap.quote.quote_id,
  }
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
  swap_execute: { chain_id_in: '8453', token_in: 'USDC', token_out: 'WETH', amount: '1000000' },
}

function requestOf(
  { entry }: KnownOperation,
  minimal: MinimalRequest,
  authorization: string | undefined,
): HttpRequest {
  const { method } = entry
  const hasBody = minimal.body !== undefined
  return {
    method,
    path: pathOf(entry, minimal),
    headers: {
      ...(authorization !== undefined && { authorization }),
      ...(hasBody && { 'content-type': 'application/json' }),
    },
    ...(hasBody && { body: JSON.stringify(minimal.body) }),
  }
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
  assert.equal(Object.keys(group('nothing', { reading, moving, odd }).entries).length, 3)
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
    assert.deepEqual({ status: got.status, code: body.code }, refusal, `${reply}: ${got.text}`)
    assert.equal(got.headers['www-authenticate'], refusal.status === 401 ? challenge : undefined, reply)
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
    if (access === 'public' || isForPeople(access)) continue
    const lacking = [none, but.get(access)!, ...scopes.filter((s) => s !== access).map((s) => only.get(s)!)]
    for (const token of lacking) {
      const got = await ask(known, `Bearer ${token}`)
      const body = assertErrorForm(got, known.name)
      assert.deepEqual([got.status, body.code, body.scope], [403, 'insufficient_scope', access], known.name)
      assert.equal(got.headers['www-authenticate'], undefined, known.name)
    }
    const got = await ask(known, `bearer   ${only.get(access)}`)
    assert.ok(!isCredentialRefusal(got), `${known.name}: ${got.status} ${got.text}`)
    if (known.entry.method === 'GET' && !known.entry.path.includes('{'))
      assert.equal(got.status, 200, known.name)
  }
})

const absentId = '01890000-0000-7000-8000-000000000000'
/** Ids that are not objects of a user: they identify the caller, or a part of the world. */
const notObjects = new Set([
  // A list of ids answers which of them it has not found.
  'outstanding_order_ids',
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
])

/** An id of the same form that does not exist. */
const similarId = (id: string): string => id.replace(/.$/, (last) => (last === '0' ? '1' : '0'))

/** Orders at a venue and limit orders have ids of the same name. */
const ownedBy = ({ known, field }: IdField): string | undefined =>
  owned[`${known.name}.${field}`] ?? owned[field]

type IdField = { known: KnownOperation; part: 'params' | 'query' | 'body'; field: string }

function idFieldsOf(): IdField[] {
  return all.flatMap((known) =>
    (['params', 'query', 'body'] as const).flatMap((part) => {
      const schema = known.entry[part] as { properties?: object } | undefined
      const names = Object.keys(schema?.properties ?? {}).filter(
        (name) => /_ids?$/.test(name) && !notObjects.has(name),
      )
      return names.map((field) => ({ known, part, field }))
    }),
  )
}

const requestNaming = ({ known, part, field }: IdField, id: string, token: string): HttpRequest => {
  const minimal = minimalRequest(known.entry)
  const named = { ...minimal[part], ...(part === 'body' && validBodies[known.name]), [field]: id }
  return requestOf(known, { ...minimal, [part]: named }, `Bearer ${token}`)
}

/** The same request id makes the whole answer comparable, headers included. */
async function bytes(request: HttpRequest): Promise<string> {
  const headers = { ...request.headers, 'x-request-id': 'the-same-request-id' }
  const got = await client.send({ ...request, headers })
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

test("another user's object is answered exactly like an absent one", async () => {
  const idFields = idFieldsOf()
  assert.ok(idFields.length >= 6, String(idFields.map(({ known, field }) => `${known.name}.${field}`)))
  const token = await rows.token(stranger.userId)
  const own = await rows.token(owner.userId)
  for (const idField of idFields) {
    const id = ownedBy(idField)
    assert.ok(id, `${idField.known.name}: the matrix has no object for ${idField.field}`)
    const reply = `${idField.known.name}.${idField.field}`
    const read = (wanted: string) => bytes(requestNaming(idField, wanted, token))
    for (const absent of [absentId, similarId(id)]) {
      cells++
      assert.equal(...(await settledPair(read, id, absent)), reply)
    }
    const foreign = await read(id)
    cells++
    const [status] = JSON.parse(foreign) as [number]
    assert.equal(status, idField.part === 'query' ? 200 : 404, `${reply}: ${foreign}`)
    if (idField.known.entry.kind !== 'read') continue
    // Without this the comparison above proves nothing: the owner does see it.
    const shown = await client.send(requestNaming(idField, id, own))
    assert.ok(shown.status === 200 && shown.text.includes(id), `${reply}: ${shown.status} ${shown.text}`)
  }
})

test("a request for another user's object takes as long as for an absent one", async () => {
  const token = await rows.token(stranger.userId)
  const rounds = 40
  // Other work on the machine only adds time, so the fastest quarter is the time of the code.
  const quartile = (list: number[]) => list.sort((a, b) => a - b)[rounds >> 2]!
  const compared = async (idField: IdField): Promise<{ differ: boolean; reply: string }> => {
    const foreign: number[] = []
    const absent: number[] = []
    for (let round = 0; round < rounds; round++) {
      foreign.push((await client.send(requestNaming(idField, ownedBy(idField)!, token))).ms)
      absent.push((await client.send(requestNaming(idField, similarId(ownedBy(idField)!), token))).ms)
    }
    const [a, b] = [quartile(foreign), quartile(absent)]
    const reply = `${idField.known.name}: ${a} ms against ${b} ms`
    return { differ: Math.abs(a - b) > Math.max(1.5, 0.5 * Math.min(a, b)), reply }
  }
  for (const idField of idFieldsOf().filter(({ part }) => part !== 'query')) {
    let last = await compared(idField)
    // Slow code is slow each time; the load of the machine differs.
    for (let again = 0; again < 3 && last.differ; again++) last = await compared(idField)
    assert.ok(!last.differ, last.reply)
  }
})

test('the requests of the other user changed nothing for the owner', async () => {
  const own = await rows.token(owner.userId)
  const read = async (path: string) =>
    jsonOf(await client.send({ method: 'GET', path, headers: { authorization: `Bearer ${own}` } }))
  const task = await read(`/v1/tasks/${owned.task_id}`)
  assert.equal(task.status, 'completed')
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
  await eventually(() => dead(revoked), 'the end of the revoked token', 1_000)
  await eventually(() => dead(shortLived), 'the end of the brief token', 3_000)
})
