/** A linked agent sends where its person allows it, and stops with its person. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, freshGateway, signedAct } from '../harness/gateway.ts'
import { signedInPerson } from './signed-in.ts'
import { createFundedPerson, type Person, type TaskBody } from './users.ts'
import { base, type World, worldOf } from './world.ts'

const friend = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let world: World
before(async () => {
  gateway = await freshGateway({ COOLING_SECONDS: '2' })
  world = await worldOf(gateway.world)
})
after(() => gateway?.[Symbol.asyncDispose]())

const send = (agent: Person) =>
  agent.call<TaskBody & { rule?: string }>('POST /v1/wallets/transfer?wait=true', {
    body: { chain_id: base, token: 'USDC', amount: '1000000', recipient: friend },
  })

test('the person allows a recipient of the agent, sees its money, stops it, and frees it', async () => {
  const [person, agent] = await Promise.all([signedInPerson(gateway), createFundedPerson(gateway.url)])
  await world.fund(base, agent.evm, 'USDC', '20')
  const { code } = (
    await agent.call<{ code: string }>('POST /v1/agents/link-codes', {
      body: signedAct(agent, 'agents_link_code'),
    })
  ).body
  const linked = await person.call('POST /v1/agents', { body: { code, name: 'Sender' } })
  assert.equal(linked.status, 200)

  const for_agent = agent.agentId
  const wanted = { chain_id: base, address: friend, label: 'Friend', for_agent }
  const added = await person.call('POST /v1/recipients', { body: wanted })
  assert.deepEqual([added.status, added.body.status, added.body.agents], [200, 'pending', 'allowed'])
  assert.equal((await send(agent)).body.rule, 'recipient')
  type List = { recipients: { status: string }[] }
  const listed = async (by: Person, query = '') =>
    (await by.call<List>(`GET /v1/recipients${query}`)).body.recipients
  const isEffective = async () => (await listed(agent))[0]?.status === 'effective' || undefined
  await eventually(isEffective, 'the recipient is effective')
  assert.deepEqual(
    [(await listed(person)).length, (await listed(person, `?for_agent=${for_agent}`)).length],
    [0, 1],
  )

  const before = await world.usdcOf(friend)
  const sent = await send(agent)
  assert.deepEqual([sent.status, sent.body.status], [200, 'completed'], JSON.stringify(sent.body))
  assert.equal((await world.usdcOf(friend)) - before, 1_000_000n)
  const seen = await person.call<TaskBody>(`GET /v1/tasks/${sent.body.task_id}?for_agent=${for_agent}`)
  assert.equal(seen.body.status, 'completed')
  assert.equal((await person.call(`GET /v1/tasks/${sent.body.task_id}`)).status, 404)
  assert.equal((await person.call(`GET /v1/holdings?for_agent=${for_agent}`)).status, 200)

  await person.call('POST /v1/kill', { body: { on: true } })
  const stopped = await send(agent)
  assert.deepEqual([stopped.status, stopped.body.code], [403, 'trading_paused'])
  await person.call('POST /v1/kill', { body: { on: false } })
  assert.equal((await send(agent)).body.status, 'completed')

  // A task that is under way when the link ends goes on: what its person had allowed is in effect.
  const [running, ended] = await Promise.all([send(agent), person.call(`DELETE /v1/agents/${for_agent}`)])
  assert.equal(ended.status, 200)
  assert.equal(running.body.status, 'completed', JSON.stringify(running.body))
  assert.equal((await person.call(`GET /v1/recipients?for_agent=${for_agent}`)).status, 404)
})
