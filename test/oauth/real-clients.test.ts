/** What clients in the field send, which differs from what the standard client of the tests sends. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createBrowser, createOAuthApp, type OAuthApp, signUp } from './oauth-app.ts'
import { authorizeUrl, register, tokenRequest, verifier } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

let people = 0
/** From the registration to a token; the person allows no act. */
async function connect(metadata: Record<string, unknown>, request: Record<string, string | undefined> = {}) {
  const { client_id: clientId, status, ...registered } = await register(app, metadata)
  assert.equal(status, 201, JSON.stringify(registered))
  const redirect_uri = request.redirect_uri ?? (metadata.redirect_uris as string[])[0]!
  const browser = createBrowser()
  const opened = await browser.open(
    authorizeUrl(app, clientId, { prompt: undefined, ...request, redirect_uri }),
  )
  const consent = await signUp(app, browser, opened, `client${++people}@example.com`)
  const done = await browser.submit(consent, 'allow')
  const code = new URL(done.url).searchParams.get('code')
  assert.ok(code, done.url)
  const tokens = await tokenRequest(app, {
    grant_type: 'authorization_code',
    client_id: clientId,
    code,
    redirect_uri,
    code_verifier: verifier,
  })
  assert.equal(tokens.status, 200, JSON.stringify(tokens))
  return { registered, tokens }
}

const web = ['https://claude.ai/api/mcp/auth_callback']

test('a registration that names a scope of another server is accepted', async () => {
  const { tokens } = await connect(
    { redirect_uris: web, scope: 'claudeai', grant_types: ['authorization_code', 'refresh_token'] },
    { scope: 'claudeai' },
  )
  assert.ok(tokens.access_token)
})

test('an app with a scheme of its own, a website and a port of loopback registers them together', async () => {
  await connect({
    redirect_uris: [
      'cursor://anysphere.cursor-mcp/oauth/callback',
      'https://www.cursor.com/agents/mcp/oauth/callback',
      'http://localhost:8787/callback',
    ],
  })
  const { status } = await register(app, {
    redirect_uris: ['javascript:alert(1)', 'http://localhost:1/callback'],
  })
  assert.equal(status, 400)
})

test('a client that asks for offline access without a prompt gets a refresh token', async () => {
  const { tokens } = await connect({ redirect_uris: web }, { scope: 'openid email offline_access profile' })
  assert.ok(tokens.refresh_token)
})

test('a request for an act alone reads, where the person allows no act', async () => {
  const { tokens } = await connect({ redirect_uris: web }, { scope: 'trade' })
  assert.ok(!tokens.scope.split(' ').includes('trade'))
})

test('a public client gets no secret that the token endpoint would refuse', async () => {
  const { registered } = await connect({ redirect_uris: web })
  assert.ok(!('client_secret' in registered))
})

test('the address of MCP is a resource with a trailing slash, too', async () => {
  const { tokens } = await connect({ redirect_uris: web }, { resource: `${app.base}/mcp/` })
  const { aud } = JSON.parse(Buffer.from(tokens.access_token.split('.')[1]!, 'base64url').toString())
  assert.equal(aud, `${app.base}/mcp`)
})
