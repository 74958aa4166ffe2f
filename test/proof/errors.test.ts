/** One provoking request for every code that the operations can answer; all errors in one form. */
import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { type FaultCode, faults } from '#kernel/contract/fault.ts'
import { addBackend, leaveCredits } from '../harness/backend.ts'
import { testDatabase } from '../harness/cluster.ts'
import { testFunding } from '../harness/conservation.ts'
import {
  type Agent,
  bearer,
  dataFolder,
  eventually,
  type Gateway,
  http,
  launch,
  newAgent,
} from '../harness/gateway.ts'
import { operationsOf } from './support/contracts.ts'
import { type DatabaseProxy, databaseProxy } from './support/database-proxy.ts'
import { assertErrorForm, codeOf, jsonOf } from './support/error-forms.ts'
import { createHttpClient, type HttpClient, type HttpReply, type HttpRequest } from './support/http-client.ts'
import { type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import { createMoneyAudit } from './support/money-audit.ts'
import { unlimitedRates } from './support/unlimited.ts'
import { assertUnreachableDatabase } from './support/unreachable-database.ts'

const streamsMax = 3

const parts = new AsyncDisposableStack()
let gateway: Gateway
let world: string
let proxy: DatabaseProxy
let client: HttpClient
let rows: IdentityRecords
let agent: Agent
let paused: Agent
let userId: string
let open: { task_id: string; position_id: string }
let emptied: string
let backendKey: string | undefined
let busy: Agent | undefined

before(async () => {
  const folder = parts.use(dataFolder())
  const database = parts.use(await testDatabase())
  proxy = parts.use(await databaseProxy(database.url))
  const env = {
    ...unlimitedRates,
    RATE_STREAM: String(streamsMax),
    DATA_DIR: folder.path,
    DATABASE_URL: proxy.url,
  }
  gateway = parts.use(await launch({ env }))
  world = gateway.lines.find((line) => line.startsWith('world '))!.split(/\s+/)[1]!
  client = parts.use(createHttpClient(gateway.url))
  rows = parts.use(await openIdentityRecords(database.url))
  agent = await newAgent(gateway.url)
  paused = await newAgent(gateway.url)
  userId = (await http<{ user_id: string }>(`${gateway.url}/v1/user`, { headers: bearer(agent) })).body
    .user_id
  const money = await createMoneyAudit({ url: gateway.url, world }, agent)
  open = await money.start()
  emptied = (await money.start({ again: true })).position_id
  const left = await post('/v1/earn/withdraw?wait=true', { position_id: emptied })
  assert.equal(jsonOf(left).status, 'completed', left.text)
  await post('/v1/kill', { on: true }, bearer(paused))
})
after(() => parts.disposeAsync())

type Headers = Record<string, string>
const json = { 'content-type': 'application/json' }

const get = (path: string, headers: Headers = bearer(agent)): Promise<HttpReply> =>
  client.send({ method: 'GET', path, headers })
const post = (path: string, body: unknown, headers: Headers = bearer(agent)): Promise<HttpReply> =>
  client.send({ method: 'POST', path, headers: { ...json, ...headers }, body: JSON.stringify(body) })

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const now = () => Math.floor(Date.now() / 1000)
const anySignature = base64(Buffer.alloc(64, 7))

function signedIn(timestamp: number): object {
  const signature = base64(sign(null, Buffer.from(`${agent.agentId}${timestamp}`), agent.privateKey))
  return { agent_id: agent.agentId, timestamp, signature }
}

async function conflicting(headers: Headers): Promise<HttpReply> {
  const key = { 'idempotency-key': 'one-key-for-two-requests' }
  await client.send({
    method: 'PUT',
    path: '/v1/policy',
    headers: { ...json, ...bearer(agent), ...key },
    body: '{}',
  })
  return post('/v1/kill', { on: false }, { ...headers, ...key })
}

/** Changes the world, sends the request, and restores the world. */
async function withWorldChange(
  change: [string, object],
  undo: [string, object],
  send: () => Promise<HttpReply>,
): Promise<HttpReply> {
  const postControl = async ([path, body]: [string, object]) => {
    const { status, body: answer } = await http(`${world}${path}`, { method: 'POST', body })
    assert.equal(status, 200, JSON.stringify(answer))
  }
  await postControl(change)
  try {
    return await send()
  } finally {
    await postControl(undo)
  }
}

const image = async (user: string, headers: Headers): Promise<HttpReply> => {
  backendKey ??= await addBackend(rows.db)
  const body = { user, query: 'a coin', image_size: '256x256' }
  return post('/chat/image/', body, { ...headers, 'x-backend-key': backendKey })
}

/** Changes the image service for the time of one request. */
async function withImageSettings(settings: object, send: () => Promise<HttpReply>): Promise<HttpReply> {
  const put = await http(`${world}/images/settings`, { method: 'PUT', body: settings })
  assert.equal(put.status, 200, JSON.stringify(put.body))
  try {
    return await send()
  } finally {
    await http(`${world}/images/settings`, { method: 'DELETE' })
  }
}

/** Changes the venue as its clients see it for the time of one request. */
async function withVenueFailure(fault: object, send: () => Promise<HttpReply>): Promise<HttpReply> {
  const postControl = async (method: string, body: object) => {
    const { status, body: answer } = await http(`${world}/faults`, { method, body })
    assert.equal(status, 200, JSON.stringify(answer))
  }
  await postControl('PUT', { target: 'hyperliquid', ...fault })
  try {
    return await send()
  } finally {
    await postControl('DELETE', { target: 'hyperliquid' })
  }
}

let ended: Promise<string> | undefined
/** An order at the venue that was cancelled already. */
const endedOrder = (): Promise<string> => {
  const made = async (): Promise<string> => {
    const perp = async (path: string, body: object) => {
      const answer = jsonOf(await post(`/v1/perp/${path}?wait=true`, body))
      assert.equal(answer.status, 'completed', JSON.stringify(answer))
      return answer.result as { order_id: string }
    }
    await perp('setup', {})
    await perp('fund', { amount_usd: '50' })
    const limit = { order_type: 'limit', limit_price: '1000', size: '0.02' }
    const { order_id } = await perp('open', { asset: 'ETH', side: 'long', ...limit })
    await perp('orders/cancel', { order_id })
    return order_id
  }
  ended ??= made()
  return ended
}
const long = { asset: 'BTC', side: 'long', size: '0.01' }
const swap = { chain_id_in: '8453', token_in: 'USDC', token_out: 'WETH', amount: '1000000' }
/** The third token of strangers in the local world takes a quarter of each sale. */
const taxedToken = `0x70ce${'3'.padStart(36, '0')}`

type SendFailing = (headers: Headers) => Promise<HttpReply>
const own = (headers: Headers): Headers => ({ ...bearer(agent), ...headers })

const failingRequests: Partial<Record<FaultCode, SendFailing>> = {
  validation: (headers) => post('/v1/earn/deposit', {}, own(headers)),
  unauthorized: (headers) => get('/v1/user', headers),
  invalid_token: (headers) => get('/v1/user', { ...headers, authorization: `Bearer ${rows.unknownToken()}` }),
  invalid_signature: (headers) =>
    post('/v1/auth/token', { agent_id: agent.agentId, timestamp: now(), signature: anySignature }, headers),
  stale_timestamp: (headers) => post('/v1/auth/token', signedIn(now() - 1_000), headers),
  signature_replayed: async (headers) => {
    const signed = signedIn(now() - 7)
    await post('/v1/auth/token', signed, {})
    return post('/v1/auth/token', signed, headers)
  },
  invalid_challenge: (headers) =>
    post('/v1/auth/verify', { nonce: crypto.randomUUID(), signature: anySignature }, headers),
  bad_request: (headers) => get('/v1/tasks/%zz', own(headers)),
  policy_denied: (headers) => post('/v1/earn/deposit', { amount_usdc: '25000.01' }, own(headers)),
  insufficient_scope: async (headers) => {
    const token = await rows.token(userId, { scopes: ['read'] })
    return post('/v1/kill', { on: false }, { ...headers, authorization: `Bearer ${token}` })
  },
  suspended: async (headers) => {
    const other = await newAgent(gateway.url)
    const { user_id } = jsonOf(await get('/v1/user', bearer(other)))
    const token = await rows.token(String(user_id))
    testFunding.excludeUser(other.agentId, 'a suspended user reads nothing')
    await rows.suspend(String(user_id))
    return get('/v1/user', { ...headers, authorization: `Bearer ${token}` })
  },
  approval_required: async (headers) => {
    const other = await newAgent(gateway.url)
    const lowered = await client.send({
      method: 'PUT',
      path: '/v1/policy',
      headers: { ...json, ...bearer(other) },
      body: '{"approval_above_usd":"0"}',
    })
    assert.equal(lowered.status, 200, lowered.text)
    // The funds of the faucet have to be there: a shortage is refused first.
    return eventually(async () => {
      const reply = await post('/v1/earn/deposit', { amount_usdc: '1' }, { ...headers, ...bearer(other) })
      return codeOf(reply) === 'insufficient_balance' ? undefined : reply
    }, 'the wallet has its first funds')
  },
  overloaded: async (headers) => {
    // An address that never answers keeps the places for test messages, until its connections are cut.
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const made = await post('/v1/webhooks', { url: `http://127.0.0.1:${port}/` }, own({}))
    const { webhook_id: id } = jsonOf(made)
    using crowd = createHttpClient(gateway.url, { sockets: 16 })
    const replies = Array.from({ length: 16 }, () =>
      crowd.send({ method: 'POST', path: `/v1/webhooks/${id}/test`, headers: own(headers) }),
    )
    try {
      return await Promise.any(
        replies.map(async (each) => {
          const reply = await each
          assert.equal(codeOf(reply), 'overloaded', reply.text)
          return reply
        }),
      )
    } finally {
      silent.closeAllConnections()
      silent.close()
      const cutting = setInterval(() => silent.closeAllConnections(), 20)
      await Promise.allSettled(replies)
      clearInterval(cutting)
      await client.send({ method: 'DELETE', path: `/v1/webhooks/${id}`, headers: own({}) })
    }
  },
  step_up_required: (headers) =>
    client.send({
      method: 'PUT',
      path: '/v1/policy',
      headers: { ...json, ...own(headers) },
      body: '{"chat_per_day_usd":"5"}',
    }),
  trading_paused: (headers) =>
    post('/v1/earn/deposit', { amount_usdc: '1' }, { ...headers, ...bearer(paused) }),
  not_found: (headers) => get('/v1/tasks/absent', own(headers)),
  method_not_allowed: (headers) =>
    client.send({ method: 'DELETE', path: '/v1/credits', headers: own(headers) }),
  duplicate_key: (headers) => post('/v1/auth/register', { public_key: agent.publicKey }, headers),
  idempotency_conflict: (headers) => conflicting(own(headers)),
  insufficient_balance: (headers) => post('/v1/earn/deposit', { amount_usdc: '20000' }, own(headers)),
  insufficient_credits: async (headers) => {
    const poor = await newAgent(gateway.url)
    const { user_id } = jsonOf(await get('/v1/user', bearer(poor)))
    await leaveCredits(rows.db, String(user_id), 0)
    return image(String(user_id), headers)
  },
  upstream_rejected: (headers) => withImageSettings({ rejects: true }, () => image(userId, headers)),
  limit_reached: async (headers) => {
    busy ??= await newAgent(gateway.url)
    const every = { query: 'what do i hold', schedule: 'every Monday at 09:00', status: 'active' }
    return eventually(async () => {
      const reply = await post('/schedule_chat', every, { ...headers, ...bearer(busy!) })
      return reply.status === 200 ? undefined : reply
    }, 'as many schedules as a user may have')
  },
  no_position: (headers) => post('/v1/earn/withdraw', { position_id: emptied }, own(headers)),
  insufficient_liquidity: (headers) =>
    withWorldChange(['/vault', { illiquid: true }], ['/vault', { illiquid: false }], () =>
      post('/v1/earn/withdraw', { position_id: open.position_id, amount_usdc: '1' }, own(headers)),
    ),
  no_route: (headers) =>
    post('/v1/swap', { ...swap, chain_id_out: '42161', token_out: 'USDC', max_fee_bps: 0 }, own(headers)),
  quote_expired: async (headers) => {
    const { quote } = jsonOf(await post('/v1/swap', { ...swap, dryrun: true })) as {
      quote: { quote_id: string }
    }
    await rows.expireQuotes(userId)
    return post('/v1/swap', { ...swap, quote_id: quote.quote_id }, own(headers))
  },
  // Granted: no swap of ours has bought it, so its cost is unknown.
  entry_unknown: async (headers) => {
    const { wallets } = jsonOf(await get('/v1/wallets')) as {
      wallets: { address: string; chain_type: string }[]
    }
    const { address } = wallets.find(({ chain_type }) => chain_type === 'evm')!
    const grant = { chain_id: '8453', address, token: 'DAI', amount: '10' }
    await http(`${world}/faucet/fund`, { method: 'POST', body: grant })
    const stop = { chain_id: '8453', token_address: 'DAI', stop_losses: [{ price_percentage: '0.1' }] }
    return post('/v1/hooks', stop, own(headers))
  },
  token_unsafe: (headers) => post('/v1/swap', { ...swap, token_out: taxedToken }, own(headers)),
  setup_incomplete: (headers) => post('/v1/perp/open', long, { ...headers, ...bearer(paused) }),
  disclaimer_required: (headers) => post('/predmkt/setup', {}, own(headers)),
  venue_restricted: async (headers) => {
    const other = await newAgent(gateway.url)
    const acknowledged = await post('/predmkt/disclaimer/acknowledge', {}, bearer(other))
    assert.equal(acknowledged.status, 200, acknowledged.text)
    const realism = '/venues/polymarket/realism'
    return withWorldChange([realism, { preset: 'geoblocked' }], [realism, { preset: 'quiet' }], () =>
      post('/predmkt/setup', {}, { ...headers, ...bearer(other) }),
    )
  },
  market_closed: (headers) => post('/v1/perp/open', { ...long, asset: 'MATIC' }, own(headers)),
  order_not_cancellable: async (headers) =>
    post('/v1/perp/orders/cancel', { order_id: await endedOrder() }, own(headers)),
  upstream_changed: (headers) =>
    withVenueFailure({ status: 422 }, () => get('/v1/perp/orders', own(headers))),
  upstream_timeout: (headers) =>
    withVenueFailure({ drop_reply: true }, () => get('/v1/perp/orders', own(headers))),
  not_cancellable: (headers) => post(`/v1/tasks/${open.task_id}/cancel`, undefined, own(headers)),
  body_too_large: (headers) => post('/v1/kill', { on: 'x'.repeat(270_000) }, own(headers)),
  unsupported_media_type: (headers) =>
    client.send({
      method: 'POST',
      path: '/v1/kill',
      headers: { ...own(headers), 'content-type': 'text/plain' },
      body: 'x',
    }),
  headers_too_large: (headers) => get('/v1/user', { ...own(headers), 'x-large': 'x'.repeat(17_000) }),
  rate_limited: async (headers) => {
    const before = Array.from({ length: streamsMax }, () => get('/v1/notifications/stream'))
    await Promise.all(before)
    return get('/v1/notifications/stream', own(headers))
  },
  unavailable: (headers) =>
    withWorldChange(['/chains/8453/kill', {}], ['/chains/8453/start', {}], () =>
      post('/v1/earn/deposit', { amount_usdc: '1' }, own(headers)),
    ),
}

/** Codes of the HTTP server itself, which every operation can answer. */
const transportCodes: FaultCode[] = [
  'validation',
  'unauthorized',
  'invalid_token',
  'insufficient_scope',
  'suspended',
  'not_found',
  'method_not_allowed',
  'bad_request',
  'body_too_large',
  'unsupported_media_type',
  'headers_too_large',
  'rate_limited',
  'idempotency_conflict',
  'unavailable',
]
/**
 * A vault that rejects a deposit which the balance covers: the local one never does. A second live strategy of a market needs
 * a first one with its evidence: the journey of the terms of strategies asks for it. Shares at the prediction market need an
 * account with cash there: its journeys ask for them.
 */
const untestedCodes = new Set(['conflict', 'asset_in_use', 'not_resolved', 'shares_not_settled'])

test('a key that a call without a task has used names no task', async () => {
  const refused = await conflicting(own({}))
  assert.equal(codeOf(refused), 'idempotency_conflict', refused.text)
  assert.equal('task_id' in jsonOf(refused), false)
})

test('every code that an operation declares has a request that provokes it', async () => {
  const declared = (await operationsOf(gateway.url)).flatMap(({ entry }) => entry.faults ?? [])
  for (const code of declared) assert.ok(Object.hasOwn(faults, code), code)
  const wanted = new Set<string>([...declared, ...transportCodes].filter((code) => !untestedCodes.has(code)))
  assert.deepEqual(Object.keys(failingRequests).sort(), [...wanted].sort())
})

for (const [code, sendFailing] of Object.entries(failingRequests) as [FaultCode, SendFailing][]) {
  test(`${code} is ${faults[code].status}, flat as documented and as RFC 9457 for clients that accept it`, async () => {
    const plain = await sendFailing({})
    assert.equal(codeOf(plain), code, plain.text)
    assert.equal(plain.status, faults[code].status)
    assert.match(plain.headers['content-type'] ?? '', /^application\/json/)
    assertErrorForm(plain)
    const problem = await sendFailing({ accept: 'application/problem+json' })
    const body = assertErrorForm(problem)
    assert.equal(problem.status, plain.status)
    // Node answers those before it has read the headers.
    if (code === 'headers_too_large') return
    assert.match(problem.headers['content-type'] ?? '', /^application\/problem\+json/)
    assert.equal(body.code, code)
    assert.equal(typeof body.detail, 'string')
  })
}

test('405 names the methods of the path, and 429 the time of the next attempt', async () => {
  const wrong = await failingRequests.method_not_allowed!({})
  assert.equal(wrong.headers.allow, 'GET, HEAD, OPTIONS')
  const often = await failingRequests.rate_limited!({})
  assert.match(often.headers['ratelimit-policy'] as string, new RegExp(`^"stream";q=${streamsMax};w=60$`))
  assert.match(often.headers.ratelimit as string, /^"stream";r=0;t=\d+$/)
  const seconds = Number(often.headers['retry-after'])
  assert.ok(seconds >= 1 && seconds <= 60, String(seconds))
  assert.equal(assertErrorForm(often).retry_after, seconds)
})

test('no path of any spelling has an error of another form', async () => {
  const paths = [
    '/v1',
    '/v1/',
    '/nothing',
    '/v1/tasks/a/b',
    '//v1/user',
    '/v1/../etc/passwd',
    '/.env',
    '/%2e%2e/',
  ]
  for (const path of [
    ...paths,
    '/v1/user%00',
    '/v1/user;x=1',
    '/v1/USER',
    `/${'a/'.repeat(2_000)}`,
    '/*',
    '/%',
  ]) {
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND', 'TRACE']) {
      const got = await client.send({ method, path, headers: bearer(agent) })
      assert.ok(got.status >= 400 && got.status < 500, `${method} ${path} ${got.status}`)
      assertErrorForm(got, `${method} ${path}`)
    }
  }
})

test('on a reused connection, too large headers are still reported', async () => {
  using single = createHttpClient(gateway.url, { sockets: 1 })
  const fine: HttpRequest = { method: 'GET', path: '/v1/chains' }
  assert.equal((await single.send(fine)).status, 200)
  const got = await single.send({ ...fine, headers: { 'x-large': 'x'.repeat(20_000) } })
  assert.equal(got.status, 431)
  assertErrorForm(got)
  assert.equal((await single.send({ ...fine, headers: { expect: '200-ok' } })).status, 200)
})

test('while the database is unreachable every operation that needs it is 503, and afterwards all work', () =>
  assertUnreachableDatabase({ client, proxy, rows, agent, userId, open }))
