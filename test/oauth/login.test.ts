/** A person signs in from the command line and from the SDK, and concurrent commands renew the tokens once. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { actingScopes } from '#edges/oauth/paths-and-scopes.ts'
import {
  AuthenticationError,
  beginSignIn,
  completeSignIn,
  memoryTokenStore,
  type OAuthTokens,
  oauthSession,
  portico,
  signOut,
} from '#sdk/sdk.ts'
import { query } from '#store/query.ts'
import { dataFolder } from '../harness/gateway.ts'
import { createBrowser, createOAuthApp, type OAuthApp, signUp } from './oauth-app.ts'
import { tokenRequest } from './session.ts'

const cli = fileURLToPath(new URL('../../src/edges/cli/main.ts', import.meta.url))
const folder = dataFolder()
const sessionPath = join(folder.path, 'portico/session.json')
type Session = { tokens: OAuthTokens & { refreshToken: string } }
const session = () => JSON.parse(readFileSync(sessionPath, 'utf8')) as Session
const update = (change: Partial<Session['tokens']>) => {
  const { tokens, ...rest } = session()
  writeFileSync(sessionPath, JSON.stringify({ ...rest, tokens: { ...tokens, ...change } }))
}

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(async () => {
  await app?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const env = () => ({ PATH: process.env.PATH, XDG_CONFIG_HOME: folder.path, PORTICO_URL: app.base })
const command = async (...words: string[]) => {
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [cli, ...words], { env: env() })
    return { code: 0, stdout, stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, stdout, stderr }
  }
}

/** The address that `portico login` prints. */
async function startLogin(): Promise<{ url: string; ended: Promise<unknown> }> {
  const child = spawn(process.execPath, [cli, 'login', '--no-browser'], { env: env() })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.once('exit', () => reject(new Error(`no address: ${text}`)))
    // Read to its end: a command whose reader has left ends with another exit code.
    child.stderr.on('data', (chunk) => {
      text += chunk
      const found = /^(http\S+)\n/m.exec(text)?.[1]
      if (found) resolve(found)
    })
  })
  return { url, ended }
}

/** The address that opened the browser. */
async function loginAs(email: string): Promise<string> {
  const { url, ended } = await startLogin()
  const browser = createBrowser()
  const consent = await signUp(app, browser, await browser.open(url), email)
  assert.match(consent.html, /Connect Portico command line\?/)
  const asked = consent.html.match(/The app asks for it/g)
  assert.equal(asked?.length, actingScopes.length, 'every command works where its box is ticked')
  const { url: back } = await browser.submit(consent, 'allow')
  // A page that guesses the port does not end the sign-in.
  const forged = new URL(back)
  forged.searchParams.set('state', 'forged')
  assert.equal((await fetch(forged)).status, 404)
  const page = await fetch(back)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(await page.text(), /<h1>You are signed in<\/h1><p>Return to the terminal\.<\/p>/)
  assert.equal(await ended, 0)
  return url
}

test('portico login stores tokens for their owner alone, and commands act for the person', async () => {
  await loginAs('login@example.com')
  assert.equal(statSync(sessionPath).mode & 0o777, 0o600)
  const shown = await command('user', 'show', '--json')
  assert.equal(shown.code, 0, shown.stderr)
  assert.equal(JSON.parse(shown.stdout).auth_scheme, 'oauth')
  // Tokens are sent to the gateway that issued them, and to no other.
  const other = await command('user', 'show', '--retries', '0', '--base-url', `${app.base}/elsewhere`)
  assert.notEqual(other.code, 0)
  assert.ok(!JSON.stringify(other).includes(session().tokens.accessToken))
})

test('concurrent commands renew an access token once, also after a command was killed', async () => {
  const before = session().tokens
  update({ endsAtMs: 0 })
  const lock = `${sessionPath}.lock`
  writeFileSync(lock, 'of a killed command')
  const longAgo = new Date(Date.now() - 3_600_000)
  utimesSync(lock, longAgo, longAgo)
  const all = await Promise.all(Array.from({ length: 5 }, () => command('user', 'show', '--json')))
  for (const { code, stderr } of all) assert.equal(code, 0, stderr)
  const renewed = session().tokens
  assert.notEqual(renewed.refreshToken, before.refreshToken)
  assert.equal(existsSync(lock), false)
  // A refresh token that was used twice would have ended the sign-in.
  update({ accessToken: 'eyJ.refused.token' })
  assert.equal((await command('user', 'show')).code, 0)
})

/** A server that is out of order. */
async function listening() {
  const server = createServer((_request, response) => response.writeHead(503).end('{}'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}

test('portico logout without an answer keeps the tokens and says what to do, and the next one ends them', async () => {
  const { refreshToken, clientId, revocationEndpoint } = session().tokens
  const closed = await listening()
  await closed[Symbol.asyncDispose]()
  await using busy = await listening()
  for (const { port } of [closed, busy]) {
    update({ revocationEndpoint: `http://127.0.0.1:${port}/oauth/revoke` })
    const refused = await command('logout')
    assert.notEqual(refused.code, 0)
    assert.match(refused.stderr, /You are still signed in: sign out again .* disconnect/)
    assert.equal(session().tokens.refreshToken, refreshToken)
  }
  assert.equal((await command('user', 'show')).code, 0)
  update({ revocationEndpoint })
  const { refreshToken: last } = session().tokens
  const { stdout, code } = await command('logout')
  assert.deepEqual([code, /signed out/.test(stdout), existsSync(sessionPath)], [0, true, false])
  const refresh = { grant_type: 'refresh_token', client_id: clientId, refresh_token: last }
  assert.equal((await tokenRequest(app, refresh)).error, 'invalid_grant')
})

test('a machine is one client of a gateway, also after a logout, and a new one where the gateway forgot it', async () => {
  const clientOf = (url: string) => new URL(url).searchParams.get('client_id')
  const first = await loginAs('machine@example.com')
  assert.equal((await command('logout')).code, 0)
  assert.equal(clientOf(await loginAs('second@example.com')), clientOf(first))
  assert.equal((await command('logout')).code, 0)
  await query(app.database.pool, `delete from oauth_record where model = 'Client' and id = $1 returning id`, [
    clientOf(first),
  ])
  const registered = clientOf(await loginAs('third@example.com'))
  assert.notEqual(registered, clientOf(first))
  assert.equal(clientOf(await loginAs('fourth@example.com')), registered)
})

test('portico logout revokes the tokens', async () => {
  const { accessToken } = session().tokens
  assert.equal((await command('logout')).code, 0)
  assert.equal(existsSync(sessionPath), false)
  assert.equal((await command('user', 'show')).code, 3)
  const client = portico({ baseUrl: app.base, auth: { token: accessToken } })
  await assert.rejects(client.user.show(), AuthenticationError)
  assert.equal((await command('logout')).code, 2)
})

test('a person who refuses leaves no tokens, and the command says so', async () => {
  const { url, ended } = await startLogin()
  const browser = createBrowser()
  const consent = await signUp(app, browser, await browser.open(url), 'refuses@example.com')
  const { url: back } = await browser.submit(consent, 'deny')
  assert.match(await (await fetch(back)).text(), /access_denied/)
  assert.equal(await ended, 3)
  assert.equal(existsSync(sessionPath), false)
})

test('the SDK signs a person in, renews for concurrent clients once, and signs out', async () => {
  const { url, pending } = await beginSignIn({
    baseUrl: app.base,
    redirectUri: 'https://app.example.com/callback',
    clientName: 'SDK',
  })
  const browser = createBrowser()
  const consent = await signUp(app, browser, await browser.open(url), 'sdk@example.com')
  const { url: back } = await browser.submit(consent, 'allow')
  const forged = new URL(back)
  forged.searchParams.set('iss', 'https://evil.example.com')
  await assert.rejects(completeSignIn(pending, forged), { code: 'wrong_issuer' })
  await assert.rejects(completeSignIn({ ...pending, state: 'other' }, back), { code: 'wrong_state' })
  const tokens = await completeSignIn(JSON.parse(JSON.stringify(pending)), back)
  const store = memoryTokenStore({ ...tokens, endsAtMs: 0 })
  const clients = [1, 2, 3].map(() => portico({ baseUrl: app.base, auth: oauthSession(store) }))
  await clients[0]!.auth.signup({ name: 'SDK' })
  await store.write({ ...(await store.read())!, endsAtMs: 0 })
  const shown = await Promise.all(
    [1, 2, 3].map(() => portico({ baseUrl: app.base, auth: oauthSession(store) }).user.show()),
  )
  assert.equal(new Set(shown.map(({ user_id }) => user_id)).size, 1)
  assert.notEqual((await store.read())?.refreshToken, tokens.refreshToken)
  await signOut(store)
  await assert.rejects(clients[1]!.user.show(), { code: 'signed_out' })
})

test('tokens that were revoked elsewhere end the sign-in', async () => {
  await loginAs('revoked@example.com')
  const { tokens } = session()
  await signOut(memoryTokenStore(tokens))
  assert.equal((await command('user', 'show')).code, 3)
  assert.equal(existsSync(sessionPath), false)
})

test('a refused renewal removes no tokens that a new sign-in has stored meanwhile', async () => {
  await loginAs('again@example.com')
  const { tokens } = session()
  const store = memoryTokenStore({ ...tokens, refreshToken: 'of-an-ended-sign-in', endsAtMs: 0 })
  const signingIn: typeof fetch = async (url, init) => {
    await store.write(tokens)
    return fetch(url, init)
  }
  const auth = oauthSession(store, { fetch: signingIn })
  assert.equal(typeof (await portico({ baseUrl: app.base, auth }).user.show()).user_id, 'string')
  assert.deepEqual(await store.read(), tokens)
})

test('a gateway that calls itself by another address is refused before anything is sent', async () => {
  await assert.rejects(
    beginSignIn({ baseUrl: app.base.replace('127.0.0.1', 'localhost'), redirectUri: 'http://127.0.0.1/cb' }),
    { code: 'wrong_address' },
  )
})
