/** People sign in at an external identity provider, and the gateway stays the issuer for its clients. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { query } from '#store/query.ts'
import { startIdentityProvider } from '#world/identity/identity.ts'
import { eventually, http } from '../harness/gateway.ts'
import { createFacadeApp, type FacadeApp, federatedPerson, client as gatewayClient } from './facade-app.ts'
import { createBrowser, type Page } from './oauth-app.ts'
import { authorizeUrl, redirectUri, register, tokenRequest, verifier } from './session.ts'

let app: FacadeApp
let clientId: string
/** Changes the answers of the token endpoint of the provider. */
let forge: ((body: string) => string) | undefined
before(async () => {
  app = await createFacadeApp({
    wrapNet: (net) => ({
      async fetch(request) {
        const reply = await net.fetch(request)
        return request.url.endsWith('/token') && forge ? { ...reply, body: forge(reply.body) } : reply
      },
    }),
  })
  clientId = (await register(app)).client_id
})
after(() => app?.[Symbol.asyncDispose]())

const redirect_uri = 'http://127.0.0.1:7777/callback'
const scope = 'openid email offline_access'
const insecure = { [oauth.allowInsecureRequests]: true }
const alertOf = ({ html }: Page) => /role="alert">([^<]*)/.exec(html)?.[1] ?? ''
const peopleWith = async (email: string): Promise<string[]> =>
  (await query<{ id: string }>(app.database.pool, 'select id from person where email = $1', [email])).map(
    ({ id }) => id,
  )

/** When the second use of a refresh token is no parallel one any more. */
async function afterGrace(run: () => Promise<void>): Promise<void> {
  app.time.offsetMs += 11_000
  try {
    await run()
  } finally {
    app.time.offsetMs = 0
  }
}

test('openid-client discovers, registers, signs a person in elsewhere, refreshes, and reuse ends the family', async () => {
  const config = await client.dynamicClientRegistration(
    new URL(app.base),
    { client_name: 'Strict client', redirect_uris: [redirect_uri] },
    client.None(),
    { execute: [client.allowInsecureRequests], algorithm: 'oauth2' },
  )
  assert.equal(config.serverMetadata().issuer, app.base)
  const codeVerifier = client.randomPKCECodeVerifier()
  const state = client.randomState()
  const nonce = client.randomNonce()
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri,
    scope,
    prompt: 'consent',
    resource: app.base,
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
    code_challenge_method: 'S256',
  })
  const person = federatedPerson(app, 'ada')
  const page = await person.gateway.open(url.href)
  assert.match(page.html, new RegExp(`Continue with ${new URL(app.identity.issuer).host}`))
  assert.doesNotMatch(page.html, /type="password"/)
  const consent = await person.signIn(page)
  assert.match(consent.html, /Connect Strict client\?/)
  assert.match(consent.html, /ada@example\.com/)
  const done = await person.gateway.submit(consent, 'allow')
  const tokens = await client.authorizationCodeGrant(config, new URL(done.url), {
    pkceCodeVerifier: codeVerifier,
    expectedState: state,
    expectedNonce: nonce,
    idTokenExpected: true,
  })
  assert.equal(tokens.claims()?.iss, app.base)
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  const signup = await http(`${app.base}/signup`, { method: 'POST', headers, body: {} })
  assert.deepEqual([signup.status, signup.body.created], [200, true])
  assert.equal((await http(`${app.base}/v1/user`, { headers })).body.email, 'ada@example.com')

  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token!)
  await afterGrace(async () => {
    await assert.rejects(client.refreshTokenGrant(config, tokens.refresh_token!), { error: 'invalid_grant' })
    await assert.rejects(client.refreshTokenGrant(config, refreshed.refresh_token!), {
      error: 'invalid_grant',
    })
  })
  assert.equal((await http(`${app.base}/v1/user`, { headers })).status, 401)
})

test('oauth4webapi runs the same flow for the resource /mcp', async () => {
  const issuer = new URL(app.base)
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  const resource = await oauth.processResourceDiscoveryResponse(
    issuer,
    await oauth.resourceDiscoveryRequest(issuer, insecure),
  )
  assert.deepEqual(resource.authorization_servers, [app.base])
  const registered = await oauth.processDynamicClientRegistrationResponse(
    await oauth.dynamicClientRegistrationRequest(as, { redirect_uris: [redirect_uri] }, insecure),
  )
  const code_verifier = oauth.generateRandomCodeVerifier()
  const fields = new URLSearchParams({
    client_id: registered.client_id,
    redirect_uri,
    response_type: 'code',
    scope,
    prompt: 'consent',
    state: 's1',
    resource: `${app.base}/mcp`,
    code_challenge: await oauth.calculatePKCECodeChallenge(code_verifier),
    code_challenge_method: 'S256',
  })
  const person = federatedPerson(app, 'grace')
  const consent = await person.signIn(await person.gateway.open(`${as.authorization_endpoint}?${fields}`))
  const done = await person.gateway.submit(consent, 'allow')
  const answer = oauth.validateAuthResponse(as, registered, new URL(done.url), 's1')
  const redeem = () =>
    oauth.authorizationCodeGrantRequest(
      as,
      registered,
      oauth.None(),
      answer,
      redirect_uri,
      code_verifier,
      insecure,
    )
  const tokens = await oauth.processAuthorizationCodeResponse(as, registered, await redeem())
  const refresh = async (token: string) =>
    oauth.processRefreshTokenResponse(
      as,
      registered,
      await oauth.refreshTokenGrantRequest(as, registered, oauth.None(), token, insecure),
    )
  const renewed = await refresh(tokens.refresh_token!)
  await afterGrace(async () => {
    await assert.rejects(refresh(tokens.refresh_token!), { error: 'invalid_grant' })
    await assert.rejects(refresh(renewed.refresh_token!), { error: 'invalid_grant' })
  })
})

const signInPage = (person: { gateway: ReturnType<typeof createBrowser> }, changes = {}) =>
  person.gateway.open(authorizeUrl(app, clientId, changes))

test('the account of a person is the subject of the issuer, also after its address has changed', async () => {
  const person = federatedPerson(app, 'lin', { email: 'lin@example.com', email_verified: true })
  await person.signIn(await signInPage(person))
  const [id] = await peopleWith('lin@example.com')
  app.identity.accounts.set('lin', { email: 'Lin.New@example.com', email_verified: true })
  const again = federatedPerson(app, 'lin', app.identity.accounts.get('lin'))
  const consent = await again.signIn(await signInPage(again))
  assert.match(consent.html, /lin\.new@example\.com/)
  assert.deepEqual(await peopleWith('lin.new@example.com'), [id])
  // The former address passes to somebody else, who is another person.
  const heir = federatedPerson(app, 'heir', { email: 'lin@example.com', email_verified: true })
  await heir.signIn(await signInPage(heir))
  assert.notEqual((await peopleWith('lin@example.com'))[0], id)
})

test('a subject with the address of another subject gets no account', async () => {
  const person = federatedPerson(app, 'owner', { email: 'shared@example.com', email_verified: true })
  await person.signIn(await signInPage(person))
  const other = federatedPerson(app, 'other', { email: 'shared@example.com', email_verified: true })
  const refused = await other.signIn(await signInPage(other))
  assert.equal(refused.status, 422)
  assert.match(alertOf(refused), /Another account of this gateway has your email address/)
})

test('an address that the provider has not verified, or does not send, is refused', async () => {
  const accounts = { unverified: { email: 'u@example.com', email_verified: false }, silent: {} }
  for (const [subject, account] of Object.entries(accounts)) {
    const person = federatedPerson(app, subject, account)
    const refused = await person.signIn(await signInPage(person))
    assert.equal(refused.status, 422, subject)
    assert.match(alertOf(refused), /no verified email address/, subject)
  }
  assert.deepEqual(await peopleWith('u@example.com'), [])
})

test('one new identity in two browsers is one person', async () => {
  const [first, second] = [federatedPerson(app, 'twin'), federatedPerson(app, 'twin')]
  const [one, two] = await Promise.all(
    [first, second].map(async (person) => person.leave(await signInPage(person))),
  )
  const pages = await Promise.all([first.gateway.open(one!), second.gateway.open(two!)])
  for (const page of pages) assert.match(page.html, /Connect Attack\?/)
  assert.equal((await peopleWith('twin@example.com')).length, 1)
})

const changed = (url: string, changes: Record<string, string | undefined>): string => {
  const target = new URL(url)
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) target.searchParams.delete(name)
    else target.searchParams.set(name, value)
  return target.href
}

test('a return with another state, issuer or code, of another browser or a second time signs nobody in', async () => {
  const victim = federatedPerson(app, 'victim')
  const attacker = federatedPerson(app, 'attacker')
  const back = await victim.leave(await signInPage(victim))
  const foreign = await attacker.leave(await signInPage(attacker))
  const codeOf = (url: string) => new URL(url).searchParams.get('code')!
  const uid = new URL(back).searchParams.get('state')!.split('.')[0]!
  const returns: Record<string, [browser: typeof victim, url: string, status: number]> = {
    'the state of another interaction': [victim, foreign, 410],
    'a state that was made up': [victim, changed(back, { state: `${uid}.${'x'.repeat(32)}` }), 422],
    'a state that names a path': [victim, changed(back, { state: '../../v1/user' }), 400],
    'no state': [victim, changed(back, { state: undefined }), 400],
    'another browser': [attacker, back, 410],
  }
  for (const [what, [person, url, status]] of Object.entries(returns)) {
    const page = await person.gateway.open(url)
    assert.equal(page.status, status, what)
    assert.ok(page.url.startsWith(app.base), what)
    assert.doesNotMatch(page.html, /Connect Attack/, what)
  }
  // None of them used up the departure of the victim.
  assert.match((await victim.gateway.open(back)).html, /Connect Attack\?/)

  const spoils: Record<string, Record<string, string | undefined>> = {
    'another issuer': { iss: 'https://attacker.example' },
    'no issuer': { iss: undefined },
    'the code of another person': { code: codeOf(foreign) },
    'no code': { code: undefined },
    'a second code': { code: 'x' },
  }
  for (const [what, changes] of Object.entries(spoils)) {
    const person = federatedPerson(app, 'victim')
    const page = await person.gateway.open(changed(await person.leave(await signInPage(person)), changes))
    assert.equal(page.status, 422, what)
    assert.match(alertOf(page), /not valid|did not sign in/, what)
  }
})

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part = ''): Record<string, unknown> => JSON.parse(Buffer.from(part, 'base64url').toString())
/** Changes the id token of a reply. */
const withIdToken = (change: (parts: string[]) => string[]) => (body: string) => {
  const tokens = JSON.parse(body) as { id_token: string }
  return JSON.stringify({ ...tokens, id_token: change(tokens.id_token.split('.')).join('.') })
}
const withClaim = (changes: object) =>
  withIdToken(([head, claims, signature]) => [head!, encode({ ...decode(claims), ...changes }), signature!])

test('an id token that is forged, unsigned or of another sign-in signs nobody in', async () => {
  let former = ''
  forge = (body) => {
    former = (JSON.parse(body) as { id_token: string }).id_token
    return body
  }
  const first = federatedPerson(app, 'careful')
  assert.match((await first.signIn(await signInPage(first))).html, /Connect Attack/)
  const forgeries: Record<string, (body: string) => string> = {
    'another subject': withClaim({ sub: 'ada' }),
    'another audience': withClaim({ aud: 'another client' }),
    'another issuer': withClaim({ iss: 'https://attacker.example' }),
    'another nonce': withClaim({ nonce: 'x' }),
    'a verified address': withClaim({ email: 'ada@example.com', email_verified: true }),
    'no signature': withIdToken(([, claims]) => [encode({ alg: 'none' }), claims!, '']),
    'the token of a former sign-in': withIdToken(() => former.split('.')),
    'no token': (body) => JSON.stringify({ ...JSON.parse(body), id_token: undefined }),
  }
  for (const [what, forgery] of Object.entries(forgeries)) {
    forge = forgery
    const person = federatedPerson(app, 'careful')
    const page = await person.signIn(await signInPage(person))
    assert.equal(page.status, 422, what)
    assert.match(alertOf(page), /is not valid/, what)
  }
  forge = undefined
})

test('a return that is used twice is interrupted', async () => {
  const person = federatedPerson(app, 'twice')
  const page = await signInPage(person)
  const back = await person.leave(page)
  const returns = await Promise.all(Array.from({ length: 4 }, () => person.gateway.open(back)))
  assert.ok(returns.filter(({ html }) => /Connect Attack\?/.test(html)).length <= 1)
})

test('a person who declines at the provider is back on the sign-in page', async () => {
  const person = federatedPerson(app, 'shy')
  const page = await person.gateway.open(await person.leave(await signInPage(person), { cancel: 'yes' }))
  assert.deepEqual([page.status, alertOf(page)], [422, 'You did not sign in there. Try again.'])
  assert.match((await person.signIn(page)).html, /Connect Attack\?/)
})

test('a fresh sign-in is asked of the provider, whose session is not enough', async () => {
  const person = federatedPerson(app, 'fresh')
  await person.signIn(await signInPage(person))
  const plain = createBrowser()
  const departure = await plain.submit(await plain.open(authorizeUrl(app, clientId)), 'continue')
  assert.equal(new URL(person.addressIn(departure)).searchParams.get('max_age'), null)
  const page = await signInPage(person, { prompt: 'login consent' })
  assert.match(page.html, /Continue with/)
  const asked = await person.gateway.submit(page, 'continue')
  const fields = new URL(person.addressIn(asked)).searchParams
  assert.deepEqual([fields.get('prompt'), fields.get('max_age')], ['login', '0'])
  assert.match((await person.signIn(page)).html, /Connect Attack\?/)
})

test('a session at the provider is a sign-in, and none with which a person confirms', async () => {
  const person = federatedPerson(app, 'silent')
  const allow = async (browser: ReturnType<typeof createBrowser>, consent: Page) => {
    const done = await browser.submit(consent, 'allow', { manage: 'yes', propose: 'yes' })
    const code = new URL(done.url).searchParams.get('code')!
    const fields = { grant_type: 'authorization_code', client_id: clientId, code, redirect_uri: redirectUri }
    const tokens = await tokenRequest(app, { ...fields, code_verifier: verifier })
    assert.equal(tokens.status, 200, `${JSON.stringify(tokens)} ${done.url} ${done.html.slice(0, 900)}`)
    return tokens
  }
  type Body = {
    code: string
    requires: string
    paused: object | null
    approval: { approval_id: string; intent_sha256: string; confirm_url: string }
  }
  const callerOf = (token: string) => (method: string, path: string, body?: object) =>
    http<Body>(app.base + path, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body && { body }),
    })
  type Call = ReturnType<typeof callerOf>
  const isPaused = async (call: Call) => (await call('GET', '/v1/policy')).body.paused !== null
  const askToResume = async (call: Call) => {
    assert.equal((await call('POST', '/v1/kill', { on: true })).status, 200)
    const asked = await call('POST', '/v1/kill', { on: false })
    assert.equal(asked.status, 200, JSON.stringify(asked.body))
    assert.ok(await isPaused(call), 'nobody has confirmed it')
    return asked.body.approval
  }
  const assertNoApproval = async (call: Call, { approval_id, intent_sha256 }: Body['approval']) => {
    const { status, body } = await call('POST', `/v1/approvals/${approval_id}/approve`, { intent_sha256 })
    assert.deepEqual([status, body.code, body.requires], [403, 'step_up_required', 'person'])
    assert.ok(await isPaused(call))
  }

  const asked = await signInPage(person, { prompt: 'login consent' })
  const fresh = callerOf((await allow(person.gateway, await person.signIn(asked))).access_token)
  assert.equal((await fresh('POST', '/signup')).status, 200)
  const first = await askToResume(fresh)
  await assertNoApproval(fresh, first)
  const confirmation = await person.signIn(await person.gateway.open(first.confirm_url))
  assert.match((await person.gateway.submit(confirmation, 'approve')).html, /Approved/)
  await eventually(async () => !(await isPaused(fresh)), 'the switch is lifted')

  // Another browser at the gateway; the provider asks for nothing, and does not say when it did.
  const silent = createBrowser()
  const departure = await silent.submit(await silent.open(authorizeUrl(app, clientId)), 'continue')
  const back = await person.provider.open(person.addressIn(departure))
  assert.ok(back.url.startsWith(app.base), back.url)
  const stale = await allow(silent, await silent.open(back.url))
  const second = await askToResume(callerOf(stale.access_token))
  // As if the provider took no notice of what the gateway asks for.
  const signIn = await silent.submit(await silent.open(second.confirm_url), 'continue')
  const address = new URL(person.addressIn(signIn))
  for (const name of ['prompt', 'max_age']) {
    assert.ok(address.searchParams.has(name), name)
    address.searchParams.delete(name)
  }
  const answer = await person.provider.open(address.href)
  assert.ok(answer.url.startsWith(app.base), answer.url)
  assert.doesNotMatch((await silent.open(answer.url)).html, /\/approve"/)
  assert.doesNotMatch((await silent.open(second.confirm_url)).html, /\/approve"/)
  await assertNoApproval(callerOf(stale.access_token), second)
  const fields = { grant_type: 'refresh_token', client_id: clientId, refresh_token: stale.refresh_token }
  await assertNoApproval(callerOf((await tokenRequest(app, fields)).access_token), second)
})

test('passwords, codes and sign-ups of the gateway itself are not served', async () => {
  const browser = createBrowser()
  const page = await browser.open(authorizeUrl(app, clientId))
  for (const step of ['sign-in', 'sign-up', 'reset', 'code']) {
    const url = page.url.replace(/\?.*$/, '')
    const reply = await browser.open(`${url}/${step}`, {
      method: 'POST',
      body: new URLSearchParams({ email: 'a@example.com', password: 'correct horse battery' }),
      headers: { origin: new URL(url).origin },
    })
    assert.equal(reply.status, 404, step)
  }
  for (const view of ['sign-up', 'reset'])
    assert.match((await browser.open(`${page.url}?view=${view}`)).html, /Continue with/, view)
})

test('while the provider is down a person reads so, and goes on when it is back', async () => {
  await using own = await createFacadeApp()
  const { client_id } = await register(own)
  const person = federatedPerson(own, 'patient')
  const open = () => person.gateway.open(authorizeUrl(own, client_id))
  const back = await person.leave(await open())
  const port = Number(new URL(own.identity.issuer).port)
  await own.identity[Symbol.asyncDispose]()
  const down = await person.gateway.open(back)
  assert.deepEqual([down.status, down.headers.get('retry-after')], [503, '10'])
  assert.match(alertOf(down), /does not answer at the moment/)
  await using other = await createFacadeApp({
    wrapNet: (net) => ({
      fetch: (request) =>
        request.url.includes('openid-configuration')
          ? Promise.resolve({ status: 503, body: 'down' })
          : net.fetch(request),
    }),
  })
  const stranger = federatedPerson(other, 'stranger')
  const otherClient = (await register(other)).client_id
  const page = await stranger.gateway.open(authorizeUrl(other, otherClient))
  const refused = await stranger.gateway.submit(page, 'continue')
  assert.equal(refused.status, 503)
  assert.match(alertOf(refused), /does not answer at the moment/)

  await using identity = await startIdentityProvider({
    port,
    clients: [{ ...gatewayClient, redirect_uris: [`${own.base}/oauth/callback`] }],
  })
  const again = federatedPerson({ identity }, 'patient')
  const consent = await again.signIn(await again.gateway.open(authorizeUrl(own, client_id)))
  const done = await again.gateway.submit(consent, 'allow')
  const code = new URL(done.url).searchParams.get('code')!
  const fields = { grant_type: 'authorization_code', client_id, code, redirect_uri: redirectUri }
  assert.equal((await tokenRequest(own, { ...fields, code_verifier: verifier })).status, 200)
})
