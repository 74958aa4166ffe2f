/** The authorization server of somebody else through this gateway, whose tokens it accepts. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as oauth from 'oauth4webapi'
import { ownClientIds } from '#kernel/contract/caller.ts'
import type { IdentityProvider } from '#world/identity/identity.ts'
import { operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, http } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp } from './oauth-app.ts'
import { createProxyApp, externalTokens, insecure, type ProxyApp, redirect_uri } from './proxy-app.ts'

let proxied: ProxyApp
let app: OAuthApp
let identity: IdentityProvider
before(async () => {
  proxied = await createProxyApp()
  ;({ app, identity } = proxied)
})
after(() => proxied?.[Symbol.asyncDispose]())

const metadataHere = () =>
  http<oauth.AuthorizationServer>(`${app.base}/.well-known/oauth-authorization-server`)

const accounts: Record<string, object> = {
  unverified: { email_verified: false },
  nameless: { email: undefined },
}
const tokensOf = (subject: string, options: Parameters<typeof externalTokens>[2] = {}) =>
  externalTokens(proxied, subject, { account: accounts[subject] ?? {}, ...options })
const userWith = (headers: Record<string, string>) => http(`${app.base}/v1/user`, { headers })

test('the metadata is that of the other server with three endpoints replaced', async () => {
  const { body: here } = await metadataHere()
  const { body: there } = await http<Record<string, unknown>>(
    `${identity.issuer}/.well-known/openid-configuration`,
  )
  assert.deepEqual(here, {
    ...there,
    authorization_endpoint: `${app.base}/oauth/authorize`,
    token_endpoint: `${app.base}/oauth/token`,
    registration_endpoint: `${app.base}/oauth/register`,
  })
  for (const path of ['', '/mcp']) {
    const { body } = await http(`${app.base}/.well-known/oauth-protected-resource${path}`)
    assert.deepEqual([body.resource, body.authorization_servers], [`${app.base}${path}`, [identity.issuer]])
  }
  // A client that takes the address of the document for the issuer has to refuse it.
  const base = new URL(app.base)
  const document = await oauth.discoveryRequest(base, { algorithm: 'oauth2', ...insecure })
  await assert.rejects(oauth.processDiscoveryResponse(base, document))
})

test('a strict client registers, signs a person in, calls, refreshes, and reuse ends the family', async () => {
  const { tokens, refresh, headers } = await tokensOf('ada')
  assert.equal((await userWith(headers)).body.code, 'signup_required')
  const signup = await http(`${app.base}/signup`, { method: 'POST', headers, body: { name: 'Ada' } })
  assert.deepEqual([signup.status, signup.body.created], [200, true])
  const me = await userWith(headers)
  assert.deepEqual([me.body.email, me.body.auth_scheme], ['ada@example.com', 'oauth'])
  const renewed = await refresh(tokens.refresh_token!)
  const again = await userWith({ authorization: `Bearer ${renewed.access_token}` })
  assert.equal(again.body.user_id, me.body.user_id)
  await assert.rejects(refresh(tokens.refresh_token!), { error: 'invalid_grant' })
  await assert.rejects(refresh(renewed.refresh_token!), { error: 'invalid_grant' })
  const { headers: other } = await tokensOf('ada', { resource: `${app.base}/mcp` })
  assert.equal((await userWith(other)).body.user_id, me.body.user_id)
})

test('a token for another resource, and one without a verified address, are refused', async () => {
  const foreign = await tokensOf('grace', { resource: 'https://another.example' })
  assert.deepEqual(await statusAndCode(foreign.headers), [401, 'invalid_token'])
  for (const subject of Object.keys(accounts))
    assert.deepEqual(await statusAndCode((await tokensOf(subject)).headers), [401, 'invalid_token'], subject)
  const { tokens } = await tokensOf('lin')
  assert.deepEqual(await statusAndCode({ authorization: `Bearer ${tokens.id_token}` }), [
    401,
    'invalid_token',
  ])
})
const statusAndCode = async (headers: Record<string, string>) => {
  const { status, body } = await userWith(headers)
  return [status, body.code]
}

test('a token of the other server is of none of the pages of this gateway, whatever it says', async () => {
  for (const clientId of ownClientIds) {
    identity.addClient({ client_id: clientId, redirect_uris: [redirect_uri] })
    const { headers } = await tokensOf('forger', { clientId, acts: 'manage' })
    assert.deepEqual(await statusAndCode(headers), [401, 'invalid_token'])
  }
})

test('a revocation ends the tokens of its client here, and those of the person with all', async () => {
  const [first, second] = [await tokensOf('eve'), await tokensOf('eve', { acts: 'manage' })]
  await http(`${app.base}/signup`, { method: 'POST', headers: first.headers, body: {} })
  const revoke = (query: string, headers: Record<string, string>) =>
    http(`${app.base}/v1/auth/token${query}`, { method: 'DELETE', headers })
  assert.equal((await revoke('?all=true', first.headers)).body.code, 'insufficient_scope')
  assert.equal((await revoke('', first.headers)).status, 200)
  assert.deepEqual(await statusAndCode(first.headers), [401, 'invalid_token'])
  assert.equal((await userWith(second.headers)).status, 200)
  assert.equal((await revoke('?all=true', second.headers)).status, 200)
  assert.deepEqual(await statusAndCode(second.headers), [401, 'invalid_token'])
})

test('a revocation ends tokens that the other server issues by a clock that is ahead, and later ones are refused', async (t) => {
  t.after(() => {
    app.time.offsetMs = 0
  })
  const { headers } = await tokensOf('hasty')
  app.time.offsetMs = -3_000
  await http(`${app.base}/signup`, { method: 'POST', headers, body: {} })
  const revoked = await http(`${app.base}/v1/auth/token`, { method: 'DELETE', headers })
  assert.equal(revoked.status, 200)
  assert.deepEqual(await statusAndCode(headers), [401, 'invalid_token'])
  const later = await tokensOf('hastier')
  assert.equal((await userWith(later.headers)).status, 403)
  app.time.offsetMs = -30_000
  assert.deepEqual(await statusAndCode(later.headers), [401, 'invalid_token'])
})

test('a revocation ends the webhooks of its client here', async () => {
  const [first, second] = [
    await tokensOf('hook', { acts: 'manage' }),
    await tokensOf('hook', { acts: 'manage' }),
  ]
  await http(`${app.base}/signup`, { method: 'POST', headers: first.headers, body: {} })
  for (const [n, { headers }] of [first, second].entries()) {
    const body = { url: `http://127.0.0.1:2/${n}` }
    const { status } = await http(`${app.base}/v1/webhooks`, { method: 'POST', headers, body })
    assert.equal(status, 200)
  }
  const urlsLeft = async () => {
    const { rows } = await app.database.pool.query<{ url: string }>('select url from webhook order by url')
    return rows.map(({ url }) => new URL(url).pathname)
  }
  const { headers } = first
  assert.equal((await http(`${app.base}/v1/auth/token`, { method: 'DELETE', headers })).status, 200)
  assert.deepEqual(await urlsLeft(), ['/1'])
  const all = { method: 'DELETE', headers: second.headers }
  assert.equal((await http(`${app.base}/v1/auth/token?all=true`, all)).status, 200)
  assert.deepEqual(await urlsLeft(), [])
})

test('an operator ends the access that tokens of the other server give here', async () => {
  using folder = dataFolder()
  const operator = operatorOf({ DATABASE_URL: app.databaseUrl, DATA_DIR: folder.path })
  const [leaked, other] = [await tokensOf('owen'), await tokensOf('owen')]
  await http(`${app.base}/signup`, { method: 'POST', headers: leaked.headers, body: {} })
  const { body } = await userWith(other.headers)
  await operator.act('seen in a log', 'tokens', 'revoke', '--token', leaked.tokens.access_token)
  const isEnded = async ({ headers }: typeof leaked) => (await userWith(headers)).status === 401 || undefined
  await eventually(() => isEnded(leaked), 'the token is refused')
  assert.equal((await userWith(other.headers)).status, 200)
  await operator.act('mailbox stolen', 'tokens', 'revoke', '--user', String(body.user_id))
  await eventually(() => isEnded(other), 'the other token is refused')
  for (const each of [leaked, other])
    assert.deepEqual(await statusAndCode(each.headers), [401, 'invalid_token'])
})

test('an outage of the other server is an outage, and no refused token', async () => {
  let isDown = false
  await using own = await createOAuthApp({
    env: { AUTH_MODE: 'proxy', IDENTITY_ISSUER: identity.issuer },
    overrides: {
      wrapNet: (net) => ({
        fetch: (request) => (isDown ? Promise.resolve({ status: 503, body: '' }) : net.fetch(request)),
      }),
    },
  })
  isDown = true
  const { headers } = await tokensOf('patient')
  assert.equal((await http(`${own.base}/v1/user`, { headers })).status, 503)
  const authorize = await fetch(`${own.base}/oauth/authorize?client_id=x`, { redirect: 'manual' })
  assert.equal(authorize.status, 503)
  assert.equal(((await authorize.json()) as { error: string }).error, 'temporarily_unavailable')
  assert.equal((await http(`${own.base}/.well-known/oauth-authorization-server`)).status, 503)
})

test('without a client id people have no pages here, and the answers say so', async () => {
  for (const path of ['/oauth/account', '/oauth/approvals', '/oauth/account/link']) {
    const reply = await http<{ detail: string }>(app.base + path)
    assert.equal(reply.status, 404)
    assert.ok(reply.body.detail.includes(`people sign in at ${identity.issuer}`), reply.body.detail)
  }
  const { headers } = await tokensOf('pat', { acts: 'manage propose' })
  const post = (path: string, body: object) =>
    http<{ approval: { confirm_url: string | null } }>(app.base + path, { method: 'POST', headers, body })
  await post('/signup', {})
  assert.equal((await post('/v1/kill', { on: true })).status, 200)
  assert.equal((await post('/v1/kill', { on: false })).body.approval.confirm_url, null)
})
