/** Keys of the authorization server over months, on two instances; and clients that nobody uses. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { query } from '#store/query.ts'
import { http } from '../harness/gateway.ts'
import {
  createBrowser,
  createOAuthApp,
  type OAuthApp,
  type OAuthInstance,
  openOAuthInstance,
} from './oauth-app.ts'
import { authorizeUrl, codeFor, register, tokenRequest } from './session.ts'

const minuteMs = 60_000
const dayMs = 86_400_000

let app: OAuthApp
let other: OAuthInstance
before(async () => {
  app = await createOAuthApp()
  other = await openOAuthInstance({ databaseUrl: app.databaseUrl, baseUrl: app.base })
})
after(async () => {
  await other?.[Symbol.asyncDispose]()
  await app?.[Symbol.asyncDispose]()
})

const travel = (ms: number) => {
  app.time.offsetMs += ms
  other.time.offsetMs += ms
}
const headerOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()) as { kid: string }
const publishedAt = async (address: string): Promise<string[]> => {
  const { body } = await http<{ keys: { kid: string }[] }>(`${address}/oauth/jwks`)
  return body.keys.map(({ kid }) => kid).sort()
}
const keysAt = async (address: string) =>
  createLocalJWKSet((await http<{ keys: { kid: string }[] }>(`${address}/oauth/jwks`)).body as never)

test('a key is published before it signs, and the former ones still verify and open sessions', async () => {
  const { redeem, clientId, browser } = await codeFor(app)
  const first = await redeem()
  const [kid] = await publishedAt(app.address)
  assert.equal(headerOf(first.access_token).kid, kid)
  travel(30 * dayMs - 9 * minuteMs)
  const announced = await publishedAt(app.address)
  assert.equal(announced.length, 2)
  assert.deepEqual(await publishedAt(other.address), announced, 'instances agree')
  const refresh = (refresh_token: string) =>
    tokenRequest(app, { grant_type: 'refresh_token', client_id: clientId, refresh_token })
  const before = await refresh(first.refresh_token)
  assert.equal(headerOf(before.access_token).kid, kid, 'not used yet')
  travel(12 * minuteMs)
  const after = await refresh(before.refresh_token)
  assert.notEqual(headerOf(after.access_token).kid, kid)
  // The server issues by the time of the machine, so the published keys are asked and not the verification by our clock.
  for (const address of [app.address, other.address])
    for (const { access_token } of [before, after])
      assert.ok((await jwtVerify(access_token, await keysAt(address))).payload.sub)
  const again = await browser.open(authorizeUrl(app, clientId))
  assert.equal(again.status, 200)
})

test('cookies of a former key hold a session that began before the rotation', async () => {
  const { clientId, browser } = await codeFor(app)
  travel(13 * dayMs)
  const page = await browser.open(authorizeUrl(app, clientId, { prompt: undefined, scope: 'openid email' }))
  assert.match(page.url, /[?&]code=/, 'signed in and connected')
})

test('two instances that rotate at once make one key', async () => {
  travel(31 * dayMs)
  const keysOf = async () =>
    query<{ purpose: string }>(app.database.pool, 'select purpose from oauth_key where active_at > $1', [
      new Date(Date.now() + app.time.offsetMs),
    ])
  await Promise.all([publishedAt(app.address), publishedAt(other.address)])
  const upcoming = await keysOf()
  assert.deepEqual(upcoming.map(({ purpose }) => purpose).sort(), ['cookie', 'signing'])
})

test('a client that nobody connected ends after a day, and a connected one after 90 idle days', async () => {
  const unused = (await register(app)).client_id
  const { redeem, clientId } = await codeFor(app)
  assert.equal((await redeem()).status, 200)
  const isKnown = async (client_id: string) =>
    (await createBrowser().open(authorizeUrl(app, client_id))).status === 200
  travel(dayMs - minuteMs)
  assert.ok(await isKnown(unused))
  travel(2 * minuteMs)
  assert.equal(await isKnown(unused), false)
  assert.ok(await isKnown(clientId))
  travel(88 * dayMs)
  assert.ok(await isKnown(clientId))
  travel(2 * dayMs)
  assert.equal(await isKnown(clientId), false)
})
