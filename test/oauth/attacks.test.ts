/** Attacks on the authorization server, each against the running one. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { http } from '../harness/gateway.ts'
import { createBrowser, createOAuthApp, type OAuthApp, type Page, password } from './oauth-app.ts'
import {
  authorizeUrl,
  codeFor,
  consentFor,
  redirectUri,
  register,
  tokenRequest,
  verifier,
} from './session.ts'

let app: OAuthApp
let clientId: string
before(async () => {
  app = await createOAuthApp()
  clientId = (await register(app)).client_id
})
after(() => app?.[Symbol.asyncDispose]())

/** Neither a redirect to another site nor a form: an error page. */
const assertStopped = (page: Page, what: string) => {
  assert.ok(page.url.startsWith(app.base), `${what}: ${page.url}`)
  assert.equal(page.status, 400, `${what}: ${page.status}`)
  assert.match(page.html, /cannot go on/, what)
}
/** An error in the redirect to the registered address. */
const assertRefused = (page: Page, error: string, what: string) => {
  const url = new URL(page.url)
  assert.equal(`${url.origin}${url.pathname}`, redirectUri, `${what}: ${page.url}`)
  // A response type that is not code answers in the fragment.
  const answer = new URLSearchParams(url.search || url.hash.slice(1))
  assert.equal(answer.get('error'), error, what)
  assert.equal(answer.get('code'), null, what)
  assert.equal(answer.get('iss'), app.base, what)
}

const redirects: Record<string, string | undefined> = {
  'another host': 'https://attacker.example/callback',
  'another path': 'https://app.example.com/callback/other',
  'a path with dots': 'https://app.example.com/callback/../steal',
  'another port': 'https://app.example.com:8443/callback',
  'http instead of https': 'http://app.example.com/callback',
  'credentials in front': 'https://app.example.com@attacker.example/callback',
  'a subdomain': 'https://app.example.com.attacker.example/callback',
  'an added query': 'https://app.example.com/callback?next=https://attacker.example',
  'an added fragment': 'https://app.example.com/callback#x',
  'a look-alike name': 'https://app.examp\u217ce.com/callback',
  'an encoded slash': 'https://app.example.com/callback%2f..%2fsteal',
  'upper case': 'https://app.example.com/CALLBACK',
  'a trailing slash': 'https://app.example.com/callback/',
  'a backslash': 'https://app.example.com\\@attacker.example/callback',
  'a script': 'javascript:alert(1)',
  none: undefined,
}

test('a redirect that is not exactly the registered one is never followed', async () => {
  for (const [what, redirect_uri] of Object.entries(redirects))
    assertStopped(await createBrowser().open(authorizeUrl(app, clientId, { redirect_uri })), what)
})

const requests: Record<string, [changes: Record<string, string | undefined>, error: string]> = {
  'no challenge': [{ code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
  'a plain challenge': [{ code_challenge_method: 'plain', code_challenge: verifier }, 'invalid_request'],
  'a challenge without its method': [{ code_challenge_method: undefined }, 'invalid_request'],
  'a short challenge': [{ code_challenge: 'abc' }, 'invalid_request'],
  'the implicit flow': [{ response_type: 'token' }, 'unsupported_response_type'],
  'an id token from the front': [{ response_type: 'id_token', nonce: 'n' }, 'unsupported_response_type'],
  'a hybrid flow': [{ response_type: 'code id_token', nonce: 'n' }, 'unsupported_response_type'],
  'a resource of a stranger': [{ resource: 'https://attacker.example' }, 'invalid_target'],
  'a resource below ours': [{ resource: 'http://127.0.0.1:1/mcp/admin' }, 'invalid_target'],
  'a signed request object': [{ request: 'eyJhbGciOiJub25lIn0.e30.' }, 'request_not_supported'],
  'a request by address': [{ request_uri: 'https://attacker.example/r' }, 'request_uri_not_supported'],
  'no interaction without a session': [{ prompt: 'none' }, 'login_required'],
}

test('an authorization request that weakens the flow is refused at the registered redirect', async () => {
  for (const [what, [changes, error]] of Object.entries(requests)) {
    const page = await createBrowser().open(authorizeUrl(app, clientId, changes))
    const url = new URL(page.url)
    if (url.origin === new URL(redirectUri).origin) assertRefused(page, error, what)
    else assertStopped(page, what)
  }
})

test('an unknown client gets no redirect', async () => {
  assertStopped(await createBrowser().open(authorizeUrl(app, 'unknown')), 'unknown')
  assertStopped(
    await createBrowser().open(authorizeUrl(app, 'https://127.0.0.1/client.json')),
    'inner document',
  )
  assertStopped(
    await createBrowser().open(authorizeUrl(app, 'https://localhost/client.json')),
    'local document',
  )
})

const redemptions: Record<string, Record<string, string>> = {
  'a wrong verifier': { code_verifier: 'x'.repeat(43) },
  'no verifier': { code_verifier: '' },
  'the challenge as verifier': {
    code_verifier: createHash('sha256').update(verifier).digest('base64url'),
  },
  'another redirect': { redirect_uri: 'https://app.example.com/other' },
  'another client': { client_id: 'other' },
  'a foreign resource': { resource: 'https://attacker.example' },
  'a resource that was not granted': { resource: 'mcp' },
}

test('a code is redeemed only by its client, with its verifier, redirect and resource', async () => {
  const other = (await register(app)).client_id
  for (const [what, changes] of Object.entries(redemptions)) {
    const { redeem } = await codeFor(app)
    const swapped = {
      ...changes,
      ...(changes.client_id && { client_id: other }),
      ...(changes.resource === 'mcp' && { resource: `${app.base}/mcp` }),
    }
    const reply = await redeem(swapped)
    assert.equal(reply.status, 400, what)
    assert.match(reply.error ?? '', /^invalid_(?:grant|request|target)$/, what)
    assert.equal(reply.access_token, undefined, what)
  }
})

test('a code that is used twice ends what the first use gave', async () => {
  const { redeem, clientId: owner } = await codeFor(app)
  const { access_token, refresh_token } = await redeem()
  assert.equal((await redeem()).error, 'invalid_grant')
  const refresh = { grant_type: 'refresh_token', client_id: owner, refresh_token }
  assert.equal((await tokenRequest(app, refresh)).error, 'invalid_grant')
  const headers = { authorization: `Bearer ${access_token}` }
  assert.equal((await http(`${app.base}/v1/user`, { headers })).status, 401)
})

test('of concurrent uses of a code and of a refresh token one succeeds', async () => {
  const { redeem, clientId: owner } = await codeFor(app)
  const uses = await Promise.all(Array.from({ length: 6 }, () => redeem()))
  const first = uses.filter(({ status }) => status === 200)
  assert.equal(first.length, 1)
  const { redeem: again, clientId: second } = await codeFor(app)
  const { refresh_token } = await again()
  const fields = { grant_type: 'refresh_token', client_id: second, refresh_token }
  const refreshed = await Promise.all(Array.from({ length: 6 }, () => tokenRequest(app, fields)))
  assert.ok(refreshed.filter(({ status }) => status === 200).length <= 1)
  assert.ok(owner)
})

test('clients that refresh in parallel keep their connection, and a later use of a used token ends it', async () => {
  const { redeem, clientId: owner } = await codeFor(app)
  const tokens = await redeem()
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  const refresh = (refresh_token: string, client_id = owner) =>
    tokenRequest(app, { grant_type: 'refresh_token', client_id, refresh_token })
  const isAlive = async () => (await http(`${app.base}/v1/user`, { headers })).status === 200
  const parallel = await Promise.all(Array.from({ length: 6 }, () => refresh(tokens.refresh_token)))
  const renewed = parallel.filter(({ status }) => status === 200)
  assert.equal(renewed.length, 1)
  for (const { status, error } of parallel)
    assert.ok(status === 200 || (status === 400 && error === 'invalid_grant'), `${status} ${error}`)
  try {
    app.time.offsetMs += 9_000
    assert.equal((await refresh(tokens.refresh_token)).error, 'invalid_grant')
    assert.ok(await isAlive())
    const next = await refresh(renewed[0]!.refresh_token)
    assert.equal(next.status, 200, 'the newest token goes on')
    // Another client that has the token learns nothing, and ends nothing, at any time.
    app.time.offsetMs += 11_000
    assert.equal((await refresh(tokens.refresh_token, clientId)).error, 'invalid_grant')
    assert.ok(await isAlive())
    assert.equal((await refresh(tokens.refresh_token)).error, 'invalid_grant')
    assert.equal(await isAlive(), false)
    assert.equal((await refresh(next.refresh_token)).error, 'invalid_grant')
  } finally {
    app.time.offsetMs = 0
  }
})

test('a token that was just used is revoked with its connection all the same', async () => {
  const { redeem, clientId: owner } = await codeFor(app)
  const tokens = await redeem()
  const fields = { client_id: owner, refresh_token: tokens.refresh_token }
  const { refresh_token } = await tokenRequest(app, { grant_type: 'refresh_token', ...fields })
  const reply = await fetch(`${app.base}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: owner, token: tokens.refresh_token }),
  })
  assert.equal(reply.status, 200)
  assert.equal(
    (await tokenRequest(app, { grant_type: 'refresh_token', client_id: owner, refresh_token })).error,
    'invalid_grant',
  )
})

test('a refresh never widens the scope, moves the resource or serves another client', async () => {
  const { redeem, clientId: owner } = await codeFor(app, { scope: 'openid offline_access' })
  const { refresh_token, scope } = await redeem()
  assert.ok(!scope.includes('email'))
  const refresh = { grant_type: 'refresh_token', client_id: owner, refresh_token }
  assert.equal((await tokenRequest(app, { ...refresh, scope: 'openid email' })).error, 'invalid_scope')
  assert.equal((await tokenRequest(app, { ...refresh, client_id: clientId })).error, 'invalid_grant')
  assert.equal((await tokenRequest(app, { ...refresh, resource: `${app.base}/mcp` })).error, 'invalid_target')
})

const registrations: Record<string, object> = {
  'a script': { redirect_uris: ['javascript:alert(1)'] },
  'data for an app': { redirect_uris: ['data:text/html,x'], application_type: 'native' },
  'a script for an app': { redirect_uris: ['javascript:alert(1)'], application_type: 'native' },
  'http of a stranger': { redirect_uris: ['http://attacker.example/'] },
  credentials: { redirect_uris: ['https://a:b@example.com/'] },
  'a fragment': { redirect_uris: ['https://example.com/#x'] },
  'no redirect': { redirect_uris: [] },
  'eleven redirects': { redirect_uris: Array.from({ length: 11 }, (_, at) => `https://example.com/${at}`) },
  'the implicit flow': { grant_types: ['implicit'], response_types: ['token'] },
  'client credentials': { grant_types: ['client_credentials'], redirect_uris: [redirectUri] },
  'keys by address': { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://127.0.0.1/jwks' },
}

test('a registration with a dangerous redirect or flow is refused', async () => {
  await using fresh = await createOAuthApp()
  for (const [what, metadata] of Object.entries(registrations)) {
    const reply = await register(fresh, metadata)
    assert.equal(reply.status, 400, `${what}: ${JSON.stringify(reply)}`)
    assert.match(reply.error ?? '', /^invalid_(?:client_metadata|redirect_uri|request)$/, what)
  }
  const statuses: number[] = []
  for (let turn = 0; turn < 40; turn++) statuses.push((await register(fresh)).status)
  assert.ok(statuses.includes(201) && statuses.at(-1) === 429, 'registrations of an address are limited')
})

test('the consent names the client without its markup, and no frame may show it', async () => {
  const hostile = '<img src=x onerror=alert(1)>\u202Egpj.exe'
  const { client_id } = await register(app, { client_name: hostile, logo_uri: 'http://169.254.169.254/' })
  const page = await createBrowser().open(authorizeUrl(app, client_id))
  assert.equal(page.status, 200)
  assert.ok(page.html.includes('&lt;img src=x onerror=alert(1)&gt;gpj.exe'))
  assert.ok(!page.html.includes('169.254.169.254') && !page.html.includes('\u202E'))
  assert.equal(page.headers.get('x-frame-options'), 'DENY')
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/)
  assert.doesNotMatch(policy, /script-src|unsafe/)
})

test('forms of other sites and of other browsers are refused', async () => {
  const { browser, consent } = await consentFor(app)
  const foreign = await browser.submit(consent, 'allow', {}, { origin: 'https://attacker.example' })
  assert.equal(foreign.status, 403)
  const opaque = await browser.submit(consent, 'allow', {}, { origin: 'null' })
  assert.equal(opaque.status, 403)
  const stranger = await createBrowser().submit(consent, 'allow')
  assert.equal(stranger.status, 410)
  assert.ok((await browser.submit(consent, 'allow')).url.startsWith(redirectUri))
})

test('each client needs a consent of its own, and a person can decline', async () => {
  const { browser, consent } = await consentFor(app)
  await browser.submit(consent, 'allow')
  const second = await browser.open(authorizeUrl(app, clientId, { prompt: undefined }))
  assert.match(second.html, /Connect Attack\?/)
  assertRefused(await browser.submit(second, 'deny'), 'access_denied', 'declined')
})

test('passwords and codes cannot be guessed, and a person is not revealed', async () => {
  const { consent, browser } = await consentFor(app)
  assert.ok(consent.html.includes('@example.com'))
  const email = /person\d+@example\.com/.exec(consent.html)![0]
  const other = createBrowser()
  const page = await other.open(authorizeUrl(app, clientId))
  const textOf = ({ html }: Page) => /role="alert">([^<]*)/.exec(html)?.[1]
  const known = await other.submit(page, 'sign-in', { email, password: 'wrong password' })
  const unknown = await other.submit(page, 'sign-in', {
    email: 'nobody@example.com',
    password: 'wrong password',
  })
  assert.deepEqual([known.status, textOf(known)], [unknown.status, textOf(unknown)])
  let last = known
  for (let turn = 0; turn < 12; turn++)
    last = await other.submit(page, 'sign-in', { email, password: 'wrong' })
  assert.equal(last.status, 429)
  const blocked = await other.submit(page, 'sign-in', { email, password })
  assert.equal(blocked.status, 429)

  const third = createBrowser()
  const start = await third.open(authorizeUrl(app, clientId))
  const form = await third.open(`${start.url}?view=sign-up`)
  const sent = await third.submit(form, 'sign-up', { email: 'new@example.com', password })
  const right = app.codeFor('new@example.com')
  for (let turn = 0; turn < 5; turn++) {
    const code = String((Number(right) + 1 + turn) % 100_000_000).padStart(8, '0')
    assert.equal((await third.submit(sent, 'code', { code })).status, 422)
  }
  const late = await third.submit(sent, 'code', { code: right })
  assert.equal(late.status, 422)
  assert.match(late.html, /has expired/)
  assert.ok(browser)
})

test('the host of a request moves no address of the flow', async () => {
  const { headers } = await fetch(authorizeUrl(app, clientId), {
    redirect: 'manual',
    headers: { 'x-forwarded-host': 'attacker.example', 'x-forwarded-proto': 'https' },
  })
  assert.ok(headers.get('location')?.startsWith(`${app.base}/oauth/interaction/`))
})

test('a key pair token is no token of a person, and nobody introspects a stranger', async () => {
  const { redeem } = await codeFor(app)
  const { refresh_token } = await redeem()
  const ask = async (client_id: string) =>
    (
      await fetch(`${app.base}/oauth/introspect`, {
        method: 'POST',
        body: new URLSearchParams({ client_id, token: refresh_token }),
      })
    ).json()
  assert.deepEqual(await ask(clientId), { active: false })
  const opaque = `agt_${'x'.repeat(43)}`
  const signup = await http(`${app.base}/signup`, {
    method: 'POST',
    body: {},
    headers: { authorization: `Bearer ${opaque}` },
  })
  assert.equal(signup.status, 401)
})
