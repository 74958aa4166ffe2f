/** Apps of a person at the MCP door: what they see and may do follows from what the person has allowed. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { type Scope, scopes } from '#kernel/contract/caller.ts'
import { isScope } from '#kernel/contract/operation.ts'
import { newAgent } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp } from '../oauth/oauth-app.ts'
import { connectingPerson, signUpUser } from '../oauth/session.ts'
import { errorOf, everyClientOf } from './clients.ts'

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
  await signUpUser(app, authorization)
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

const toolsFor = (scopes: readonly Scope[], { isPerson = true } = {}): string[] =>
  app.composed.features.operations
    .filter(({ entry: { access } }) => {
      if (access === 'public') return true
      return access === 'person' ? isPerson : isScope(access) && scopes.includes(access)
    })
    .map(({ name }) => name)

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
    assert.deepEqual(namesOf(await client.listTools()), toolsFor(scopes, { isPerson: false }))
    await client.call('policy_tighten', { per_day_usd: '100' })
    const { code, details } = errorOf(await client.call('policy_tighten', { per_day_usd: '300' }))!
    assert.deepEqual([code, (details as { requires: string }).requires], ['step_up_required', 'person'])
  })
})
