/** Tokens that are revoked, on two instances that share a database. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { bearer, dataFolder, freshGateway, freshToken, http, launch, newAgent } from '../harness/gateway.ts'
import { worldOf } from './world.ts'

let first: Awaited<ReturnType<typeof freshGateway>>
let second: Awaited<ReturnType<typeof launch>>
const folder = dataFolder()

before(async () => {
  first = await freshGateway()
  const { env } = await worldOf(first.world)
  second = await launch({ env: { ...env, DATA_DIR: folder.path, DATABASE_URL: first.databaseUrl } })
})
after(async () => {
  await second?.[Symbol.asyncDispose]()
  await first?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const statusOf = async (url: string, token: string) =>
  (await http(`${url}/v1/user`, { headers: bearer({ token }) })).status

/** A notification takes some milliseconds; without it the other instance would cache the token for 30 s. */
async function refusedSoon(url: string, token: string): Promise<number> {
  const startedMs = performance.now()
  while ((await statusOf(url, token)) !== 401) {
    if (performance.now() - startedMs > 20_000) throw new Error('the token still counts after 20 s')
  }
  return performance.now() - startedMs
}

const revoke = (url: string, token: string, query = '') =>
  http<{ revoked: number }>(`${url}/v1/auth/token${query}`, { method: 'DELETE', headers: bearer({ token }) })

test('an agent revokes the presented token, and the other instance rejects it at once', async () => {
  const agent = await newAgent(first.url)
  const other = await freshToken(first.url, agent.agentId, agent.privateKey)
  assert.deepEqual([await statusOf(second.url, agent.token), await statusOf(second.url, other)], [200, 200])
  const answer = await revoke(first.url, agent.token)
  assert.deepEqual([answer.status, answer.body], [200, { revoked: 1 }])
  await refusedSoon(second.url, agent.token)
  assert.equal(await statusOf(first.url, agent.token), 401)
  assert.equal(await statusOf(second.url, other), 200)
  assert.equal((await revoke(second.url, agent.token)).status, 401)
})

test('an agent revokes all its tokens and no other agent loses one', async () => {
  const [agent, bystander] = [await newAgent(first.url), await newAgent(second.url)]
  const tokens = [agent.token]
  for (let n = 0; n < 3; n++) tokens.push(await freshToken(first.url, agent.agentId, agent.privateKey))
  for (const token of tokens) assert.equal(await statusOf(second.url, token), 200)
  for (const [n, { token }] of [agent, bystander].entries()) {
    const body = { url: `http://127.0.0.1:2/${n}` }
    const made = await http(`${first.url}/v1/webhooks`, { method: 'POST', headers: bearer({ token }), body })
    assert.equal(made.status, 200)
  }
  const answer = await revoke(first.url, agent.token, '?all=true')
  assert.deepEqual([answer.status, answer.body], [200, { revoked: 4 }])
  for (const token of tokens) await refusedSoon(second.url, token)
  assert.equal(await statusOf(second.url, bystander.token), 200)
  const again = await freshToken(second.url, agent.agentId, agent.privateKey)
  assert.equal(await statusOf(first.url, again), 200)
  // A token that leaked may have added them.
  const webhooksOf = async (token: string) =>
    (await http<{ webhooks: unknown[] }>(`${first.url}/v1/webhooks`, { headers: bearer({ token }) })).body
      .webhooks.length
  assert.deepEqual([await webhooksOf(again), await webhooksOf(bystander.token)], [0, 1])
})
