/** A gateway behind which the authorization server of somebody else issues the tokens, and a client of that server. */
import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import { type Account, startIdentityProvider } from '#world/identity/identity.ts'
import { client as gatewayClient } from './facade-app.ts'
import { createBrowser, createOAuthApp } from './oauth-app.ts'

export const insecure = { [oauth.allowInsecureRequests]: true }
export const redirect_uri = 'https://app.example.com/callback'

/** `hasPages`: the gateway is a client of the other server, and so has pages for people. */
export async function createProxyApp({ hasPages = false } = {}) {
  await using parts = new AsyncDisposableStack()
  const resources: string[] = []
  const identity = parts.use(await startIdentityProvider({ registration: true, resources }))
  const app = parts.use(
    await createOAuthApp({
      env: {
        AUTH_MODE: 'proxy',
        IDENTITY_ISSUER: identity.issuer,
        ...(hasPages && {
          IDENTITY_CLIENT_ID: gatewayClient.client_id,
          IDENTITY_CLIENT_SECRET: gatewayClient.client_secret,
        }),
      },
    }),
  )
  resources.push(app.base, `${app.base}/mcp`, 'https://another.example')
  identity.addClient({ ...gatewayClient, redirect_uris: [`${app.base}/oauth/callback`] })
  const owned = parts.move()
  return { app, identity, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
export type ProxyApp = Awaited<ReturnType<typeof createProxyApp>>

/** The flow of a strict client, which trusts the issuer that the resource names, over the endpoints of the gateway. */
export async function externalTokens(
  { app: { base }, identity }: Pick<ProxyApp, 'identity'> & { app: { base: string } },
  subject: string,
  { resource = base, acts = '', clientId = '', account = {} as Account } = {},
) {
  identity.accounts.set(subject, { email: `${subject}@example.com`, email_verified: true, ...account })
  const issuer = new URL(identity.issuer)
  const document = await oauth.discoveryRequest(new URL(base), { algorithm: 'oauth2', ...insecure })
  const as = await oauth.processDiscoveryResponse(issuer, document)
  const metadata = { redirect_uris: [redirect_uri], grant_types: ['authorization_code', 'refresh_token'] }
  const client: oauth.Client = clientId
    ? { client_id: clientId }
    : await oauth.processDynamicClientRegistrationResponse(
        await oauth.dynamicClientRegistrationRequest(as, metadata, insecure),
      )
  const verifier = oauth.generateRandomCodeVerifier()
  const url = new URL(as.authorization_endpoint!)
  const fields = {
    client_id: client.client_id,
    redirect_uri,
    response_type: 'code',
    scope: `openid email ${acts}`.trim(),
    state: 's1',
    resource,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
  const there = await createBrowser().open(url.href)
  assert.ok(there.url.startsWith(identity.issuer), there.url)
  const browser = createBrowser()
  const login = await browser.open(there.url)
  const action = new URL(/action="([^"]*)"/.exec(login.html)![1]!, login.url)
  const done = await browser.open(action.href, { method: 'POST', body: new URLSearchParams({ subject }) })
  const answer = oauth.validateAuthResponse(as, client, new URL(done.url), 's1')
  const redeem = () =>
    oauth.authorizationCodeGrantRequest(as, client, oauth.None(), answer, redirect_uri, verifier, insecure)
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, await redeem())
  const refresh = async (token: string) =>
    oauth.processRefreshTokenResponse(
      as,
      client,
      await oauth.refreshTokenGrantRequest(as, client, oauth.None(), token, insecure),
    )
  return { tokens, refresh, headers: { authorization: `Bearer ${tokens.access_token}` } }
}
