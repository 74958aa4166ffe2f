/** Strict foreign clients run discovery, registration, code with PKCE, refresh and reuse detection. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import { http } from '../harness/gateway.ts'
import { createBrowser, createOAuthApp, type OAuthApp, openOAuthInstance, signUp } from './oauth-app.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

const redirect_uri = 'http://127.0.0.1:7777/callback'
const scope = 'openid email offline_access'
const insecure = { [oauth.allowInsecureRequests]: true }

test('openid-client discovers, registers, obtains tokens, calls an operation and refreshes', async () => {
  const config = await client.dynamicClientRegistration(
    new URL(app.base),
    { client_name: 'Strict client', redirect_uris: [redirect_uri] },
    client.None(),
    { execute: [client.allowInsecureRequests], algorithm: 'oauth2' },
  )
  const verifier = client.randomPKCECodeVerifier()
  const state = client.randomState()
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri,
    scope,
    prompt: 'consent',
    resource: app.base,
    state,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  const browser = createBrowser()
  const consent = await signUp(app, browser, await browser.open(url.href), 'ada@example.com')
  assert.match(consent.html, /Connect Strict client\?/)
  const done = await browser.submit(consent, 'allow')
  assert.ok(done.url.startsWith(redirect_uri), done.url)
  const tokens = await client.authorizationCodeGrant(config, new URL(done.url), {
    pkceCodeVerifier: verifier,
    expectedState: state,
    idTokenExpected: true,
  })
  assert.equal(tokens.expires_in, 600)
  const claims = JSON.parse(Buffer.from(tokens.access_token.split('.')[1]!, 'base64url').toString())
  assert.equal(claims.aud, app.base)
  assert.equal(claims.iss, app.base)

  const headers = { authorization: `Bearer ${tokens.access_token}` }
  // The consent has made the account, and the first call of the sign-up names it.
  const early = await http(`${app.base}/v1/user`, { headers })
  assert.deepEqual([early.status, early.body.name], [200, null], JSON.stringify(early.body))
  const first = await http(`${app.base}/signup`, {
    method: 'POST',
    headers,
    body: { name: 'Ada', plan: ['x'] },
  })
  assert.deepEqual([first.status, first.body.created], [200, true], JSON.stringify(first.body))
  assert.equal(first.body.credits_available, 200)
  const again = await http(`${app.base}/signup`, { method: 'POST', headers, body: { name: 'Other' } })
  assert.deepEqual(again.body, { ...first.body, created: false })
  const me = await http(`${app.base}/v1/user`, { headers })
  assert.deepEqual([me.status, me.body.auth_scheme, me.body.user_id], [200, 'oauth', first.body.user_id])
  const info = await client.fetchUserInfo(config, tokens.access_token, claims.sub)
  assert.equal(info.email, 'ada@example.com')

  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token!)
  assert.notEqual(refreshed.refresh_token, tokens.refresh_token)
  // A refresh in parallel is refused, and ends nothing; a later one ends the connection.
  await assert.rejects(client.refreshTokenGrant(config, tokens.refresh_token!), { error: 'invalid_grant' })
  const next = await client.refreshTokenGrant(config, refreshed.refresh_token!)
  app.time.offsetMs += 11_000
  await assert.rejects(client.refreshTokenGrant(config, tokens.refresh_token!), { error: 'invalid_grant' })
  await assert.rejects(client.refreshTokenGrant(config, next.refresh_token!), { error: 'invalid_grant' })
  const dead = await http(`${app.base}/v1/user`, { headers })
  assert.deepEqual([dead.status, dead.body.code], [401, 'invalid_token'])
})

test('oauth4webapi accepts both discovery documents, and two instances agree', async () => {
  await using other = await openOAuthInstance({ databaseUrl: app.databaseUrl, baseUrl: app.base })
  const issuer = new URL(app.base)
  const as = await oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }),
  )
  await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  const resource = await oauth.processResourceDiscoveryResponse(
    issuer,
    await oauth.resourceDiscoveryRequest(issuer, insecure),
  )
  assert.deepEqual(resource.authorization_servers, [app.base])
  const mcp = new URL(`${app.base}/mcp`)
  await oauth.processResourceDiscoveryResponse(mcp, await oauth.resourceDiscoveryRequest(mcp, insecure))
  const registered = await oauth.processDynamicClientRegistrationResponse(
    await oauth.dynamicClientRegistrationRequest(as, { redirect_uris: [redirect_uri] }, insecure),
  )
  const verifier = oauth.generateRandomCodeVerifier()
  const query = new URLSearchParams({
    client_id: registered.client_id,
    redirect_uri,
    response_type: 'code',
    scope,
    prompt: 'consent',
    state: 's1',
    resource: `${app.base}/mcp`,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  const browser = createBrowser()
  const consent = await signUp(
    app,
    browser,
    await browser.open(`${as.authorization_endpoint}?${query}`),
    'grace@example.com',
  )
  const done = await browser.submit(consent, 'allow')
  const answer = oauth.validateAuthResponse(as, registered, new URL(done.url), 's1')
  // The code of one instance is redeemed at the other.
  const there = { ...as, token_endpoint: as.token_endpoint!.replace(app.base, other.address) }
  const reply = await oauth.authorizationCodeGrantRequest(
    there,
    registered,
    oauth.None(),
    answer,
    redirect_uri,
    verifier,
    insecure,
  )
  const tokens = await oauth.processAuthorizationCodeResponse(as, registered, reply)
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  for (const url of [app.address, other.address]) {
    const { status } = await http(`${url}/signup`, { method: 'POST', headers, body: {} })
    assert.equal(status, 200)
  }
  const jwks = await Promise.all([app.address, other.address].map((url) => http(`${url}/oauth/jwks`)))
  assert.deepEqual(jwks[0]!.body, jwks[1]!.body)

  const replayed = await oauth.authorizationCodeGrantRequest(
    as,
    registered,
    oauth.None(),
    answer,
    redirect_uri,
    verifier,
    insecure,
  )
  await assert.rejects(oauth.processAuthorizationCodeResponse(as, registered, replayed))
  // The replay ended the whole family, on every instance.
  const refresh = await oauth.refreshTokenGrantRequest(
    as,
    registered,
    oauth.None(),
    tokens.refresh_token!,
    insecure,
  )
  await assert.rejects(oauth.processRefreshTokenResponse(as, registered, refresh), { error: 'invalid_grant' })
  const dead = await http(`${app.address}/v1/user`, { headers })
  assert.equal(dead.status, 401)
})
