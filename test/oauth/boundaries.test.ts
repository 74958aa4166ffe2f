/** Cookies, origins, headers and foreign tokens at the border between sign-in and interface. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { startIdentityProvider } from '#world/identity/identity.ts'
import { http } from '../harness/gateway.ts'
import { createFacadeApp, federatedPerson } from './facade-app.ts'
import { createBrowser, createOAuthApp, type OAuthApp } from './oauth-app.ts'
import { authorizeUrl, consentFor, redirectUri, register } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp({ env: { TRUST_PROXY: '127.0.0.1' } })
})
after(() => app?.[Symbol.asyncDispose]())

test('a cookie of the sign-in is no credential of the interface, which sets none', async () => {
  const { browser } = await consentFor(app)
  const cookie = [...browser.cookies.values()].map(({ value }) => value).join('; ')
  assert.match(cookie, /portico_session=/)
  for (const [method, path] of [
    ['GET', '/v1/user'],
    ['POST', '/signup'],
    ['GET', '/oauth/userinfo'],
  ] as const) {
    const reply = await fetch(app.base + path, { method, headers: { cookie } })
    assert.equal(reply.status, 401, path)
    assert.deepEqual(reply.headers.getSetCookie(), [], path)
  }
})

test('cookies are out of the reach of scripts and of forms of other sites, and narrow', async () => {
  const { client_id } = await register(app)
  const { headers } = await fetch(authorizeUrl(app, client_id), { redirect: 'manual' })
  const cookies = headers.getSetCookie()
  assert.ok(cookies.length >= 2)
  for (const cookie of cookies) {
    assert.match(cookie, /; httponly/i)
    assert.match(cookie, /; samesite=lax/i)
    assert.match(cookie, /; path=\/oauth\//i)
  }
})

test('behind https every cookie is sent over https alone', async () => {
  await using secure = await createOAuthApp({ baseUrl: 'https://gateway.example.com' })
  const at = { ...secure, base: secure.address }
  const { client_id } = await register(at)
  const { headers } = await fetch(authorizeUrl(at, client_id), { redirect: 'manual' })
  assert.match(headers.get('location') ?? '', /^https:\/\/gateway\.example\.com\/oauth\/interaction\//)
  const cookies = headers.getSetCookie()
  assert.ok(cookies.length >= 2)
  for (const cookie of cookies) assert.match(cookie, /; secure/i)
})

test('a request to sign in is short, and an address has few that are open', async () => {
  const { client_id } = await register(app)
  const begin = (address: string, changes: Record<string, string> = {}) =>
    fetch(authorizeUrl(app, client_id, changes), {
      redirect: 'manual',
      headers: { 'x-forwarded-for': address },
    })
  const long = { state: 's'.repeat(2_049), nonce: 'n'.repeat(8_000) }
  for (const [name, value] of Object.entries(long)) {
    const refused = await begin('198.51.100.1', { [name]: value })
    assert.deepEqual([refused.status, refused.headers.get('location')], [400, null], name)
  }
  const other = createBrowser()
  const page = await other.open(authorizeUrl(app, client_id, { state: 's'.repeat(2_048) }))
  const first = createBrowser()
  const headers = { 'x-forwarded-for': '198.51.100.1' }
  const opened = await first.open(authorizeUrl(app, client_id), { headers })
  for (let n = 0; n < 19; n++) assert.equal((await begin('198.51.100.1')).status, 303)
  assert.equal((await first.open(opened.url)).status, 200)
  await begin('198.51.100.1')
  assert.equal((await first.open(opened.url)).status, 410)
  assert.equal((await other.open(page.url)).status, 200)
})

test('no other origin reads a page, and the token endpoint answers the origins of the client alone', async () => {
  const { client_id } = await register(app)
  const origin = 'https://attacker.example'
  const page = await fetch(authorizeUrl(app, client_id), { headers: { origin } })
  assert.equal(page.headers.get('access-control-allow-origin'), null)
  const allowed = async (from: string) => {
    const reply = await fetch(`${app.base}/oauth/token`, {
      method: 'POST',
      headers: { origin: from },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id,
        code: 'x',
        redirect_uri: redirectUri,
      }),
    })
    return reply.headers.get('access-control-allow-origin')
  }
  assert.equal(await allowed(origin), null)
  assert.equal(await allowed(new URL(redirectUri).origin), new URL(redirectUri).origin)
  for (const path of ['oauth-protected-resource', 'oauth-authorization-server']) {
    const { headers } = await fetch(`${app.base}/.well-known/${path}`, { headers: { origin } })
    assert.equal(headers.get('access-control-allow-origin'), '*', path)
    assert.equal(headers.get('access-control-allow-credentials'), null, path)
  }
})

test('every page forbids frames, scripts and caches', async () => {
  const { browser, consent } = await consentFor(app)
  const start = await browser.open(authorizeUrl(app, (await register(app)).client_id))
  const views = ['sign-in', 'sign-up', 'reset', 'email-code']
  const pages = await Promise.all(views.map((view) => browser.open(`${start.url}?view=${view}`)))
  const wrong = await createBrowser().open(authorizeUrl(app, 'unknown'))
  const lost = await createBrowser().open(start.url)
  for (const { url, headers } of [consent, ...pages, wrong, lost]) {
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'.*frame-ancestors 'none'.*base-uri 'none'/, url)
    assert.doesNotMatch(policy, /script-src|unsafe|\*/, url)
    assert.deepEqual(
      ['x-frame-options', 'x-content-type-options', 'cache-control'].map((name) => headers.get(name)),
      ['DENY', 'nosniff', 'no-store'],
      url,
    )
  }
})

test('a registration chooses neither its id nor its trust', async () => {
  const { status, ...client } = (await register(app, {
    client_id: 'portico-web',
    client_secret: 'chosen',
    software_statement: 'eyJhbGciOiJub25lIn0.eyJjbGllbnRfbmFtZSI6IlBvcnRpY28ifQ.',
  })) as Record<string, unknown>
  if (status === 201) {
    assert.notEqual(client.client_id, 'portico-web')
    assert.notEqual(client.client_secret, 'chosen')
    assert.equal(client.client_name, 'Attack')
  } else assert.equal(status, 400)
})

test('a token of the identity provider is no token of this gateway', async () => {
  const tokens: string[] = []
  await using facade = await createFacadeApp({
    wrapNet: (net) => ({
      async fetch(request) {
        const reply = await net.fetch(request)
        if (request.url.endsWith('/token'))
          tokens.push(...(Object.values(JSON.parse(reply.body)) as string[]).map(String))
        return reply
      },
    }),
  })
  const person = federatedPerson(facade, 'ada')
  const { client_id } = await register(facade)
  await person.signIn(await person.gateway.open(authorizeUrl(facade, client_id)))
  assert.ok(tokens.length >= 2)
  for (const token of tokens) {
    const reply = await http(`${facade.base}/v1/user`, { headers: { authorization: `Bearer ${token}` } })
    assert.equal(reply.status, 401)
  }
})

test('a flood of unknown keys reads the key set of another server once in 30 seconds', async () => {
  await using identity = await startIdentityProvider()
  let reads = 0
  await using proxied = await createOAuthApp({
    env: { AUTH_MODE: 'proxy', IDENTITY_ISSUER: identity.issuer, RATE_REFUSED: '0' },
    overrides: {
      wrapNet: (net) => ({
        fetch(request) {
          if (request.url.endsWith('/keys')) reads++
          return net.fetch(request)
        },
      }),
    },
  })
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const flood = async () => {
    for (let turn = 0; turn < 40; turn++) {
      const head = encode({ alg: 'RS256', typ: 'at+jwt', kid: randomUUID() })
      const token = `${head}.${encode({ iss: identity.issuer, sub: 'x' })}.${encode({})}`
      const reply = await http(`${proxied.base}/v1/user`, { headers: { authorization: `Bearer ${token}` } })
      assert.equal(reply.status, 401)
    }
  }
  await flood()
  assert.equal(reads, 1)
  proxied.time.offsetMs += 31_000
  await flood()
  assert.equal(reads, 2)
})
