/** An app asks for higher limits and for the end of a stop; nothing changes before the person has confirmed it on the page. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { http } from '../harness/gateway.ts'
import { confirming } from './confirming.ts'
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
  state?: string
  status?: string
  approval?: { confirm_url: string }
  confirmation?: { task_id: string; confirm_url: string }
  confirm_url?: string
  paused: { scope: string } | null
  since?: string
  approvals: {
    approval_id: string
    intent_sha256: string
    intent: { details: { name: string; value: string }[] }
  }[]
  code: string
  requires: string
  fields: string[]
  per_day_usd: string
  per_transaction_usd: string
  chat_per_day_usd: string
  chat_remaining_24h_usd: string
  pending_changes: Change[]
  on: boolean
  events: { type: string; data: { cause: string; fields: string[]; effective_at: string | null } }[]
}
type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'

async function manager() {
  const person = connectingPerson(app)
  const { authorization, clientId, tokens } = await person.connect({ allows: ['manage', 'propose'] })
  await signUpUser(app, authorization)
  const confirmed = confirming(person, app.base, authorization)
  const send = (method: Method, path: string, body?: object) =>
    http<Answer>(app.base + path, { method, headers: { authorization }, ...(body && { body }) })
  const ask = async (...given: Parameters<typeof send>) => confirmed(await send(...given))
  return { ask, send, confirmed, person, clientId, tokens }
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
  app.time.offsetMs = 0
})

const waits = { state: 'awaiting_approval', status: 'pending' }
const shownBy = ({ state, status }: Answer) => ({ state, status })

test('an app lowers and stops at once; what allows more waits for the page, right after a sign-in too', async () => {
  const { send, person } = await manager()
  const lowered = await send('PUT', '/v1/policy', { per_day_usd: '100' })
  assert.deepEqual([lowered.body.per_day_usd, lowered.body.confirmation], ['100', undefined])
  const raised = await send('PUT', '/v1/policy', { per_day_usd: '101', per_transaction_usd: '5' })
  const { per_day_usd, per_transaction_usd, pending_changes, confirmation } = raised.body
  assert.deepEqual([per_day_usd, per_transaction_usd, pending_changes], ['100', '5', []])
  const again = await send('PUT', '/v1/policy', { per_day_usd: '101' })
  assert.equal(again.body.confirmation?.task_id, confirmation?.task_id, 'the same request waits once')

  assert.equal((await send('POST', '/v1/kill', { on: true })).body.on, true)
  const lift = (await send('POST', '/v1/kill', { on: false })).body
  assert.deepEqual(shownBy(lift), waits)
  assert.equal((await send('GET', '/v1/policy')).body.paused?.scope, 'user')
  const page = await person.confirm(lift.approval!.confirm_url, 'decline')
  assert.match(page.html, /Declined/)
  assert.equal((await send('GET', '/v1/policy')).body.paused?.scope, 'user')

  const approval = (await send('GET', '/v1/approvals')).body.approvals[0]!
  assert.deepEqual(approval.intent.details, [
    { name: '24 hours', value: '24 hours may cost up to 101 USD instead of 100 USD' },
  ])
  const body = { intent_sha256: approval.intent_sha256 }
  const byApp = await send('POST', `/v1/approvals/${approval.approval_id}/approve`, body)
  assert.deepEqual([byApp.status, byApp.body.requires], [403, 'person'])
  assert.equal(byApp.body.confirm_url, confirmation?.confirm_url)
})

test('a raise that was asked for before the limits changed is not confirmed over the change', async () => {
  const { ask, send, confirmed } = await manager()
  await ask('PUT', '/v1/policy', { per_day_usd: '200' })
  const raise = await send('PUT', '/v1/policy', { per_day_usd: '300' })
  await ask('PUT', '/v1/policy', { per_day_usd: '50' })
  const refused = await confirmed(raise)
  assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'])
  const { per_day_usd, pending_changes } = (await ask('GET', '/v1/policy')).body
  assert.deepEqual([per_day_usd, pending_changes], ['50', []])
  const one = await send('PUT', '/v1/policy', { per_day_usd: '60' })
  const other = await send('PUT', '/v1/policy', { per_day_usd: '70' })
  assert.equal((await confirmed(one)).status, 200)
  assert.equal((await confirmed(other)).status, 409, 'it would drop what waits')
})

test('the end of a stop that was asked for ends no later stop', async () => {
  const { ask, confirmed, person } = await manager()
  const { authorization } = await person.connect({ allows: ['manage', 'propose'] })
  await ask('POST', '/v1/kill', { on: true })
  const headers = { authorization }
  const lift = await http<Answer>(`${app.base}/v1/kill`, { method: 'POST', headers, body: { on: false } })
  await ask('POST', '/v1/kill', { on: false })
  app.time.offsetMs += 1_000
  await ask('POST', '/v1/kill', { on: true })
  const refused = await confirmed(lift)
  assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'])
  assert.equal((await ask('GET', '/v1/policy')).body.paused?.scope, 'user')
  app.time.offsetMs = 0
})

test('the end that a person confirms ends no stop of the operator', async () => {
  const { ask, send } = await manager()
  const { since } = (await ask('POST', '/v1/kill', { on: true })).body
  await app.database.pool.query(
    `insert into kill_switch (scope, subject, since, pressed_at, set_by)
       select scope, subject, since, since, 'operator: a thief has the key' from kill_switch where since = $1`,
    [since],
  )
  assert.equal((await ask('POST', '/v1/kill', { on: false })).body.on, true)
  const { status, body } = await send('POST', '/v1/kill', { on: false })
  assert.deepEqual([status, body.code], [409, 'conflict'])
  assert.equal((await ask('GET', '/v1/policy')).body.paused?.scope, 'user')
})

test('an app that may lower and stop asks for nothing more', async () => {
  const person = connectingPerson(app)
  const { authorization } = await person.connect({ allows: ['manage'] })
  await signUpUser(app, authorization)
  const send = (method: Method, path: string, body: object) =>
    http<Answer>(app.base + path, { method, headers: { authorization }, body })
  assert.equal((await send('PUT', '/v1/policy', { per_day_usd: '100' })).status, 200)
  for (const [method, path, body] of [
    ['PUT', '/v1/policy', { per_day_usd: '101' }],
    ['POST', '/v1/recipients', { chain_id: '8453', address: `0x${'1'.repeat(40)}`, label: 'x' }],
    ['POST', '/v1/agents', { code: '7K3M-Q0WD-2XNB' }],
  ] as const) {
    const refused = await send(method, path, body)
    assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_scope'], path)
  }
})

const claimsOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { auth_time?: number }

test('no token of an app says when its person signed in, refreshed or not', async () => {
  const { clientId, tokens } = await manager()
  const refreshed = await tokenRequest(app, {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: tokens.refresh_token,
  })
  for (const { access_token } of [tokens, refreshed])
    assert.equal(claimsOf(access_token).auth_time, undefined)
})
