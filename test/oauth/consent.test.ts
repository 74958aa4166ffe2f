/** What an app may do is what the person chose on the consent page, whatever the app asked for. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { actingScopes } from '#edges/oauth/paths-and-scopes.ts'
import { http } from '../harness/gateway.ts'
import { createBrowser, createOAuthApp, type OAuthApp, password } from './oauth-app.ts'
import {
  authorizeUrl,
  connectingPerson,
  consentFor,
  redirectUri,
  signUpUser,
  tokenRequest,
} from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

const scopesIn = (text: string): string[] =>
  text.split(' ').filter((each) => /^(?:trade|earn|chat|manage|propose)$/.test(each))
const scopesOfToken = (token: string): string[] => {
  const { scope } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { scope: string }
  return scopesIn(scope)
}
const ticked = (html: string): string[] =>
  [...html.matchAll(/name="(\w+)" value="yes" checked/g)].map(([, name]) => name!)

/** One operation of each scope that needs no upstream, whose input is valid. */
const calls = {
  read: ['GET', '/v1/user', undefined],
  trade: ['POST', '/v1/tasks/01890000-0000-7000-8000-000000000000/cancel', {}],
  manage: ['PUT', '/v1/policy', {}],
} as const
async function refusals(authorization: string): Promise<string[]> {
  const refused: string[] = []
  for (const [scope, [method, path, body]] of Object.entries(calls)) {
    const { status, body: answer } = await http(app.base + path, { method, body, headers: { authorization } })
    if (answer.code !== 'insufficient_scope') continue
    assert.deepEqual([status, answer.scope], [403, scope])
    assert.match(String(answer.detail), /connect the app again/)
    refused.push(scope)
  }
  return refused
}

test('who knows the address of a consent connects no app: its form has a proof, and its page no opener', async () => {
  const { browser, consent } = await consentFor(app, { scope: 'openid trade' })
  assert.equal(consent.headers.get('cross-origin-opener-policy'), 'noopener-allow-popups')
  const proof = /name="csrf" value="([0-9a-f]{64})"/.exec(consent.html)?.[1]
  const other = await consentFor(app)
  const foreign = /name="csrf" value="([0-9a-f]{64})"/.exec(other.consent.html)?.[1]
  assert.ok(proof && foreign && proof !== foreign)
  for (const csrf of ['', foreign]) {
    const body = new URLSearchParams({
      csrf,
      ...Object.fromEntries(actingScopes.map((each) => [each, 'yes'])),
    })
    const url = `${consent.url}/allow`
    const refused = await browser.open(url, { method: 'POST', body, headers: { origin: app.base } })
    assert.equal(refused.status, 403)
  }
  const done = await browser.submit(consent, 'allow', { trade: 'yes' })
  assert.match(done.url, /^https:\/\/app\.example\.com\/callback\?code=/)
})

test('an app reads, and acts only as the person allowed on the consent page', async () => {
  const person = connectingPerson(app)
  const reader = await person.connect()
  await signUpUser(app, reader.authorization)
  assert.deepEqual(ticked(reader.page.html), [])
  assert.deepEqual(scopesOfToken(reader.tokens.access_token), [])
  assert.deepEqual(await refusals(reader.authorization), ['trade', 'manage'])
  for (const scope of actingScopes) {
    const { tokens, authorization } = await person.connect({ allows: [scope] })
    assert.deepEqual(scopesIn(tokens.scope), [scope], 'the token answer names what the client got')
    assert.deepEqual(scopesOfToken(tokens.access_token), [scope])
    assert.deepEqual(
      await refusals(authorization),
      actingScopes.filter((each) => each !== scope && each in calls),
    )
  }
  const actor = await person.connect({ asks: actingScopes.join(' '), allows: actingScopes })
  assert.deepEqual(ticked(actor.page.html), [], 'no box is ticked beforehand')
  assert.deepEqual(await refusals(actor.authorization), [])
})

test('an app that asked for more than the person allows gets what was allowed, and no refresh widens it', async () => {
  const person = connectingPerson(app)
  const { tokens, clientId } = await person.connect({ asks: 'trade manage', allows: ['trade'] })
  assert.deepEqual(scopesIn(tokens.scope), ['trade'])
  const refresh = (refresh_token: string, scope?: string) =>
    tokenRequest(app, {
      grant_type: 'refresh_token',
      client_id: clientId,
      refresh_token,
      ...(scope && { scope }),
    })
  assert.equal((await refresh(tokens.refresh_token, 'openid trade manage')).error, 'invalid_scope')
  const renewed = await refresh(tokens.refresh_token)
  assert.deepEqual(scopesOfToken(renewed.access_token), ['trade'])
})

test('a scope that was taken back is gone from the next token, and is not given without a consent', async () => {
  const person = connectingPerson(app)
  const first = await person.connect({ allows: ['trade', 'earn'] })
  const { clientId } = first
  const second = await person.connect({ clientId, asks: 'trade earn', allows: ['earn'] })
  assert.deepEqual(scopesOfToken(second.tokens.access_token), ['earn'])
  const renewed = await tokenRequest(app, {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: first.tokens.refresh_token,
  })
  assert.deepEqual(scopesOfToken(renewed.access_token), ['earn'])
  const browser = createBrowser()
  const page = await browser.open(authorizeUrl(app, clientId, { scope: 'openid trade', prompt: undefined }))
  const asked = await browser.submit(page, 'sign-in', { email: person.email, password })
  assert.match(asked.html, /may it also act/)
  await browser.submit(asked, 'allow', { earn: 'yes' })
  const silent = await browser.open(authorizeUrl(app, clientId, { scope: 'openid earn', prompt: undefined }))
  assert.ok(silent.url.startsWith(redirectUri), silent.url)
})

test('a client that names no scope gets what the person allows', async () => {
  const { tokens } = await connectingPerson(app).connect({
    allows: ['manage'],
    changes: { scope: undefined, resource: `${app.base}/mcp` },
  })
  assert.deepEqual(scopesOfToken(tokens.access_token), ['manage'])
})

test('the name of the sign-up is shown under the scope profile alone', async () => {
  const person = connectingPerson(app)
  const { authorization } = await person.connect({ asks: 'profile' })
  const infoOf = async (credential: string) =>
    (await http(`${app.base}/oauth/userinfo`, { headers: { authorization: credential } })).body
  assert.equal('name' in (await infoOf(authorization)), false)
  await signUpUser(app, authorization, { name: 'Ada Lovelace' })
  assert.equal((await infoOf(authorization)).name, 'Ada Lovelace')
  const other = await person.connect()
  assert.equal('name' in (await infoOf(other.authorization)), false)
})

/** As simple-oauth2 and @badgateway/oauth2-client send it; both fail where the answer is not JSON by its type. */
async function revoke(clientId: string, token: string, hint = 'access_token'): Promise<unknown> {
  const reply = await fetch(`${app.base}/oauth/revoke`, {
    method: 'POST',
    headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token, token_type_hint: hint, client_id: clientId }).toString(),
  })
  assert.equal(reply.status, 200)
  assert.match(reply.headers.get('content-type') ?? '', /^application\/json(?:;|$)/)
  return reply.json()
}

test('a client that revokes a token ends its connection, whichever of its two tokens it is', async () => {
  const person = connectingPerson(app)
  const { clientId, tokens, authorization } = await person.connect()
  await signUpUser(app, authorization)
  const other = await person.connect()
  const statusOf = async (of: { authorization: string }) =>
    (await http(`${app.base}/v1/user`, { headers: of })).status
  const refresh = (token: string) =>
    tokenRequest(app, { grant_type: 'refresh_token', client_id: clientId, refresh_token: token })
  // Neither of another client, nor forged.
  await revoke(other.clientId, tokens.access_token)
  await revoke(clientId, `${tokens.access_token.slice(0, -4)}AAAA`)
  assert.equal(await statusOf({ authorization }), 200)
  assert.deepEqual(await revoke(clientId, tokens.access_token), {})
  assert.equal(await statusOf({ authorization }), 401)
  assert.equal((await refresh(tokens.refresh_token)).error, 'invalid_grant')
  assert.deepEqual(
    await revoke(clientId, tokens.refresh_token, 'refresh_token'),
    {},
    'both one after the other',
  )
  assert.equal(await statusOf({ authorization: other.authorization }), 200)
  assert.deepEqual(await revoke(other.clientId, other.tokens.refresh_token, 'refresh_token'), {})
  assert.equal(await statusOf({ authorization: other.authorization }), 401)
})

test('a refresh token is introspected, and an access token is not: it says what it is by itself', async () => {
  const { tokens, clientId } = await connectingPerson(app).connect()
  const introspect = async (token: string) => {
    const body = new URLSearchParams({ token, client_id: clientId })
    const reply = await fetch(`${app.base}/oauth/introspect`, { method: 'POST', body })
    return { status: reply.status, ...((await reply.json()) as { active?: boolean; error?: string }) }
  }
  assert.equal((await introspect(tokens.refresh_token)).active, true)
  const { status, error } = await introspect(tokens.access_token)
  assert.deepEqual([status, error], [400, 'unsupported_token_type'])
})

test('a client that asks for login and consent is answered by one sign-in and one consent', async () => {
  const person = connectingPerson(app)
  const { clientId } = await person.connect()
  const browser = createBrowser()
  const asked = await browser.open(authorizeUrl(app, clientId, { prompt: 'login consent' }))
  const consent = await browser.submit(asked, 'sign-in', { email: person.email, password })
  assert.match(consent.html, /<h1>Connect /)
  const done = await browser.submit(consent, 'allow')
  assert.ok(done.url.startsWith(redirectUri), done.url)
  assert.ok(new URL(done.url).searchParams.has('code'))
})
