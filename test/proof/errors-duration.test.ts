/** How soon operations fail without the database, and work again with it. */
import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { after, before, test } from 'node:test'
import { testDatabase } from '../harness/cluster.ts'
import {
  type Agent,
  bearer,
  dataFolder,
  eventually,
  type Gateway,
  http,
  keyPair,
  launch,
  newAgent,
} from '../harness/gateway.ts'
import { type DatabaseProxy, databaseProxy } from './support/database-proxy.ts'
import { assertErrorForm, codeOf, jsonOf } from './support/error-forms.ts'
import { createHttpClient, type HttpClient, type HttpReply } from './support/http-client.ts'
import { type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import { createMoneyAudit } from './support/money-audit.ts'
import { unlimitedRates } from './support/unlimited.ts'

const parts = new AsyncDisposableStack()
let gateway: Gateway
let proxy: DatabaseProxy
let client: HttpClient
let rows: IdentityRecords
let agent: Agent
let userId: string
let open: { task_id: string; position_id: string }

before(async () => {
  const folder = parts.use(dataFolder())
  const database = parts.use(await testDatabase())
  proxy = parts.use(await databaseProxy(database.url))
  gateway = parts.use(
    await launch({ env: { ...unlimitedRates, DATA_DIR: folder.path, DATABASE_URL: proxy.url } }),
  )
  const world = gateway.lines.find((line) => line.startsWith('world '))!.split(/\s+/)[1]!
  client = parts.use(createHttpClient(gateway.url))
  rows = parts.use(await openIdentityRecords(database.url))
  agent = await newAgent(gateway.url)
  userId = (await http<{ user_id: string }>(`${gateway.url}/v1/user`, { headers: bearer(agent) })).body
    .user_id
  open = await (await createMoneyAudit({ url: gateway.url, world }, agent)).start()
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

function signedIn(timestamp: number): object {
  const signature = base64(sign(null, Buffer.from(`${agent.agentId}${timestamp}`), agent.privateKey))
  return { agent_id: agent.agentId, timestamp, signature }
}

test('while the database is unreachable every operation that needs it is 503, and two seconds later all work', async () => {
  const fresh = await rows.token(userId)
  const reads = ['/v1/user', '/v1/credits', '/v1/wallets', '/v1/tasks', '/v1/policy', '/v1/notifications']
  const { publicKey } = keyPair()
  const databaseReads: [string, () => Promise<HttpReply>][] = [
    ...reads.map((path): [string, () => Promise<HttpReply>] => [path, () => get(path)]),
    ['a token that is not cached', () => get('/v1/credits/', { authorization: `Bearer ${fresh}` })],
    ['a task', () => get(`/v1/tasks/${open.task_id}`)],
    ['a registration', () => post('/v1/auth/register', { public_key: publicKey }, {})],
    ['a sign-in', () => post('/v1/auth/token', signedIn(now() - 20), {})],
    ['a deposit', () => post('/v1/earn/deposit', { amount_usdc: '1' })],
    ['a withdrawal', () => post('/v1/earn/withdraw', { position_id: open.position_id, amount_usdc: '1' })],
    [
      'a limit',
      () =>
        client.send({
          method: 'PUT',
          path: '/v1/policy',
          headers: { ...json, ...bearer(agent) },
          body: '{}',
        }),
    ],
    ['a kill switch', () => post('/v1/kill', { on: false }, { ...bearer(agent), 'idempotency-key': 'k1' })],
  ]
  await get('/v1/user')
  await proxy.disconnect()
  try {
    for (const [what, send] of databaseReads) {
      const got = await send()
      assert.equal(got.status, 503, `${what}: ${got.text}`)
      assert.equal(codeOf(got), 'unavailable', what)
      assertErrorForm(got, what)
      assert.ok(got.ms < 5_000, `${what}: ${got.ms} ms`)
    }
    const assertUnhealthy = async () => ((await get('/health', {})).status === 503 ? true : undefined)
    await eventually(assertUnhealthy, 'degraded health', 3_000)
    const health = await get('/health', {})
    assert.equal(jsonOf(health).status, 'down')
    assert.ok(health.headers['retry-after'])
    assert.equal((await get('/v1/chains', {})).status, 200)
    assert.equal((await get('/capabilities', {})).status, 200)
  } finally {
    await proxy.reconnect()
  }
  const assertHealthy = async () => {
    const all = await Promise.all([...reads.map((path) => get(path)), get('/health', {})])
    return all.every(({ status }) => status === 200) ? true : undefined
  }
  await eventually(assertHealthy, 'the recovery', 2_000)
  const moved = async () => {
    const after = await post('/v1/earn/deposit?wait=true', { amount_usdc: '1' })
    assert.ok(after.status === 200 || after.status === 503, after.text)
    return jsonOf(after).status === 'completed' ? true : undefined
  }
  await eventually(moved, 'a deposit after the recovery', 5_000)
})
