/** Common clients, unmodified, sign a person in, renew, read and sign out; what they held is refused afterwards. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { OAuth2Client as BadgatewayClient, generateCodeVerifier } from '@badgateway/oauth2-client'
import * as arctic from 'arctic'
import { type AccessToken, AuthorizationCode } from 'simple-oauth2'
import { http } from '../harness/gateway.ts'
import { createBrowser, createOAuthApp, type OAuthApp, signUp } from './oauth-app.ts'
import { redirectUri, register } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

const scope = ['openid', 'email', 'offline_access', 'trade']
const readStatus = async (token: string) =>
  (await http(`${app.base}/v1/user`, { headers: { authorization: `Bearer ${token}` } })).status

let people = 0
/** Signs a new person up, who allows what the client asks for; resolves with the address that the client is given. */
async function visit(url: string): Promise<URL> {
  const browser = createBrowser()
  const consent = await signUp(app, browser, await browser.open(url), `foreign${++people}@example.com`)
  const done = await browser.submit(consent, 'allow', { trade: 'yes' })
  assert.ok(done.url.startsWith(`${redirectUri}?`), done.url)
  return new URL(done.url)
}

const methods = { body: 'client_secret_post', header: 'client_secret_basic' } as const
/** simple-oauth2 is a client with a secret, and leaves PKCE to its user. */
async function openSimpleClient(authorizationMethod: keyof typeof methods): Promise<AccessToken> {
  const registered = await register(app, {
    client_name: 'Simple',
    token_endpoint_auth_method: methods[authorizationMethod],
  })
  const { client_id: id, client_secret: secret } = registered as unknown as Record<string, string>
  const client = new AuthorizationCode({
    client: { id: id!, secret: secret! },
    auth: {
      tokenHost: app.base,
      tokenPath: '/oauth/token',
      revokePath: '/oauth/revoke',
      authorizePath: '/oauth/authorize',
    },
    options: { authorizationMethod },
  })
  const code_verifier = arctic.generateCodeVerifier()
  const address = client.authorizeURL({
    redirect_uri: redirectUri,
    scope,
    state: 's1',
    code_challenge: createHash('sha256').update(code_verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const code = (await visit(address)).searchParams.get('code')!
  return client.getToken({ code, redirect_uri: redirectUri, code_verifier })
}
const heldBy = ({ token }: AccessToken) => String(token.access_token)

for (const method of Object.keys(methods) as (keyof typeof methods)[])
  test(`simple-oauth2, with its secret in the ${method}, signs in, renews and revokes all`, async () => {
    const first = await openSimpleClient(method)
    assert.equal(await readStatus(heldBy(first)), 200)
    const renewed = await first.refresh()
    assert.equal(await readStatus(heldBy(renewed)), 200)
    await renewed.revokeAll()
    for (const held of [first, renewed]) assert.equal(await readStatus(heldBy(held)), 401)
    await assert.rejects(renewed.refresh(), /400|invalid_grant|Bad Request/)
  })

for (const kind of ['access_token', 'refresh_token'] as const)
  test(`simple-oauth2 revokes its ${kind} alone, which ends the connection`, async () => {
    const signedIn = await openSimpleClient('body')
    await signedIn.revoke(kind)
    assert.equal(await readStatus(heldBy(signedIn)), 401)
    await assert.rejects(signedIn.refresh(), /400|invalid_grant|Bad Request/)
  })

test('@badgateway/oauth2-client finds the server, signs in, renews and revokes', async () => {
  const { client_id: clientId } = await register(app, { client_name: 'Badgateway' })
  const client = new BadgatewayClient({
    clientId,
    server: app.base,
    discoveryEndpoint: '/.well-known/oauth-authorization-server',
  })
  const signIn = async () => {
    const codeVerifier = await generateCodeVerifier()
    const flow = { redirectUri, codeVerifier, state: 's2' }
    const answer = await visit(await client.authorizationCode.getAuthorizeUri({ ...flow, scope }))
    return client.authorizationCode.getTokenFromCodeRedirect(answer, flow)
  }
  const renewed = await client.refreshToken(await signIn())
  assert.equal(await readStatus(renewed.accessToken), 200)
  await client.revoke(renewed)
  assert.equal(await readStatus(renewed.accessToken), 401)
  await assert.rejects(client.refreshToken(renewed), { oauth2Code: 'invalid_grant' })

  const other = await signIn()
  await client.revoke(other, 'refresh_token')
  assert.equal(await readStatus(other.accessToken), 401)
})

test('arctic signs in, renews and revokes', async () => {
  const { client_id: clientId } = await register(app, { client_name: 'Arctic' })
  const client = new arctic.OAuth2Client(clientId, null, redirectUri)
  const at = (path: string) => `${app.base}/oauth/${path}`
  const verifier = arctic.generateCodeVerifier()
  const state = arctic.generateState()
  const { S256 } = arctic.CodeChallengeMethod
  const address = client.createAuthorizationURLWithPKCE(at('authorize'), state, S256, verifier, scope)
  const answer = (await visit(address.href)).searchParams
  assert.equal(answer.get('state'), state)
  const tokens = await client.validateAuthorizationCode(at('token'), answer.get('code')!, verifier)
  assert.ok('sub' in arctic.decodeIdToken(tokens.idToken()))
  assert.ok(tokens.scopes().includes('trade'))
  const renewed = await client.refreshAccessToken(at('token'), tokens.refreshToken(), [])
  assert.equal(await readStatus(renewed.accessToken()), 200)
  await client.revokeToken(at('revoke'), renewed.accessToken())
  assert.equal(await readStatus(renewed.accessToken()), 401)
  await assert.rejects(client.refreshAccessToken(at('token'), renewed.refreshToken(), []), {
    code: 'invalid_grant',
  })
})
