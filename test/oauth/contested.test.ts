/** Refresh tokens that two have used: which of them keeps the connection, and what becomes of the rest. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, http } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp } from './oauth-app.ts'
import { authorizeUrl, connectingPerson, register, signUpUser, tokenRequest } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

test('a thief who refreshes before the owner keeps nothing once the person connects the app again', async () => {
  const person = connectingPerson(app)
  const { clientId: owner, tokens } = await person.connect()
  const refresh = (refresh_token: string) =>
    tokenRequest(app, { grant_type: 'refresh_token', client_id: owner, refresh_token })
  const codeAt = (token: string) =>
    http(`${app.base}/v1/user`, { headers: { authorization: `Bearer ${token}` } }).then(({ status, body }) =>
      status === 200 ? 'accepted' : body.code,
    )
  const stolen = await refresh(tokens.refresh_token)
  assert.equal(stolen.status, 200)
  assert.equal((await refresh(tokens.refresh_token)).error, 'invalid_grant')
  assert.equal(await codeAt(stolen.access_token), 'accepted', 'a parallel refresh alone ends nothing')

  // The app asks without a consent first: the contested grant gives it none.
  const silent = await person.browser.open(authorizeUrl(app, owner, { prompt: 'none' }))
  assert.equal(new URL(silent.url).searchParams.get('error'), 'consent_required')
  const renewed = await person.connect({ clientId: owner })
  assert.equal((await refresh(stolen.refresh_token)).error, 'invalid_grant')
  assert.equal(await codeAt(stolen.access_token), 'invalid_token')
  assert.equal(await codeAt(renewed.tokens.access_token), 'accepted')
  const next = await refresh(renewed.tokens.refresh_token)
  assert.equal(next.status, 200)
  const third = await person.connect({ clientId: owner })
  assert.equal(await codeAt(next.access_token), 'accepted', 'another consent ends no grant in order')
  assert.equal(await codeAt(third.tokens.access_token), 'accepted')
})

/** A connected app whose refresh token somebody else has used first. */
async function contestedConnection() {
  const person = connectingPerson(app)
  const {
    clientId: owner,
    tokens,
    authorization,
  } = await person.connect({ asks: 'manage', allows: ['manage'] })
  await signUpUser(app, authorization)
  const refresh = (refresh_token: string) =>
    tokenRequest(app, { grant_type: 'refresh_token', client_id: owner, refresh_token })
  return { person, owner, tokens, refresh }
}

test('an app that registers anew after a stolen refresh, and what the thief has set up, are covered too', async () => {
  const { person, tokens, refresh } = await contestedConnection()
  const stolen = await refresh(tokens.refresh_token)
  const headers = { authorization: `Bearer ${stolen.access_token}` }
  const body = { url: 'http://127.0.0.1:2/' }
  assert.equal((await http(`${app.base}/v1/webhooks`, { method: 'POST', headers, body })).status, 200)
  assert.equal((await refresh(tokens.refresh_token)).error, 'invalid_grant')
  // Another app of the person changes nothing.
  const { client_id: foreign } = await register(app, { client_name: 'Another app' })
  await person.connect({ clientId: foreign })
  assert.equal((await http(`${app.base}/v1/user`, { headers })).status, 200)
  await person.connect({ asks: 'manage', allows: ['manage'] })
  assert.equal((await refresh(stolen.refresh_token)).error, 'invalid_grant')
  assert.equal((await http(`${app.base}/v1/user`, { headers })).status, 401)
  assert.deepEqual((await app.database.pool.query('select from webhook')).rows, [])
})

test('of two uses of a refresh token at one moment the lost one contests the grant', async () => {
  const { person, owner, tokens, refresh } = await contestedConnection()
  const holder = await app.database.pool.connect()
  await holder.query('begin')
  await holder.query(
    `select from oauth_record where model = 'RefreshToken' and payload->>'clientId' = $1 for update`,
    [owner],
  )
  const uses = Promise.all([refresh(tokens.refresh_token), refresh(tokens.refresh_token)])
  await eventually(async () => {
    const { rows } = await app.database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length >= 2 ? true : undefined
  }, 'both uses wait')
  await holder.query('commit')
  holder.release()
  assert.deepEqual((await uses).map(({ status }) => status).sort(), [200, 400])
  const silent = await person.browser.open(authorizeUrl(app, owner, { prompt: 'none' }))
  assert.equal(new URL(silent.url).searchParams.get('error'), 'consent_required')
})

test('a grant that is contested while its consent page is open is replaced', async () => {
  const { person, owner, tokens, refresh } = await contestedConnection()
  const page = await person.browser.open(authorizeUrl(app, owner))
  const stolen = await refresh(tokens.refresh_token)
  assert.equal((await refresh(tokens.refresh_token)).error, 'invalid_grant')
  const done = await person.browser.submit(page, 'allow')
  assert.ok(new URL(done.url).searchParams.get('code'), `${done.url} ${done.html.slice(-900)}`)
  assert.equal((await refresh(stolen.refresh_token)).error, 'invalid_grant')
})

test('a connection that is refreshed for a long time stays small', async () => {
  const { owner, tokens, refresh } = await contestedConnection()
  let { refresh_token } = tokens
  for (let n = 0; n < 104; n++) ({ refresh_token } = await refresh(refresh_token))
  const { rows } = await app.database.pool.query<{ used: string; all: string }>(
    `select count(consumed_at)::text as used, count(*)::text as all from oauth_record
     where model = 'RefreshToken' and payload->>'clientId' = $1`,
    [owner],
  )
  assert.deepEqual(rows, [{ used: '100', all: '101' }])
})
