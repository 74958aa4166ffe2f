/** An operator ends the access of a person and of an agent, beside a running gateway. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { bearer, dataFolder, eventually, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { type ConnectingPerson, connectingPerson, signUpUser, tokenRequest } from '../oauth/session.ts'
import { codeIn } from './signed-in.ts'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let operator: Operator
const folder = dataFolder()
before(async () => {
  gateway = await freshGateway()
  operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const app = () => ({
  base: gateway.url,
  codeFor: (email: string) => codeIn(gateway.lines, email) ?? assert.fail(`no code for ${email}`),
})
/** An app of the person that has added a webhook. */
async function connect(person: ConnectingPerson) {
  const { clientId, tokens, authorization } = await person.connect({ allows: ['manage'] })
  await signUpUser(app(), authorization)
  const headers = { authorization }
  const body = { url: `http://127.0.0.1:2/${clientId}` }
  assert.equal((await http(`${gateway.url}/v1/webhooks`, { method: 'POST', headers, body })).status, 200)
  const user = async () => {
    const { status, body } = await http<{ agent_id: string }>(`${gateway.url}/v1/user`, { headers })
    return { status, agentId: body.agent_id }
  }
  const refresh = { grant_type: 'refresh_token', client_id: clientId, refresh_token: tokens.refresh_token }
  return {
    clientId,
    token: tokens.access_token,
    user,
    refresh: () => tokenRequest(app(), refresh),
    webhooks: async () =>
      (await http<{ webhooks: object[] }>(`${gateway.url}/v1/webhooks`, { headers })).body.webhooks.length,
  }
}
type App = Awaited<ReturnType<typeof connect>>
/** A notification takes some milliseconds; without it the cache would be stale for a minute. */
const assertEnded = async ({ user, refresh }: App) => {
  await eventually(async () => (await user()).status === 401 || undefined, 'the token is refused', 20_000)
  assert.equal((await refresh()).error, 'invalid_grant')
}

test('tokens, refresh tokens, sessions and webhooks of a person end with one command', async () => {
  const person = connectingPerson(app())
  const other = await connect(connectingPerson(app()))
  const [one, two] = [await connect(person), await connect(person)]
  const { agentId } = await one.user()
  assert.equal((await two.user()).agentId, agentId)
  const done = await operator.act('mailbox stolen', 'tokens', 'revoke', '--user', agentId)
  assert.match(done.out, /2 connections of apps with their sessions are ended, 2 webhooks are deleted/)
  for (const each of [one, two]) await assertEnded(each)
  const page = await person.browser.open(`${gateway.url}/oauth/account`)
  assert.match(page.html, /<h1>Sign in<\/h1>/, 'the browser is signed out')
  const again = await person.connect({ allows: ['manage'] }).catch((error: unknown) => String(error))
  assert.match(String(again), /no form for allow|no tokens/, 'nothing is connected without a sign-in')
  assert.deepEqual([(await other.user()).status, await other.webhooks()], [200, 1])
  const [last] = (await operator.log('--limit', '4')).filter(({ command }) => command === 'tokens revoke')
  assert.deepEqual(last!.details, { tokens: 0, connections: 2, webhooks: 2 })
})

test('the access token of a person ends its connection, and no other one', async () => {
  const person = connectingPerson(app())
  const [leaked, remaining] = [await connect(person), await connect(person)]
  const done = await operator.act('seen in a log', 'tokens', 'revoke', '--token', leaked.token)
  assert.match(done.out, new RegExp(`The connection of the app ${leaked.clientId} to user [0-9a-f-]{36}`))
  await assertEnded(leaked)
  assert.deepEqual([(await remaining.user()).status, await remaining.webhooks()], [200, 1])
  assert.equal((await remaining.refresh()).status, 200)
  const record = JSON.stringify(await operator.log())
  assert.ok(!record.includes(leaked.token), 'a token is in the record')
  for (const token of [leaked.token, 'eyJhbGciOiJub25lIn0.e30.', 'eyJ.garbage'])
    assert.match(
      await operator.refusal('tokens', 'revoke', '--token', token, '--why', 'x'),
      /There is no such token/,
    )
})

test('the webhooks of an agent end with its tokens', async () => {
  const agent = await newAgent(gateway.url)
  const headers = bearer(agent)
  const body = { url: 'http://127.0.0.1:2/agent' }
  assert.equal((await http(`${gateway.url}/v1/webhooks`, { method: 'POST', headers, body })).status, 200)
  const done = await operator.act('leaked', 'tokens', 'revoke', '--user', agent.agentId)
  assert.match(done.out, /1 tokens of user .* are revoked, 1 webhooks are deleted/)
  const [left] = await operator.rows<{ count: string }>(
    'psql',
    `select count(*) from webhook w join app_user u on u.id = w.user_id where u.agent_id = '${agent.agentId}'`,
  )
  assert.equal(Number(left!.count), 0)
})
