/** Operator commands on linked agents and on requests that wait for people. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Operator, operatorOf } from '../harness/admin.ts'
import { dataFolder, eventually, freshGateway, newAgent, signedAct } from '../harness/gateway.ts'
import { personWithApp, signedInPerson } from './signed-in.ts'
import { createFundedPerson, type Person } from './users.ts'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let operator: Operator
const folder = dataFolder()
before(async () => {
  gateway = await freshGateway({ COOLING_SECONDS: '3600' })
  operator = operatorOf({ DATABASE_URL: gateway.databaseUrl, DATA_DIR: folder.path })
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

type Row = Record<string, string>
const agentIds = (rows: Row[]) => rows.map(({ agent_id }) => agent_id)
const unlinkedBy = async (user: Person) => {
  const { body } = await user.call<{ events: { data: { by: string } }[] }>(
    'GET /v1/notifications?types=agent.unlinked',
  )
  return body.events.map(({ data }) => data.by)
}

test('an operator sees what waits for a person, and unlinks an agent as the person would', async () => {
  const [person, agent, other] = await Promise.all([
    signedInPerson(gateway),
    createFundedPerson(gateway.url),
    newAgent(gateway.url),
  ])
  const { code } = (
    await agent.call<{ code: string }>('POST /v1/agents/link-codes', {
      body: signedAct(agent, 'agents_link_code'),
    })
  ).body
  assert.equal((await person.call('POST /v1/agents', { body: { code, name: 'Bot' } })).status, 200)
  await agent.call('PUT /v1/policy', { body: { approval_above_usd: '0', per_day_usd: '100' } })
  const raise = { per_day_usd: '500', for_agent: agent.agentId }
  assert.equal((await person.call('PUT /v1/policy', { body: raise })).status, 200)
  await person.call('POST /v1/kill', { body: { on: true } })
  await person.call('POST /v1/kill', { body: { on: false } })
  const asked = await agent.deposit('5', { query: '' })
  assert.equal((await agent.task(asked.body.task_id)).state, 'awaiting_approval')

  const [link] = await operator.rows<Row>('agents', 'list', person.agentId)
  assert.deepEqual([link!.agent_id, link!.name, link!.person_id], [agent.agentId, 'Bot', person.agentId])
  assert.ok(agentIds(await operator.rows<Row>('agents', 'list')).includes(agent.agentId))
  assert.deepEqual(await operator.rows<Row>('agents', 'list', other.agentId), [])
  for (const words of [[], [agent.agentId], [person.agentId]]) {
    const [waiting] = await operator.rows<Row>('approvals', 'list', ...words)
    assert.deepEqual(
      [waiting!.task_id, waiting!.agent_id, waiting!.person_id, waiting!.usd],
      [asked.body.task_id, agent.agentId, person.agentId, '5'],
    )
    assert.match(waiting!.request ?? '', /Deposit 5 USDC into the vault/)
  }
  assert.deepEqual(await operator.rows<Row>('approvals', 'list', other.agentId), [])

  await person.call('POST /v1/kill', { body: { on: true } })
  assert.match(await operator.refusal('agents', 'unlink', agent.agentId), /requires --why/)
  const done = await operator.act('the person lost the mailbox', 'agents', 'unlink', agent.agentId)
  assert.match(done.out, new RegExp(`${agent.agentId} is linked to ${person.agentId} no more`))
  for (const user of [person, agent])
    await eventually(async () => (await unlinkedBy(user)).length > 0 || undefined, 'the event is there')
  for (const user of [person, agent]) assert.deepEqual(await unlinkedBy(user), ['operator'])
  const policy = await agent.call<{ pending_changes: unknown[]; paused: object | null }>('GET /v1/policy')
  assert.deepEqual(policy.body.pending_changes, [], 'what waited is dropped')
  assert.equal(policy.body.paused, null, 'what a young link has set ends with it')
  assert.deepEqual((await person.call<{ agents: unknown[] }>('GET /v1/agents')).body.agents, [])
  assert.match(
    await operator.refusal('agents', 'unlink', agent.agentId, '--why', 'again'),
    /is linked to nobody/,
  )
  assert.equal((await agent.call(`POST /v1/tasks/${asked.body.task_id}/cancel`)).status, 200)
  assert.equal((await agent.ended(asked.body.task_id)).status, 'cancelled')
  const [last] = (await operator.log('--limit', '4')).filter(({ command }) => command === 'agents unlink')
  assert.deepEqual([last!.actor, last!.reason], ['ann', 'the person lost the mailbox'])
})

test('a change that an operator confirmed says so, in its event and its message', async () => {
  const person = await signedInPerson(gateway)
  const recipient = {
    chain_id: 'base',
    address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    label: 'Friend',
  }
  type Asked = { task_id: string; approval: { approval_id: string } }
  const { body } = await person.send<Asked>('POST /v1/recipients', { body: recipient })
  const { approval_id: approvalId } = body.approval
  await operator.act('asked for by telephone', 'approvals', 'confirm', approvalId)
  assert.equal((await person.ended(body.task_id)).status, 'completed')
  type Changed = { events: { data: { cause: string; by: string } }[] }
  const { events } = (await person.call<Changed>('GET /v1/notifications?types=policy.changed')).body
  assert.deepEqual(
    events.map(({ data: { cause, by } }) => [cause, by]),
    [['recipient_added', 'operator']],
  )
  await eventually(async () => {
    const subject = `email  ${person.email}: A recipient was added to your Portico account`
    const at = gateway.lines.indexOf(subject)
    return at >= 0 && gateway.lines.slice(at).some((line) => line.endsWith('An operator confirmed it.'))
      ? true
      : undefined
  }, 'the message says it')
})

test('an operator sets what an app spends of its person on chat in a day', async () => {
  const { person, app: ofApp } = await personWithApp(gateway)
  const { agentId } = person
  const psql = (statement: string) => operator.rows<Row>('psql', statement)
  const [app] = await psql(
    `select payload->>'clientId' as id from oauth_record r join app_user u on u.id::text = r.account_id
      where r.model = 'Grant' and u.agent_id = '${agentId}' limit 1`,
  )
  const words = ['credits', 'allow', agentId, app!.id!, '55']
  assert.match(
    await operator.refusal('credits', 'allow', agentId, 'nobody', '55', '--why', 'x'),
    new RegExp(`has connected no app nobody\\. Connected are ${app!.id}\\.\n`),
  )
  const tooMuch = ['credits', 'allow', agentId, app!.id!, '10001', '--why', 'x']
  assert.match(await operator.refusal(...tooMuch), /0 to 10000/)
  await operator.act('the person asked for more', ...words)
  assert.deepEqual(await psql(`select per_day from app_credits where client_id = '${app!.id}'`), [
    { per_day: 55 },
  ])
  const [last] = (await operator.log('--limit', '3')).filter(({ command }) => command === 'credits allow')
  assert.deepEqual(
    [last!.details, last!.reason],
    [{ app: app!.id, credits: '55' }, 'the person asked for more'],
  )

  await operator.act('the person asked to end it', ...words.slice(0, -1), '0')
  const refused = await ofApp.call<{ code: string }>('POST /v1/chat', { body: { query: 'price of eth' } })
  assert.deepEqual([refused.status, refused.body.code], [402, 'insufficient_credits'])
  type Changed = { events: { data: object }[] }
  const { events } = (await person.call<Changed>('GET /v1/notifications?types=app.credits_changed')).body
  assert.deepEqual(
    events.map(({ data }) => data),
    [55, 0].map((credits_per_day) => ({ client_id: app!.id, credits_per_day, by: 'operator' })),
  )
  const sentence = 'may spend up to 55 credits of yours a day. An operator set this.'
  const isPrinted = async () => gateway.lines.some((line) => line.endsWith(sentence)) || undefined
  await eventually(isPrinted, 'the message is printed', 20_000)
})
