/** Keys with an end date: who makes one, what it may do, and how it ends. */
import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import { portico } from '#sdk/client.ts'
import { bearer, eventually, http, newAgent } from '../harness/gateway.ts'
import { errorOf, modernClient } from '../mcp/clients.ts'
import {
  createBrowser,
  createOAuthApp,
  type OAuthApp,
  openOAuthInstance,
  type Page,
  password,
} from './oauth-app.ts'
import { createProxyApp } from './proxy-app.ts'
import { connectingPerson } from './session.ts'

const dayMs = 86_400_000
let app: OAuthApp
before(async () => {
  app = await createOAuthApp({ overrides: { mailPollMs: 100 } })
})
after(() => app?.[Symbol.asyncDispose]())
beforeEach(async () => {
  app.time.offsetMs = 0
  await app.database.pool.query('delete from sign_in_limit')
})

type Agent = Awaited<ReturnType<typeof newAgent>>
type Terms = { name: string; scopes: string[]; expires_in_days: number }
type Made = { key_id: string; key: string; name: string; scopes: string[]; expires_at: string; code: string }
const terms: Terms = { name: 'editor', scopes: ['read', 'trade'], expires_in_days: 30 }

function signedTerms({ agentId, privateKey }: Agent, { name, scopes, expires_in_days }: Terms) {
  const timestamp = Date.now() + app.time.offsetMs
  const text = `portico-auth_create_key:v1:${agentId}:${timestamp}:${expires_in_days}:${scopes.join(',')}:${name}`
  const signature = sign(null, Buffer.from(text), privateKey).toString('base64')
  return { agent_id: agentId, timestamp, signature, name, scopes, expires_in_days }
}
const post = (body: object, headers: Record<string, string> = {}) =>
  http<Made>(`${app.base}/v1/auth/keys`, { method: 'POST', body, headers })
const make = async (agent: Agent, given: Partial<Terms> = {}): Promise<Made> => {
  const { status, body } = await post(signedTerms(agent, { ...terms, ...given }))
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const user = (key: string, base = app.base) =>
  http<{ user_id: string; code: string }>(`${base}/v1/user`, { headers: { authorization: `Bearer ${key}` } })
const statusOf = async (key: string, base?: string) => (await user(key, base)).status

test('the key of an agent opens the door of MCP for its scopes, and lives until its end', async () => {
  const agent = await newAgent(app.base)
  const made = await make(agent)
  assert.deepEqual([made.name, made.scopes], ['editor', ['read', 'trade']])
  assert.match(made.key, /^agt_[A-Za-z0-9_-]{43}$/)
  assert.equal(Math.round((Date.parse(made.expires_at) - Date.now()) / dayMs), 30)
  await using client = await modernClient(app.base, {
    authorization: `Bearer ${made.key}`,
    query: '?sections=all',
  })
  const names = (await client.listTools()).map(({ name }) => name)
  const asked = ['wallets_list', 'tasks_cancel', 'policy_tighten', 'auth_create_key']
  const offered = asked.filter((name) => names.includes(name))
  assert.deepEqual(offered, ['wallets_list', 'tasks_cancel'])
  assert.equal(errorOf(await client.call('policy_tighten', { per_day_usd: '1' }))?.code, 'insufficient_scope')
  assert.equal(errorOf(await client.call('wallets_list')), undefined)
  app.time.offsetMs = 30 * dayMs - 60_000
  assert.equal(await statusOf(made.key), 200)
  app.time.offsetMs = 30 * dayMs + 60_000
  assert.equal((await user(made.key)).body.code, 'invalid_token')
})

test('no token makes a key, and a signature covers its terms and counts once', async () => {
  const agent = await newAgent(app.base)
  const { key } = await make(agent, { scopes: ['read', 'manage', 'propose', 'trade', 'earn', 'chat'] })
  for (const authorization of [bearer(agent).authorization, `Bearer ${key}`]) {
    const unsigned = await post({ agent_id: agent.agentId, ...terms }, { authorization })
    assert.equal(unsigned.status, 422, JSON.stringify(unsigned.body))
  }
  const body = signedTerms(agent, terms)
  for (const changed of [
    { name: 'other' },
    { scopes: ['read', 'trade', 'manage'] },
    { scopes: ['trade', 'read'] },
    { expires_in_days: 90 },
    { agent_id: (await newAgent(app.base)).agentId },
  ]) {
    const forged = await post({ ...body, ...changed })
    assert.deepEqual([forged.status, forged.body.code], [401, 'invalid_signature'], JSON.stringify(changed))
  }
  assert.equal((await post(body)).status, 200)
  assert.equal((await post(body)).body.code, 'signature_replayed')
  // The signature of a token request makes no key.
  const token = { agent_id: agent.agentId, timestamp: Date.now() }
  const signature = sign(null, Buffer.from(`${agent.agentId}${token.timestamp}`), agent.privateKey)
  const other = await post({ ...terms, ...token, signature: signature.toString('base64') })
  assert.equal(other.body.code, 'invalid_signature')
  for (const wrong of [
    { expires_in_days: 0 },
    { expires_in_days: 91 },
    { scopes: ['withdraw'] },
    { name: '' },
  ])
    assert.equal((await post(signedTerms(agent, { ...terms, ...wrong }))).status, 422, JSON.stringify(wrong))
})

test('a key confirms nothing that a person confirms', async () => {
  const { key } = await make(await newAgent(app.base), { scopes: ['manage', 'propose'] })
  const headers = { authorization: `Bearer ${key}` }
  const policy = (per_day_usd: string) =>
    http<Made>(`${app.base}/v1/policy`, { method: 'PUT', headers, body: { per_day_usd } })
  assert.equal((await policy('100')).status, 200)
  assert.equal((await policy('200')).body.code, 'step_up_required')
})

test('keys are listed without their secret, revoked one by one and all together, and bounded in number', async () => {
  const agent = await newAgent(app.base)
  const headers = bearer(agent)
  const first = await make(agent, { name: 'first' })
  const second = await make(agent, { name: 'second', scopes: [] })
  const list = async () =>
    (await http<{ keys: Made[]; max: number }>(`${app.base}/v1/auth/keys`, { headers })).body
  const { keys, max } = await list()
  assert.deepEqual(
    keys.map(({ name, scopes, key }) => [name, scopes, key]),
    [
      ['first', ['read', 'trade'], undefined],
      ['second', ['read'], undefined],
    ],
  )
  const revoke = (id: string, authorization = headers.authorization) =>
    http<Made>(`${app.base}/v1/auth/keys/${id}`, { method: 'DELETE', headers: { authorization } })
  const foreign = bearer(await newAgent(app.base)).authorization
  assert.equal((await revoke(first.key_id, foreign)).status, 404)
  assert.equal((await revoke(first.key_id, `Bearer ${second.key}`)).body.code, 'insufficient_scope')
  await using other = await openOAuthInstance({ databaseUrl: app.databaseUrl, baseUrl: app.base })
  assert.equal(await statusOf(first.key, other.address), 200)
  assert.equal((await revoke(first.key_id)).status, 200)
  assert.equal(await statusOf(first.key), 401)
  await eventually(
    async () => (await statusOf(first.key, other.address)) === 401 || undefined,
    'every instance',
  )
  assert.equal((await revoke(first.key_id)).status, 404)
  for (let count = 1; count < max; count++) await make(agent, { name: `key ${count}` })
  const full = await post(signedTerms(agent, terms))
  assert.deepEqual([full.status, full.body.code], [409, 'limit_reached'])
  await http(`${app.base}/v1/auth/token?all=true`, { method: 'DELETE', headers })
  assert.equal(await statusOf(second.key), 401)
})

test('the SDK signs for a key, and a client with a token alone cannot', async () => {
  const agent = await newAgent(app.base)
  const secretKey = (agent.privateKey.export({ format: 'jwk' }) as { d: string }).d
  const client = portico({ baseUrl: app.base, auth: { agentId: agent.agentId, secretKey } })
  const { key, name } = await client.auth.createKey({ name: 'a: key', scopes: ['earn'], expires_in_days: 1 })
  assert.deepEqual([name, await statusOf(key)], ['a: key', 200])
  await assert.rejects(
    portico({ baseUrl: app.base, auth: { token: key } }).auth.createKey({ ...terms, scopes: ['read'] }),
    { status: 422 },
  )
  // The signature of a contest covers what it says, too.
  await assert.rejects(client.agents.contest({ on: true }), { code: 'not_found' })
})

const account = () => `${app.base}/oauth/account`
const keyOf = ({ html }: Page) => /agt_[A-Za-z0-9_-]{43}/.exec(html)?.[0]
async function visitor() {
  const person = connectingPerson(app)
  await person.connect()
  const browser = createBrowser()
  const signIn = (page: Page) => browser.submit(page, 'sign-in', { email: person.email, password })
  return { person, browser, signIn, page: await signIn(await browser.open(account())) }
}
const form = { name: 'Claude <b>', days: '7', trade: 'yes', manage: 'yes', propose: 'yes' }

test('a person makes a key on the page, reads it once, and it acts as an app', async () => {
  const { person, browser, page } = await visitor()
  const made = await browser.submit(page, 'key-make', form)
  const key = keyOf(made)!
  assert.match(made.html, /Claude &lt;b&gt;/)
  assert.equal(await statusOf(key), 200)
  const again = await browser.open(account())
  assert.equal(keyOf(again), undefined)
  assert.match(again.html, /Claude &lt;b&gt;/)
  // A message of the same kind has just been sent, so this one waits for a minute.
  app.time.offsetMs = 61_000
  await eventually(
    async () => /The key “Claude/.test(app.emails.join('\n')) || undefined,
    'the mail of the key',
  )
  const headers = { authorization: `Bearer ${key}` }
  const call = <T>(method: string, path: string, body?: object) =>
    http<T>(app.base + path, { method, headers, ...(body && { body }) })
  // As an app it asks, and the person confirms.
  await call('PUT', '/v1/policy', { per_day_usd: '100' })
  const raised = await call<{
    per_day_usd: string
    confirmation: { approval_id: string; confirm_url: string }
  }>('PUT', '/v1/policy', { per_day_usd: '200' })
  assert.equal(raised.body.per_day_usd, '100')
  const { approval_id, confirm_url } = raised.body.confirmation
  const refused = await call<Made>('POST', `/v1/approvals/${approval_id}/approve`, {})
  assert.equal(refused.body.code, 'step_up_required')
  await person.confirm(confirm_url)
  // Its hook ends with it.
  const hook = { url: 'https://hooks.example.com/portico' }
  await call('POST', '/v1/webhooks', hook)
  const listed = await call<{ keys: Made[] }>('GET', '/v1/auth/keys')
  assert.deepEqual(
    listed.body.keys.map(({ name, scopes }) => [name, scopes]),
    [['Claude <b>', ['read', 'trade', 'manage', 'propose']]],
  )
  const revoked = await browser.submit(await browser.open(account()), 'key-revoke')
  assert.match(revoked.html, /The key is revoked/)
  assert.equal(await statusOf(key), 401)
  assert.doesNotMatch(revoked.html, /hooks\.example\.com/)
})

test('a key takes a recent sign-in and the form of the page, and its terms are checked', async () => {
  const { browser, page, signIn } = await visitor()
  for (const [changes, status] of [
    [{ name: ' ' }, 422],
    [{ days: '91' }, 422],
    [{ days: 'x' }, 422],
    [{ csrf: 'a'.repeat(64) }, 403],
  ] as const) {
    const refused = await browser.submit(page, 'key-make', { ...form, ...changes })
    assert.deepEqual([refused.status, keyOf(refused)], [status, undefined], JSON.stringify(changes))
  }
  app.time.offsetMs = 301_000
  const stale = await browser.submit(page, 'key-make', form)
  assert.equal(keyOf(stale), undefined)
  const shown = await browser.open(account())
  const current = /name="password"/.test(shown.html) ? await signIn(shown) : shown
  assert.ok(/Sign in again to make a key|key-make/.test(current.html))
})

test('keys of a person end with every access of the person, and by themselves', async () => {
  const { browser, page } = await visitor()
  const make = async (name: string) =>
    keyOf(await browser.submit(await browser.open(account()), 'key-make', { ...form, name }))!
  const [one, other] = [keyOf(await browser.submit(page, 'key-make', form))!, await make('other')]
  await http(`${app.base}/v1/auth/token`, { method: 'DELETE', headers: { authorization: `Bearer ${one}` } })
  assert.deepEqual([await statusOf(one), await statusOf(other)], [401, 200])
  await browser.submit(await browser.open(account()), 'sign-out-everywhere')
  assert.equal(await statusOf(other), 401)
  const { rows } = await app.database.pool.query(
    `select 1 from access_token where key_name in ('other', 'Claude <b>')`,
  )
  assert.equal(rows.length, 0)
})

test('a gateway whose tokens another server issues offers no keys to people', async () => {
  await using proxied = await createProxyApp({ hasPages: true })
  const reply = await fetch(`${proxied.app.base}/oauth/account/key-make`, {
    method: 'POST',
    body: new URLSearchParams(form),
    headers: { origin: proxied.app.base },
  })
  assert.equal(reply.status, 404)
})
