/** Apps of a person at the MCP door: what they see and may do follows from what the person has allowed. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Scope, scopes } from '#kernel/contract/caller.ts'
import { isScope } from '#kernel/contract/operation.ts'
import { bearer, eventually, http, newAgent, signedAct } from '../harness/gateway.ts'
import { confirming } from '../oauth/confirming.ts'
import { takeAccount } from '../oauth/early-person.ts'
import { createBrowser, createOAuthApp, type OAuthApp } from '../oauth/oauth-app.ts'
import { authorizeUrl, codeFor, connectingPerson, register } from '../oauth/session.ts'
import { errorOf, everyClientOf, modernClient } from './clients.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())
// All people sign up from one address, which may have few codes by email.
beforeEach(async () => {
  app.time.offsetMs = 0
  await app.database.pool.query('delete from sign_in_limit')
})

async function connected(allows: readonly Scope[]) {
  const { authorization } = await connectingPerson(app).connect({ allows })
  return { authorization }
}

type Run = Parameters<typeof everyClientOf>[1]
/** Over each transport. */
async function eachClient(
  credential: Run,
  run: (client: Awaited<ReturnType<typeof everyClientOf>>[number]) => Promise<void>,
): Promise<void> {
  const clients = await everyClientOf(app.base, { ...credential, query: '?sections=all' })
  for (const client of clients) {
    await run(client)
    await client[Symbol.asyncDispose]()
  }
}

/** What no client of MCP can do: it has no private key, and is no page. The sign-up is done by the consent. */
const never = [
  'auth_register',
  'auth_verify',
  'auth_token',
  'auth_create_key',
  'auth_signup',
  'agents_link_code',
  'agents_contest',
  'approvals_approve',
]
/** What a key pair can do once a person decides for it, and what it can never do. */
const whenLinked = ['agents_unlink', 'recipients_add']
const ofPeople = ['agents_link', 'subscriptions_checkout']
const toolsFor = (scopes: readonly Scope[], without: readonly string[] = []): string[] =>
  app.composed.features.operations
    .filter(({ entry: { access } }) => access === 'public' || (isScope(access) && scopes.includes(access)))
    .map(({ name }) => name)
    .filter((name) => !never.includes(name) && !without.includes(name))

const namesOf = (tools: readonly { name: string }[]): string[] =>
  tools.map(({ name }) => name).filter((name) => name !== 'tasks_wait')

test('an app reads by default, and sees the tools of what its person has allowed', async () => {
  for (const allows of [[], ['trade'], ['earn', 'manage']] as const) {
    const expected = toolsFor(['read', ...allows])
    await eachClient(await connected(allows), async (client) => {
      assert.deepEqual(namesOf(await client.listTools()), expected, `${client.name} ${allows.join()}`)
    })
  }
})

test('an app that may only read learns this at first, and what its person can do about it', async () => {
  for (const [allows, readsAlone] of [
    [[], true],
    [['trade'], false],
  ] as const)
    await eachClient(await connected(allows), async (client) => {
      assert.equal(
        /allowed this connection to read alone/.test(client.instructions()),
        readsAlone,
        client.name,
      )
    })
})

test('a tool that the person has not allowed is refused, listed or not', async () => {
  await eachClient(await connected([]), async (client) => {
    const refused = errorOf(await client.call('tasks_cancel', { task_id: 'x' }))
    assert.deepEqual([refused?.code, refused?.status], ['insufficient_scope', 403])
    assert.equal(errorOf(await client.call('tasks_list')), undefined)
  })
})

test('what allows more waits for the page of the person, and no app confirms it', async () => {
  const lower = { per_day_usd: '100' }
  const raise = { per_day_usd: '200' }
  await eachClient(await connected(['manage']), async ({ call }) => {
    assert.equal(errorOf(await call('policy_tighten', lower)), undefined)
    const { code, status, details } = errorOf(await call('policy_tighten', raise))!
    assert.deepEqual([code, status, details], ['insufficient_scope', 403, { scope: 'propose' }])
  })
  await eachClient(await connected(['manage', 'propose']), async ({ call }) => {
    assert.equal(errorOf(await call('policy_tighten', lower)), undefined)
    const asked = (await call('policy_tighten', raise)).structuredContent!
    const { approval_id } = asked.confirmation as { approval_id: string }
    assert.equal(asked.per_day_usd, '100')
    const { code, status, retryable, details } = errorOf(await call('approvals_approve', { approval_id }))!
    assert.deepEqual([code, status, retryable], ['step_up_required', 403, false])
    assert.equal((details as { requires: string }).requires, 'person')
    assert.equal((await call('policy_show')).structuredContent?.per_day_usd, '100')
  })
})

test('a key pair sees the tools of its scopes, and alone cannot do what takes a person', async () => {
  const { token } = await newAgent(app.base)
  await eachClient({ authorization: `Bearer ${token}` }, async (client) => {
    assert.deepEqual(namesOf(await client.listTools()), toolsFor(scopes, [...whenLinked, ...ofPeople]))
    await client.call('policy_tighten', { per_day_usd: '100' })
    const { code, details } = errorOf(await client.call('policy_tighten', { per_day_usd: '300' }))!
    assert.deepEqual([code, (details as { requires: string }).requires], ['step_up_required', 'person'])
  })
})

test('a consent makes the account, so that the first list of the app is whole and its first call works', async () => {
  const credential = await connected(['trade'])
  await using client = await modernClient(app.base, credential)
  const names = namesOf(await client.listTools())
  assert.ok(names.includes('wallets_transfer') && names.includes('wallets_holdings'), String(names))
  assert.ok(!names.includes('auth_signup'))
  const { wallets } = (await client.call('wallets_list')).structuredContent as { wallets: unknown[] }
  assert.equal(wallets.length, 2)
})

test('a person whose account is yet to be made sees every tool, and the one that makes it', async () => {
  const credential = await connected(['trade'])
  await takeAccount(app.database.pool, credential.authorization)
  await using client = await modernClient(app.base, { ...credential, query: '?sections=all' })
  const changes = await client.listen()
  const before = namesOf(await client.listTools())
  const after = toolsFor(['read', 'trade'])
  assert.deepEqual(
    before.filter((name) => name !== 'auth_signup'),
    after,
  )
  assert.equal(errorOf(await client.call('wallets_list'))?.code, 'signup_required')
  assert.equal((await client.call('auth_signup')).structuredContent?.created, true)
  // Until then the client shows what it has cached.
  await eventually(async () => changes() > 0 || undefined, 'the client is notified')
  assert.deepEqual(namesOf(await client.listTools()), after)
})

test('an agent is notified that its tools have changed when a person links it and when the link ends', async () => {
  const person = connectingPerson(app)
  const { authorization } = await person.connect({ allows: ['manage', 'propose'] })
  const asPerson = { authorization }
  const agent = await newAgent(app.base)
  const credential = bearer(agent)
  await using client = await modernClient(app.base, { ...credential, query: '?sections=recipients,agents' })
  assert.deepEqual(client.capabilities(), { ...client.capabilities(), tools: { listChanged: true } })
  const changes = await client.listen()
  const names = async () => namesOf(await client.listTools())
  assert.deepEqual(
    (await names()).filter((name) => whenLinked.includes(name)),
    [],
  )
  // An event that changes no list is no change.
  assert.equal(errorOf(await client.call('agents_list')), undefined)
  const code = await http(`${app.base}/v1/agents/link-codes`, {
    method: 'POST',
    headers: credential,
    body: signedAct(agent, 'agents_link_code'),
  })
  const confirmed = confirming(person, app.base, authorization)
  const link = { method: 'POST', headers: asPerson, body: { code: code.body.code } }
  await confirmed(await http(`${app.base}/v1/agents`, link))
  await eventually(async () => changes() === 1 || undefined, 'the client is notified of the link')
  assert.deepEqual(
    (await names()).filter((name) => whenLinked.includes(name)),
    whenLinked,
  )
  const unlink = { method: 'DELETE', headers: asPerson }
  await confirmed(await http(`${app.base}/v1/agents/${agent.agentId}`, unlink))
  await eventually(async () => changes() === 2 || undefined, 'the client is notified of the end of the link')
})

test('a user has at most ten subscriptions at once', async () => {
  const credential = bearer(await newAgent(app.base))
  const clients = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const client = await modernClient(app.base, credential)
      await client.listen()
      return client
    }),
  )
  const another = await modernClient(app.base, credential)
  await assert.rejects(another.listen(), /429|rate_limited/)
  await clients[0]![Symbol.asyncDispose]()
  await eventually(async () => (await another.listen().catch(() => undefined)) && true, 'a place is free')
  for (const client of [...clients.slice(1), another]) await client[Symbol.asyncDispose]()
})

test('an address of MCP with a query names the same resource, and no other address does', async () => {
  const { redeem } = await codeFor(app, { resource: `${app.base}/mcp?mode=read` })
  const { access_token } = await redeem()
  const claims = JSON.parse(Buffer.from(access_token.split('.')[1]!, 'base64url').toString()) as {
    aud: string
  }
  assert.equal(claims.aud, `${app.base}/mcp`)
  await using client = await modernClient(app.base, {
    authorization: `Bearer ${access_token}`,
    query: '?sections=all&mode=read',
  })
  assert.ok((await client.listTools()).length > 10)
  const { client_id } = await register(app)
  const resource = `${app.base}/mcpx?mode=read`
  const { url } = await createBrowser().open(authorizeUrl(app, client_id, { resource }))
  assert.equal(new URL(url).searchParams.get('error'), 'invalid_target')
})
