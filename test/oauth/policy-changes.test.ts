/** A person raises limits and lifts the kill switch over the front door; an app without a fresh sign-in does neither. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, http } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp } from './oauth-app.ts'
import { connectingPerson, signUpUser, tokenRequest } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

type Change = {
  change_id: string
  field: string
  per_day_usd: string
  chat_per_day_usd?: string
  effective_at: string
}
type Answer = {
  code: string
  requires: string
  fields: string[]
  per_day_usd: string
  chat_per_day_usd: string
  chat_remaining_24h_usd: string
  pending_changes: Change[]
  on: boolean
  events: { type: string; data: { cause: string; fields: string[]; effective_at: string | null } }[]
}
type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'

async function manager() {
  const person = connectingPerson(app)
  const { authorization } = await person.connect({ allows: ['manage'] })
  await signUpUser(app, authorization)
  const ask = (method: Method, path: string, body?: object) =>
    http<Answer>(app.base + path, { method, headers: { authorization }, ...(body && { body }) })
  return { ask, person }
}

test('a raised limit waits, is listed, and is cancelled or takes effect; each step is an event', async () => {
  const { ask } = await manager()
  assert.equal((await ask('PUT', '/v1/policy', { per_day_usd: '100' })).body.per_day_usd, '100')
  const raised = await ask('PUT', '/v1/policy', { per_day_usd: '300' })
  assert.equal(raised.status, 200)
  const [first] = raised.body.pending_changes
  assert.deepEqual([raised.body.per_day_usd, first?.field, first?.per_day_usd], ['100', 'per_day_usd', '300'])
  const cancelled = await ask('DELETE', `/v1/policy/changes/${first!.change_id}`)
  assert.deepEqual([cancelled.status, cancelled.body.pending_changes], [200, []])
  assert.equal((await ask('DELETE', `/v1/policy/changes/${first!.change_id}`)).status, 404)

  await ask('PUT', '/v1/policy', { per_day_usd: '200' })
  app.time.offsetMs += 59_000
  assert.equal((await ask('GET', '/v1/policy')).body.per_day_usd, '100')
  app.time.offsetMs += 2_000
  assert.equal((await ask('GET', '/v1/policy')).body.per_day_usd, '200')
  app.time.offsetMs = 0

  const { events } = (await ask('GET', '/v1/notifications?types=policy.changed')).body
  assert.deepEqual(
    events.map(({ data }) => [data.cause, data.fields[0]]),
    [
      ['tightened', 'per_day_usd'],
      ['raised', 'per_day_usd'],
      ['cancelled', 'per_day_usd'],
      ['raised', 'per_day_usd'],
    ],
  )
  assert.deepEqual(
    events.map(({ data }) => data.effective_at !== null),
    [false, true, false, true],
  )
})

test('what chats may start by themselves is raised by a person, waits, and is lowered at once', async () => {
  const { ask } = await manager()
  const chat = async () => (await ask('GET', '/v1/policy')).body
  assert.equal((await chat()).chat_per_day_usd, '0')
  const raised = await ask('PUT', '/v1/policy', { chat_per_day_usd: '50' })
  const [change] = raised.body.pending_changes
  assert.deepEqual(
    [raised.body.chat_per_day_usd, change?.field, change?.chat_per_day_usd],
    ['0', 'chat_per_day_usd', '50'],
  )
  app.time.offsetMs += 61_000
  assert.deepEqual([(await chat()).chat_per_day_usd, (await chat()).chat_remaining_24h_usd], ['50', '50'])
  assert.equal((await ask('PUT', '/v1/policy', { chat_per_day_usd: '20' })).body.chat_per_day_usd, '20')
  app.time.offsetMs = 301_000
  const refused = await ask('PUT', '/v1/policy', { chat_per_day_usd: '21' })
  assert.deepEqual([refused.status, refused.body.fields], [403, ['chat_per_day_usd']])
  app.time.offsetMs = 0
})

test('after the sign-in has aged, the same token lowers limits and stops trading, and loosens nothing', async () => {
  const { ask } = await manager()
  await ask('PUT', '/v1/policy', { per_day_usd: '100' })
  app.time.offsetMs = 301_000
  const refused = await ask('PUT', '/v1/policy', { per_day_usd: '101' })
  assert.deepEqual(
    [refused.status, refused.body.code, refused.body.requires, refused.body.fields],
    [403, 'step_up_required', 'fresh_sign_in', ['per_day_usd']],
  )
  assert.equal((await ask('PUT', '/v1/policy', { per_day_usd: '99' })).status, 200)
  assert.equal((await ask('POST', '/v1/kill', { on: true })).body.on, true)
  const resumed = await ask('POST', '/v1/kill', { on: false })
  assert.deepEqual([resumed.status, resumed.body.code], [403, 'step_up_required'])
  app.time.offsetMs = 0
  assert.deepEqual((await ask('POST', '/v1/kill', { on: false })).body.on, false)
})

const signedInAt = (token: string): number =>
  (JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { auth_time: number }).auth_time

test('a refreshed token keeps the time of its sign-in, and no chain of refreshes makes it fresh', async () => {
  const { clientId, tokens, authorization } = await connectingPerson(app).connect({ allows: ['manage'] })
  await signUpUser(app, authorization)
  const at = signedInAt(tokens.access_token)
  const isLater = async () => (Date.now() >= (at + 3) * 1_000 ? true : undefined)
  await eventually(isLater, 'the third second after the sign-in', 10_000)
  const refresh = (refresh_token: string) =>
    tokenRequest(app, { grant_type: 'refresh_token', client_id: clientId, refresh_token })
  const once = await refresh(tokens.refresh_token)
  const twice = await refresh(once.refresh_token)
  assert.deepEqual([signedInAt(once.access_token), signedInAt(twice.access_token)], [at, at])
  const resume = (token: string) =>
    http<Answer>(`${app.base}/v1/kill`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: { on: false },
    })
  await http(`${app.base}/v1/kill`, { method: 'POST', headers: { authorization }, body: { on: true } })
  // Within the 300 seconds, where they were counted from the refresh.
  app.time.offsetMs = (at + 301.5) * 1_000 - Date.now()
  for (const { access_token } of [tokens, once, twice]) {
    const { status, body } = await resume(access_token)
    assert.deepEqual([status, body.code, body.requires], [403, 'step_up_required', 'fresh_sign_in'])
  }
  app.time.offsetMs = 0
  assert.equal((await resume(twice.access_token)).status, 200)
})

test('a sign-in for one app is not fresh for another app of the same browser', async () => {
  const person = connectingPerson(app)
  const first = await person.connect({ allows: ['manage'] })
  await signUpUser(app, first.authorization)
  assert.ok(signedInAt(first.tokens.access_token) > 0)
  const second = await person.connect({ allows: ['manage'] })
  assert.equal(signedInAt(second.tokens.access_token), undefined)
  const switchTo = async (authorization: string, on: boolean) => {
    const { status, body } = await http<Answer>(`${app.base}/v1/kill`, {
      method: 'POST',
      headers: { authorization },
      body: { on },
    })
    return [status, body.requires]
  }
  assert.deepEqual(await switchTo(second.authorization, true), [200, undefined])
  assert.deepEqual(await switchTo(second.authorization, false), [403, 'fresh_sign_in'])
  assert.deepEqual(await switchTo(first.authorization, false), [200, undefined])
})
