/** No secret leaves its place, and the database with the code signs nothing without the master key. */
import assert from 'node:assert/strict'
import { randomBytes, sign } from 'node:crypto'
import { after, before, test } from 'node:test'
import { createEnvKek } from '#engines/custody/key-encryption-keys.ts'
import { systemRandom } from '#kernel/id.ts'
import { decrypt } from '#kernel/wire/encrypted-envelope.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { base58 } from '#upstreams/solana/base58.ts'
import { svmCrypto } from '#upstreams/solana/sign.ts'
import type { World } from '#world/world.ts'
import { type TestDatabase, testDatabase } from '../harness/cluster.ts'
import {
  type Agent,
  bearer,
  dataFolder,
  eventually,
  freshToken,
  type Gateway,
  http,
  keyPair,
  launch,
  NotReady,
  upstreamsOf,
} from '../harness/gateway.ts'
import { ownWorld } from '../harness/own-world.ts'
import { operationsOf } from './support/contracts.ts'
import { createHttpClient, type HttpReply } from './support/http-client.ts'
import { hashOf, type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import { minimalRequest, pathOf } from './support/minimal-request.ts'
import { createMoneyAudit, type MoneyAudit } from './support/money-audit.ts'
import { unlimitedRates } from './support/unlimited.ts'

const kek = randomBytes(32)
const kekText = `canary:${kek.toString('base64')}`
/** Accounts 5 and 6 of the public development mnemonic, which no other test here pays from. */
const sponsorKeys = [
  '0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba',
  '0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e',
]

const parts = new AsyncDisposableStack()
let world: World
let database: TestDatabase
let rows: IdentityRecords
const lines: string[] = []
const answers: string[] = []
/** Values that must be found nowhere, by name. */
const canaries = new Map<string, Uint8Array>()
let agent: Agent
let metrics = ''
let position: string

function start(env: Record<string, string>): Promise<Gateway> {
  const folder = parts.use(dataFolder())
  const keys = { KEY_ENCRYPTION_KEYS: kekText, SPONSOR_KEYS: sponsorKeys.join(',') }
  return launch({
    env: {
      ...unlimitedRates,
      ...upstreamsOf(world.urls),
      ...keys,
      DATA_DIR: folder.path,
      DATABASE_URL: database.url,
      ...env,
    },
  })
}

before(async () => {
  world = parts.use(await ownWorld())
  database = parts.use(await testDatabase())
  rows = parts.use(await openIdentityRecords(database.url))
  await using gateway = await start({ LOG_LEVEL: 'debug' })
  await runAgentDay(gateway)
  lines.push(...gateway.lines)
  await gateway.stop()
  lines.push(...gateway.lines.slice(lines.length))
})
after(() => parts.disposeAsync())

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
const auditOf = (url: string): Promise<MoneyAudit> =>
  createMoneyAudit({ url, world: world.urls.control }, agent)

/** A session of an agent with every possible error. */
async function runAgentDay({ url }: Gateway): Promise<void> {
  using client = createHttpClient(url)
  const record = (got: HttpReply) => {
    answers.push(JSON.stringify(got.headers), got.text)
    return got
  }
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const sent = { 'content-type': 'application/json', ...headers }
    return client.send({ method: 'POST', path, headers: sent, body: JSON.stringify(body) })
  }
  const { publicKey, privateKey } = keyPair()
  const register = JSON.parse(record(await post('/v1/auth/register', { public_key: publicKey })).text)
  const proof = sign(null, Buffer.from(register.challenge), privateKey)
  const verified = JSON.parse(
    record(await post('/v1/auth/verify', { nonce: register.nonce, signature: base64(proof) })).text,
  )
  // In milliseconds, as workers that share an agent sign: `freshToken` may sign this second.
  const timestamp = Date.now()
  const signature = sign(null, Buffer.from(`${verified.agent_id}${timestamp}`), privateKey)
  const asked = { agent_id: verified.agent_id, timestamp, signature: base64(signature) }
  // The one answer that contains a token.
  const { token } = JSON.parse((await post('/v1/auth/token', asked)).text)
  agent = { agentId: verified.agent_id, privateKey, publicKey, token }
  canaries.set('the signature of the challenge', proof)
  canaries.set('the signature of the sign-in', signature)
  canaries.set(
    'the private key of the agent',
    Buffer.from(privateKey.export({ format: 'jwk' }).d!, 'base64url'),
  )
  canaries.set('the token', Buffer.from(token))

  const money = await auditOf(url)
  position = (await money.start()).position_id
  record(
    await post(
      '/v1/earn/withdraw?wait=true',
      { position_id: position, amount_usdc: '1', idempotency_key: 'first-withdrawal' },
      bearer(agent),
    ),
  )
  for (const { entry } of await operationsOf(url)) {
    const minimal = minimalRequest(entry)
    const path = pathOf(entry, minimal)
    const body = minimal.body && JSON.stringify(minimal.body)
    // A token of its own for operations that revoke it.
    const own = entry.path === '/v1/auth/token' && entry.method === 'DELETE'
    const token = own ? await freshToken(url, agent.agentId, agent.privateKey) : agent.token
    const headers = { ...bearer({ ...agent, token }), 'content-type': 'application/json' }
    record(await client.send({ method: entry.method, path, headers, ...(body && { body }) }))
  }
  await sendMisplacedCredentials(url, async (request) => record(await client.send(request)), {
    token,
    signature: base64(signature),
  })
  metrics = (await client.send({ method: 'GET', path: '/metrics' })).text
}

type Request = Parameters<ReturnType<typeof createHttpClient>['send']>[0]

/** Clients put credentials in wrong places; these must not be logged. */
async function sendMisplacedCredentials(
  url: string,
  send: (request: Request) => Promise<HttpReply>,
  { token, signature }: { token: string; signature: string },
): Promise<void> {
  const json = { 'content-type': 'application/json' }
  const own = { authorization: `Bearer ${token}` }
  const text = encodeURIComponent(signature)
  const requests: Request[] = [
    { method: 'GET', path: `/v1/user?access_token=${token}&token=${token}&sig=${text}&signature=${text}` },
    { method: 'GET', path: `/v1/user?%74oken=${token}`, headers: own },
    { method: 'GET', path: `/v1/tasks/${token}`, headers: own },
    { method: 'GET', path: `/${token}` },
    { method: 'GET', path: `/v1/tasks?next=${token}`, headers: own },
    { method: 'GET', path: '/v1/user', headers: { authorization: token } },
    { method: 'GET', path: '/v1/user', headers: { authorization: `Bearer ${token}x` } },
    {
      method: 'GET',
      path: '/v1/user',
      headers: { ...own, cookie: token, referer: `${url}/?token=${token}` },
    },
    { method: 'GET', path: '/v1/notifications/stream', headers: { ...own, 'last-event-id': token } },
    { method: 'GET', path: '/v1/user', headers: { ...own, 'user-agent': token, traceparent: token } },
    { method: 'POST', path: '/v1/kill', headers: { ...own, ...json }, body: JSON.stringify({ on: token }) },
    { method: 'POST', path: '/v1/kill', headers: { ...own, ...json }, body: `{"on":${token}` },
    {
      method: 'POST',
      path: '/v1/auth/token',
      headers: json,
      body: JSON.stringify({ agent_id: token, timestamp: 1, signature }),
    },
    {
      method: 'POST',
      path: '/v1/auth/verify',
      headers: json,
      body: JSON.stringify({ nonce: token, signature }),
    },
    {
      method: 'POST',
      path: '/v1/earn/withdraw',
      headers: { ...own, ...json },
      body: JSON.stringify({ position_id: token }),
    },
    { method: 'POST', path: '/v1/auth/register', headers: json, body: JSON.stringify({ public_key: token }) },
  ]
  for (const request of requests) await send(request)
}

type WalletRow = {
  user_id: string
  kind: 'evm' | 'svm'
  address: string
  ciphertext: Buffer
  wrapped_dek: Buffer
  kek_id: string
  version: number
}

/** Opens a wallet as its operator could, from the row and the master key alone. */
async function decryptKey({ user_id, kind, address, version, ciphertext, wrapped_dek, kek_id }: WalletRow) {
  const associatedData = ['wallet', user_id, kind, address, version].join('|')
  const dek = await createEnvKek('canary', kek.toString('base64'), systemRandom).unwrap(
    wrapped_dek,
    `${kek_id}|${associatedData}`,
  )
  return { dek, secret: decrypt(dek, ciphertext, associatedData) }
}

/** The possible spellings of a secret in a text. */
function spellings(secret: Uint8Array): string[] {
  const bytes = Buffer.from(secret)
  const printed = /^[\x20-\x7e]+$/.test(bytes.toString('latin1')) ? [bytes.toString('latin1')] : []
  const list = [bytes.toString('hex'), bytes.toString('hex').toUpperCase(), bytes.toString('base64')]
  const numbers = [JSON.stringify([...bytes]).slice(1, -1), BigInt(`0x${bytes.toString('hex')}`).toString()]
  return [
    ...printed,
    ...list,
    bytes.toString('base64url'),
    encodeURIComponent(list[2]!),
    base58(bytes),
    ...numbers,
  ]
}

async function dump(): Promise<Map<string, string>> {
  const { rows: tables } = await rows.db.query<{ name: string }>(
    `select quote_ident(table_name) as name from information_schema.tables
     where table_schema = 'public' and table_type = 'BASE TABLE'`,
  )
  const all = new Map<string, string>()
  for (const { name } of tables) {
    const { rows: found } = await rows.db.query<{ text: string }>(
      `select row_to_json(t)::text as text from ${name} t`,
    )
    all.set(name, found.map(({ text }) => text).join('\n'))
  }
  return all
}

test('the master key opens the keys of the wallets', async () => {
  const { rows: sealed } = await rows.db.query<WalletRow>('select * from wallet')
  assert.equal(sealed.length, 2)
  for (const row of sealed) {
    const { dek, secret } = await decryptKey(row)
    const scheme = row.kind === 'evm' ? evmCrypto : svmCrypto
    assert.equal(await scheme.addressOf(secret), row.address)
    canaries.set(`the ${row.kind} key`, Uint8Array.from(secret))
    canaries.set(`the data key of the ${row.kind} wallet`, Uint8Array.from(dek))
  }
})

test('no log, answer, row or metric contains a secret', async () => {
  canaries.set('the master key', kek)
  for (const [index, key] of sponsorKeys.entries())
    canaries.set(`sponsor ${index + 1}`, Buffer.from(key.slice(2), 'hex'))
  assert.ok(canaries.size >= 11)
  const haystacks = new Map([
    ['the log', lines.join('\n')],
    ['the answers', answers.join('\n')],
    ['the metrics', metrics],
    ...(await dump()),
  ])
  // A search over nothing finds nothing.
  assert.match(haystacks.get('the log')!, /"route":"\/v1\/earn\/withdraw"/)
  assert.match(haystacks.get('the answers')!, /"status":"completed"/)
  assert.match(haystacks.get('the metrics')!, /portico_http_request_duration_seconds/)
  for (const table of ['task', 'user_event', 'effect', 'wallet', 'idempotency', 'access_token'])
    assert.ok((haystacks.get(table) ?? '').length > 10, `${table} is empty`)
  assert.ok(haystacks.get('access_token')!.includes(hashOf(agent.token).toString('hex')))
  for (const [name, secret] of canaries)
    for (const spelling of spellings(secret))
      for (const [where, text] of haystacks) {
        const at = text.indexOf(spelling)
        assert.equal(at, -1, `${name} is in ${where}: ${text.slice(Math.max(0, at - 200), at + 20)}`)
      }
})

type Task = { status: string; outcome: string | null; error: { code: string; message: string } | null }

/** The vault and the wallet before and after a deposit. */
async function deposits(
  key: string,
): Promise<{ status: number; task: Task; moved: boolean; reported: string }> {
  await using gateway = await start({ KEY_ENCRYPTION_KEYS: key, LOG_LEVEL: 'debug' })
  const token = await rows.token(await userId())
  const client = { ...agent, token }
  const money = await createMoneyAudit({ url: gateway.url, world: world.urls.control }, client)
  const before = await money.onChain()
  const { status, body } = await http<Task & { task_id: string }>(`${gateway.url}/v1/earn/deposit`, {
    method: 'POST',
    body: { amount_usdc: '3' },
    headers: bearer(client),
  })
  const ended = async () => {
    const { body: task } = await http<Task>(`${gateway.url}/v1/tasks/${body.task_id}`, {
      headers: bearer(client),
    })
    return ['completed', 'failed', 'cancelled'].includes(task.status) ? task : undefined
  }
  const task = status === 200 ? await eventually(ended, 'the end of the deposit', 60_000) : body
  const after = await money.onChain()
  assert.ok(!(await hasHold(client)), 'something is still held')
  const moved = JSON.stringify(before) !== JSON.stringify(after)
  return { status, task, moved, reported: `${JSON.stringify(task)}\n${gateway.lines.slice(-5).join('\n')}` }
}

const userId = async (): Promise<string> =>
  (await rows.db.query<{ id: string }>('select id from app_user where agent_id = $1', [agent.agentId]))
    .rows[0]!.id

/** Whether the ledger still holds units of the user for a task. */
async function hasHold({ agentId }: Agent): Promise<boolean> {
  const { rows: found } = await rows.db.query(
    `select 1 from account a join app_user u on a.owner = u.id where u.agent_id = $1 and a.held > 0`,
    [agentId],
  )
  return found.length > 0
}

const others: [string, string][] = [
  ['another key of another name', `other:${randomBytes(32).toString('base64')}`],
  ['another key of the same name', `canary:${randomBytes(32).toString('base64')}`],
]
for (const [what, key] of others)
  test(`with ${what} nothing starts that could sign`, async () => {
    const ended = await start({ KEY_ENCRYPTION_KEYS: key }).catch((error: unknown) => error)
    assert.ok(ended instanceof NotReady, 'the gateway has started')
    assert.equal(ended.code, 1)
    assert.match(ended.message, /^portico cannot start: KEY_ENCRYPTION_KEYS: .*\bcanary\b/m)
    assert.ok(!ended.message.includes(key.split(':')[1]!), 'the error contains the key')
  })

test('with the right key the same deposit is made', async () => {
  const { status, task, moved, reported } = await deposits(kekText)
  assert.ok(moved, reported)
  assert.deepEqual([status, task.status, task.outcome], [200, 'completed', 'executed'], reported)
})
