/** Agents with a key pair are linked to the account of a person, who then decides for them; over the front door. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { bearer, eventually, http, newAgent, type Answer as Reply, signedAct } from '../harness/gateway.ts'
import { confirming } from './confirming.ts'
import { createOAuthApp, type OAuthApp, openOAuthInstance } from './oauth-app.ts'
import { connectingPerson, register, signUpUser } from './session.ts'

const coolingMs = 60_000
const env = { COOLING_SECONDS: String(coolingMs / 1_000), SIGNUP_GRANTS_PER_DAY: '1' }

let app: OAuthApp
/** One for all people: an address registers few. */
let clientId: string
let second: Awaited<ReturnType<typeof openOAuthInstance>>
before(async () => {
  app = await createOAuthApp({ env })
  second = await openOAuthInstance({
    databaseUrl: app.databaseUrl,
    baseUrl: app.base,
    env,
  })
  clientId = (await register(app)).client_id
})
after(async () => {
  await second?.[Symbol.asyncDispose]()
  await app?.[Symbol.asyncDispose]()
})
// All people sign up from one address, which may have few codes by email.
beforeEach(() => app.database.pool.query('delete from sign_in_limit'))

type Body = {
  code: string
  requires: string
  agent_id: string
  name: string | null
  agents: { agent_id: string; name: string | null; linked_at: string }[]
  credits_granted: number
  credits_available: number
  linked_to: { agent_id: string; unlink_until: string } | null
  expires_at: string
  instructions: string
  on: boolean
  per_day_usd: string
  per_transaction_usd: string
  paused: { scope: string } | null
  pending_changes: { change_id: string; field: string; effective_at: string }[]
  events: { type: string; data: Record<string, string> }[]
  state: string
  task_id: string
  confirmation?: { task_id: string; message: string }
  contested_at: string | null
  retry_after: number
  message: string
}
type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'
type Ask = (
  method: Method,
  path: string,
  body?: object,
  options?: { at?: string; key?: string },
) => Promise<Reply<Body>>
/** `send`: what the person has not confirmed; `later` confirms it. `sign`: of a key pair. */
type User = {
  agentId: string
  ask: Ask
  send: Ask
  later: (answer: Reply<Body>) => () => Promise<Reply<Body>>
  sign: (act: Parameters<typeof signedAct>[1]) => object
}

const asking =
  (authorization: string): Ask =>
  (method, path, body, { at = app.base, key } = {}) =>
    http<Body>(at + path, {
      method,
      headers: { authorization, ...(key && { 'idempotency-key': key }) },
      ...(body && { body }),
    })

async function newPerson(email?: string): Promise<User> {
  const person = connectingPerson(app, email)
  const { authorization } = await person.connect({ clientId, allows: ['manage', 'propose'] })
  const { body } = await signUpUser(app, authorization)
  const send = asking(authorization)
  const confirmed = confirming(person, app.base, authorization)
  return {
    agentId: (body as { agent_id: string }).agent_id,
    send,
    ask: async (...given) => confirmed(await send(...given)),
    later: (answer) => () => confirmed(answer),
    sign: () => ({}),
  }
}
async function newKeyPair(): Promise<User> {
  const agent = await newAgent(app.base)
  const ask = asking(bearer(agent).authorization)
  return {
    agentId: agent.agentId,
    ask,
    send: ask,
    later: (answer) => async () => answer,
    sign: (act) => signedAct(agent, act, app.time.offsetMs),
  }
}
const askCode = ({ ask, sign }: User, key?: string) =>
  ask('POST', '/v1/agents/link-codes', sign('agents_link_code'), key === undefined ? {} : { key })
const codeOf = async (agent: User) => (await askCode(agent)).body.code
const link = async (person: User, agent: User, name?: string) =>
  person.ask('POST', '/v1/agents', { code: await codeOf(agent), ...(name && { name }) })
async function linkedPair(): Promise<{ person: User; agent: User }> {
  const [person, agent] = await Promise.all([newPerson(), newKeyPair()])
  assert.equal((await link(person, agent)).status, 200)
  return { person, agent }
}
const contest = ({ ask, sign }: User, on: boolean) =>
  ask('POST', '/v1/agents/contest', { on, ...sign(`agents_contest:${on}`) })
const refusal = ({ status, body }: Reply<Body>) => [status, body.code]
const at = async (offsetMs: number, run: () => Promise<void>) => {
  app.time.offsetMs = offsetMs
  try {
    await run()
  } finally {
    app.time.offsetMs = 0
  }
}
const eventsOf = async ({ ask }: User, types: string) =>
  (await ask('GET', `/v1/notifications?types=${types}`)).body.events

describe('linking', () => {
  test('the person enters the code of the agent; both see the link, and both logs have it', async () => {
    const [person, agent] = await Promise.all([newPerson(), newKeyPair()])
    assert.equal((await agent.ask('GET', '/v1/agents')).body.linked_to, null)
    const made = await askCode(agent)
    assert.equal(made.status, 200)
    assert.match(made.body.instructions, new RegExp(made.body.code))
    const typed = made.body.code.toLowerCase().replaceAll('-', ' ')
    const linked = await person.ask('POST', '/v1/agents', { code: typed, name: 'Momentum bot' })
    assert.deepEqual(
      [linked.status, linked.body.agent_id, linked.body.name],
      [200, agent.agentId, 'Momentum bot'],
    )
    const { agents } = (await person.ask('GET', '/v1/agents')).body
    assert.deepEqual(
      agents.map(({ agent_id, name }) => [agent_id, name]),
      [[agent.agentId, 'Momentum bot']],
    )
    assert.equal((await agent.ask('GET', '/v1/agents')).body.linked_to?.agent_id, person.agentId)
    for (const user of [person, agent]) {
      const [event] = await eventsOf(user, 'agent.linked')
      const { agent_id, person_id, by } = event!.data
      assert.deepEqual([agent_id, person_id, by], [agent.agentId, person.agentId, person.agentId])
    }
  })

  test('no row holds the code, and a replay of its request makes another one', async () => {
    const agent = await newKeyPair()
    const key = 'link-code-1'
    const signed = agent.sign('agents_link_code')
    const first = (await agent.ask('POST', '/v1/agents/link-codes', signed, { key })).body.code
    const again = (await agent.ask('POST', '/v1/agents/link-codes', signed, { key })).body.code
    assert.notEqual(first, again)
    const { rows } = await app.database.pool.query(
      `select (select count(*) from idempotency i where i::text like '%' || $1 || '%')
        + (select count(*) from agent_link_code c where c::text like '%' || $1 || '%') as found`,
      [again],
    )
    assert.equal(Number(rows[0].found), 0)
    const person = await newPerson()
    assert.deepEqual(refusal(await person.ask('POST', '/v1/agents', { code: first })), [404, 'not_found'])
    assert.equal((await person.ask('POST', '/v1/agents', { code: again })).status, 200)
  })

  test('a code is good once, for ten minutes, and for one agent', async () => {
    const [first, other, agent] = await Promise.all([newPerson(), newPerson(), newKeyPair()])
    const code = await codeOf(agent)
    assert.equal((await first.ask('POST', '/v1/agents', { code })).status, 200)
    for (const person of [first, other])
      assert.deepEqual(refusal(await person.ask('POST', '/v1/agents', { code })), [404, 'not_found'])
    assert.deepEqual(refusal(await askCode(agent)), [409, 'conflict'])

    const late = await newKeyPair()
    app.time.offsetMs = -601_000
    const expired = await codeOf(late)
    app.time.offsetMs = 0
    assert.deepEqual(refusal(await other.ask('POST', '/v1/agents', { code: expired })), [404, 'not_found'])
  })

  test('a repetition under the same key answers with the same request', async () => {
    const [person, agent] = await Promise.all([newPerson(), newKeyPair()])
    const code = await codeOf(agent)
    const send = () => person.send('POST', '/v1/agents', { code }, { key: 'link-1' })
    const [first, again] = [await send(), await send()]
    assert.deepEqual([first.status, again.status], [200, 200])
    assert.deepEqual(again.body, first.body)
    assert.equal(again.headers.get('idempotent-replayed'), 'true')
  })

  test('a token alone gets no code: each takes its own signature of the key, which a person has not', async () => {
    const [person, agent, thief] = await Promise.all([newPerson(), newKeyPair(), newKeyPair()])
    for (const body of [{}, thief.sign('agents_link_code'), agent.sign('agents_contest:true')]) {
      const refused = await agent.ask('POST', '/v1/agents/link-codes', body)
      assert.ok([401, 422].includes(refused.status), JSON.stringify(refused.body))
    }
    const signed = agent.sign('agents_link_code')
    const { code } = (await agent.ask('POST', '/v1/agents/link-codes', signed)).body
    assert.deepEqual(refusal(await agent.ask('POST', '/v1/agents/link-codes', signed)), [
      401,
      'signature_replayed',
    ])
    const refused = await thief.ask('POST', '/v1/agents', { code })
    assert.deepEqual([...refusal(refused), refused.body.requires], [403, 'step_up_required', 'person'])
    assert.deepEqual(refusal(await person.ask('POST', '/v1/agents/link-codes', signed)), [409, 'conflict'])
    const waiting = await person.send('POST', '/v1/agents', { code })
    assert.deepEqual([waiting.status, waiting.body.state], [200, 'awaiting_approval'])
    assert.equal((await agent.ask('GET', '/v1/agents')).body.linked_to, null, 'nobody has confirmed it')
    assert.equal((await person.ask('POST', '/v1/agents', { code: await codeOf(agent) })).status, 200)
  })

  test('of eight persons that enter one code at once, on two instances, one gets the agent', async () => {
    const agent = await newKeyPair()
    const people = await Promise.all(Array.from({ length: 8 }, () => newPerson()))
    const code = await codeOf(agent)
    const replies = await Promise.all(
      people.map((person, turn) =>
        person.ask('POST', '/v1/agents', { code }, { at: turn % 2 ? second.address : app.base }),
      ),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(7).fill(404)])
    const lists = await Promise.all(people.map((person) => person.ask('GET', '/v1/agents')))
    assert.deepEqual(
      lists.map(({ body }) => body.agents.length),
      replies.map(({ status }) => (status === 200 ? 1 : 0)),
    )
  })

  test('a code that was asked for while the agent was being linked links it to nobody else', async () => {
    const { person, agent } = await linkedPair()
    const other = await newPerson()
    // As a request that was answered before the link existed has left it.
    await app.database.pool.query(
      `insert into agent_link_code select u.id, sha256('link-code:7K3M-Q0WD-2XNB'), now(), now() + interval '5 minutes'
        from app_user u where agent_id = $1
        on conflict (user_id) do update set code_hash = excluded.code_hash, expires_at = excluded.expires_at`,
      [agent.agentId],
    )
    const refused = await other.ask('POST', '/v1/agents', { code: '7K3M-Q0WD-2XNB' })
    assert.deepEqual(refusal(refused), [409, 'conflict'])
    assert.equal((await agent.ask('GET', '/v1/agents')).body.linked_to?.agent_id, person.agentId)
  })

  test('a newer code of the agent ends the link that waits by an earlier one', async () => {
    const [thief, person, agent] = await Promise.all([newPerson(), newPerson(), newKeyPair()])
    const confirmLater = thief.later(await thief.send('POST', '/v1/agents', { code: await codeOf(agent) }))
    const code = await codeOf(agent)
    assert.deepEqual(refusal(await confirmLater()), [409, 'conflict'])
    assert.equal((await person.ask('POST', '/v1/agents', { code })).status, 200)
  })

  test('a person has at most twenty agents, also by links at the same time', async () => {
    const person = await newPerson()
    const agents = await Promise.all(Array.from({ length: 22 }, () => newKeyPair()))
    for (const agent of agents.slice(0, 18)) assert.equal((await link(person, agent)).status, 200)
    const codes = await Promise.all(agents.slice(18).map(codeOf))
    const replies = await Promise.all(
      codes.map((code, turn) =>
        person.ask('POST', '/v1/agents', { code }, { at: turn % 2 ? second.address : app.base }),
      ),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 409, 409])
    assert.equal((await person.ask('GET', '/v1/agents')).body.agents.length, 20)
  })

  test('guesses of a person end after ten, on all instances together, and right codes do not count', async () => {
    const [person, agent] = await Promise.all([newPerson(), newKeyPair()])
    const guess = (turn: number) =>
      person.ask(
        'POST',
        '/v1/agents',
        { code: `0000-0000-${1000 + turn}` },
        { at: turn % 2 ? second.address : app.base },
      )
    const replies = await Promise.all(Array.from({ length: 20 }, (_, turn) => guess(turn)))
    const codes = replies.map(({ status }) => status)
    assert.equal(codes.filter((status) => status === 404).length, 10)
    assert.equal(codes.filter((status) => status === 429).length, 10)
    const code = await codeOf(agent)
    assert.deepEqual(refusal(await person.ask('POST', '/v1/agents', { code })), [429, 'rate_limited'])
    assert.equal((await (await newPerson()).ask('POST', '/v1/agents', { code })).status, 200)
  })
})

describe('deciding for an agent', () => {
  test('the person raises its limits, which wait; the agent does not', async () => {
    const { person, agent } = await linkedPair()
    assert.equal((await agent.ask('PUT', '/v1/policy', { per_day_usd: '100' })).status, 200)
    const own = await agent.ask('PUT', '/v1/policy', { per_day_usd: '300' })
    assert.deepEqual([own.body.per_day_usd, own.body.pending_changes], ['100', []], 'it waits for the person')
    assert.match(own.body.confirmation!.message, new RegExp(`limits of the agent ${agent.agentId}`))
    const raised = await person.ask('PUT', '/v1/policy', { per_day_usd: '300', for_agent: agent.agentId })
    assert.deepEqual([raised.status, raised.body.per_day_usd], [200, '100'])
    assert.equal(raised.body.pending_changes[0]?.field, 'per_day_usd')
    assert.deepEqual((await person.ask('GET', '/v1/policy')).body.pending_changes, [])
    await at(coolingMs + 1_000, async () => {
      const shown = (await person.ask('GET', `/v1/policy?for_agent=${agent.agentId}`)).body
      assert.equal(shown.per_day_usd, '300')
      assert.equal((await agent.ask('GET', '/v1/policy')).body.per_day_usd, '300')
    })
    const causes = (await eventsOf(agent, 'policy.changed')).map(({ data }) => [data.cause, data.by])
    assert.deepEqual(causes, [
      ['tightened', agent.agentId],
      ['raised', person.agentId],
    ])
  })

  test('an app of the person lowers and stops for an agent at once, and loosens nothing by itself', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await person.send('PUT', '/v1/policy', { per_day_usd: '100', for_agent })
    const raised = await person.send('PUT', '/v1/policy', { per_day_usd: '101', for_agent })
    assert.deepEqual([raised.body.per_day_usd, raised.body.pending_changes], ['100', []])
    assert.equal(
      (await person.send('PUT', '/v1/policy', { per_day_usd: '99', for_agent })).body.per_day_usd,
      '99',
    )
    assert.equal((await person.send('POST', '/v1/kill', { on: true, for_agent })).body.on, true)
    const lifted = await person.send('POST', '/v1/kill', { on: false, for_agent })
    assert.deepEqual([lifted.status, lifted.body.state], [200, 'awaiting_approval'])
    assert.equal((await agent.ask('GET', '/v1/policy')).body.paused?.scope, 'user')
  })

  test('the switch of the person stops the agents, and their own stays when it is lifted', async () => {
    const { person, agent } = await linkedPair()
    const pausedOf = async (user: User) => (await user.ask('GET', '/v1/policy')).body.paused?.scope
    await person.ask('POST', '/v1/kill', { on: true })
    assert.deepEqual([await pausedOf(person), await pausedOf(agent)], ['user', 'person'])
    await agent.ask('POST', '/v1/kill', { on: true })
    await person.ask('POST', '/v1/kill', { on: false })
    assert.deepEqual([await pausedOf(person), await pausedOf(agent)], [undefined, 'user'])
  })

  test('a switch that the agent has set is lifted once the link has aged, and the own one at once', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await person.ask('POST', '/v1/kill', { on: true, for_agent })
    assert.equal((await person.ask('POST', '/v1/kill', { on: false, for_agent })).body.on, false)
    await agent.ask('POST', '/v1/kill', { on: true })
    assert.deepEqual(refusal(await person.ask('POST', '/v1/kill', { on: false, for_agent })), [
      409,
      'conflict',
    ])
    await at(coolingMs + 1_000, async () => {
      assert.equal((await person.ask('POST', '/v1/kill', { on: false, for_agent })).body.on, false)
    })
  })

  test('a stop that is pressed while trading is stopped outlives what ends the earlier one', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    const stop = (by: User) => by.send('POST', '/v1/kill', { on: true, ...(by === person && { for_agent }) })
    const pausedOf = async () => (await agent.ask('GET', '/v1/policy')).body.paused?.scope
    await stop(person)
    await stop(agent)
    assert.equal((await person.ask('DELETE', `/v1/agents/${for_agent}`)).status, 200)
    assert.equal(await pausedOf(), 'user', 'the stop of the agent stays')
    assert.equal((await link(person, agent)).status, 200)
    await at(coolingMs + 1_000, async () => {
      for (const again of [person, agent]) {
        await stop(person)
        const lift = person.later(await person.send('POST', '/v1/kill', { on: false, for_agent }))
        await stop(again)
        assert.deepEqual(refusal(await lift()), [409, 'conflict'])
        assert.equal(await pausedOf(), 'user')
        assert.equal((await person.ask('POST', '/v1/kill', { on: false, for_agent })).body.on, false)
        assert.equal(await pausedOf(), undefined)
      }
    })
  })

  test('an agent of somebody else is answered like one that does not exist, by every operation', async () => {
    const { person, agent } = await linkedPair()
    const stranger = await newPerson()
    const unlinked = await newKeyPair()
    const absent = 'agt_01JZ8Q4W7N5V0K3T2R6Y9B1C4D'
    const asks: [Method, (id: string) => string, ((id: string) => object)?][] = [
      ['GET', (id) => `/v1/policy?for_agent=${id}`],
      ['PUT', () => '/v1/policy', (id) => ({ per_day_usd: '1', for_agent: id })],
      ['DELETE', (id) => `/v1/policy/changes/01890000-0000-7000-8000-000000000000?for_agent=${id}`],
      ['POST', () => '/v1/kill', (id) => ({ on: true, for_agent: id })],
      ['GET', (id) => `/v1/recipients?for_agent=${id}`],
      ['DELETE', (id) => `/v1/recipients/01890000-0000-7000-8000-000000000000?for_agent=${id}`],
      ['GET', (id) => `/v1/holdings?for_agent=${id}`],
      ['GET', (id) => `/v1/wallets?for_agent=${id}`],
      ['GET', (id) => `/v1/tasks?for_agent=${id}`],
      ['GET', (id) => `/v1/tasks/01890000-0000-7000-8000-000000000000?for_agent=${id}`],
      ['DELETE', (id) => `/v1/agents/${id}`],
    ]
    const callers: [User, string][] = [
      [stranger, agent.agentId],
      [stranger, person.agentId],
      [person, unlinked.agentId],
      // An agent never decides for its person.
      [agent, person.agentId],
    ]
    for (const [method, path, body] of asks)
      for (const [caller, id] of callers) {
        const [foreign, none] = [
          await caller.ask(method, path(id), body?.(id)),
          await caller.ask(method, path(absent), body?.(absent)),
        ]
        assert.equal(foreign.status, 404, `${method} ${path(id)} ${JSON.stringify(foreign.body)}`)
        assert.deepEqual({ ...foreign.body, request_id: '' }, { ...none.body, request_id: '' })
      }
    assert.equal((await agent.ask('GET', '/v1/policy')).body.paused, null)
  })

  test('the person reads the wallets and tasks of the agent', async () => {
    const { person, agent } = await linkedPair()
    const own = await agent.ask('GET', '/v1/wallets')
    const seen = await person.ask('GET', `/v1/wallets?for_agent=${agent.agentId}`)
    assert.deepEqual(seen.body, own.body)
    assert.equal((await person.ask('GET', `/v1/tasks?for_agent=${agent.agentId}`)).status, 200)
  })
})

describe('unlinking', () => {
  test('the person ends the link: what waits is dropped, and nobody decides for the agent any more', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '100' })
    await person.ask('PUT', '/v1/policy', { per_day_usd: '300', for_agent })
    assert.equal((await person.ask('DELETE', `/v1/agents/${for_agent}`)).status, 200)
    assert.deepEqual((await agent.ask('GET', '/v1/policy')).body.pending_changes, [])
    assert.deepEqual(refusal(await person.ask('PUT', '/v1/policy', { per_day_usd: '1', for_agent })), [
      404,
      'not_found',
    ])
    assert.equal((await agent.ask('GET', '/v1/agents')).body.linked_to, null)
    for (const user of [person, agent])
      assert.equal((await eventsOf(user, 'agent.unlinked'))[0]?.data.by, person.agentId)
    assert.equal((await link(person, agent)).status, 200)
  })

  test('limits that were raised before and are in effect stay', async () => {
    const { person, agent } = await linkedPair()
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '100' })
    await person.ask('PUT', '/v1/policy', { per_day_usd: '300', for_agent: agent.agentId })
    await at(coolingMs + 1_000, async () => {
      assert.equal((await person.ask('DELETE', `/v1/agents/${agent.agentId}`)).status, 200)
      assert.equal((await agent.ask('GET', '/v1/policy')).body.per_day_usd, '300')
    })
    assert.equal((await agent.ask('GET', '/v1/policy')).body.per_day_usd, '300')
  })

  test('what a link has set ends with it within its time; later an agent that its person has stopped stays stopped', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '500' })
    await person.send('POST', '/v1/kill', { on: true })
    await person.send('POST', '/v1/kill', { on: true, for_agent })
    await person.send('PUT', '/v1/policy', { per_day_usd: '0', per_transaction_usd: '1', for_agent })
    await person.send('PUT', '/v1/policy', { per_day_usd: '0', chains: [], for_agent })
    assert.ok((await contest(agent, true)).body.contested_at)
    assert.equal((await agent.ask('DELETE', `/v1/agents/${for_agent}`)).status, 200)
    const { per_day_usd, paused, per_transaction_usd } = (await agent.ask('GET', '/v1/policy')).body
    assert.deepEqual([per_day_usd, paused], ['500', null])
    assert.ok(Number(per_transaction_usd) > 1)

    assert.equal((await link(person, agent)).status, 200)
    await at(coolingMs + 1_000, async () => {
      assert.equal((await person.ask('DELETE', `/v1/agents/${for_agent}`)).status, 200)
      assert.equal((await agent.ask('GET', '/v1/policy')).body.paused?.scope, 'user')
    })
    assert.deepEqual(refusal(await agent.ask('POST', '/v1/kill', { on: false })), [403, 'step_up_required'])
  })

  test('what the agent has lowered itself stays when a new link ends', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '900', per_transaction_usd: '800' })
    await person.send('PUT', '/v1/policy', { per_day_usd: '500', per_transaction_usd: '400', for_agent })
    assert.equal((await agent.ask('PUT', '/v1/policy', { per_day_usd: '10' })).body.per_day_usd, '10')
    await person.send('PUT', '/v1/policy', { per_transaction_usd: '4', for_agent })
    assert.equal((await person.ask('DELETE', `/v1/agents/${for_agent}`)).status, 200)
    const { per_day_usd, per_transaction_usd } = (await agent.ask('GET', '/v1/policy')).body
    assert.deepEqual([per_day_usd, per_transaction_usd], ['10', '800'])
  })

  test('what its person has lowered through an established link outlasts the link', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await person.send('PUT', '/v1/policy', { per_day_usd: '500', per_transaction_usd: '400', for_agent })
    await at(coolingMs + 1_000, async () => {
      await person.send('PUT', '/v1/policy', { per_day_usd: '10', for_agent })
    })
    const { rows } = await app.database.pool.query(
      `select limits_before from agent_link l join app_user u on u.id = l.user_id where u.agent_id = $1`,
      [for_agent],
    )
    assert.deepEqual(Object.keys(rows[0].limits_before), ['perTransactionMicros'])
  })

  test('an unlinking that waits ends no later link', async () => {
    const { person, agent } = await linkedPair()
    const unlink = person.later(await person.send('DELETE', `/v1/agents/${agent.agentId}`))
    assert.equal((await agent.ask('DELETE', `/v1/agents/${agent.agentId}`)).status, 200)
    assert.equal((await link(person, agent)).status, 200)
    assert.deepEqual(refusal(await unlink()), [409, 'conflict'])
    assert.equal((await agent.ask('GET', '/v1/agents')).body.linked_to?.agent_id, person.agentId)
  })

  test('a token of the agent ends a new link, and lifts nothing that its person has set', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await person.send('POST', '/v1/kill', { on: true, for_agent })
    await person.send('PUT', '/v1/policy', { per_day_usd: '7', for_agent })
    assert.equal((await agent.ask('DELETE', `/v1/agents/${for_agent}`)).status, 200)
    const { per_day_usd, paused } = (await agent.ask('GET', '/v1/policy')).body
    assert.deepEqual([per_day_usd, paused?.scope], ['7', 'user'])
  })

  test('what somebody confirmed who decides for the agent no more does not run', async () => {
    const { person, agent } = await linkedPair()
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '100' })
    const { confirmation } = (await agent.ask('PUT', '/v1/policy', { per_day_usd: '300' })).body
    const other = await newPerson()
    await app.database.pool.query(
      `with decided as (update approval set decision = 'approved', decided_by = $2, decided_at = now()
         where task_id = $1 returning task_id)
       update task_queue set run_at = now() from decided where task_queue.task_id = decided.task_id`,
      [confirmation!.task_id, other.agentId],
    )
    const ended = await eventually(async () => {
      const { body } = await agent.ask('GET', `/v1/tasks/${confirmation!.task_id}`)
      return body.state === 'awaiting_approval' ? undefined : body.state
    }, 'the request has ended')
    assert.equal(ended, 'conflict')
    const shown = (await person.ask('GET', `/v1/policy?for_agent=${agent.agentId}`)).body
    assert.deepEqual([shown.per_day_usd, shown.pending_changes], ['100', []])
  })

  test('an app takes half of the places that others leave, so that the next one finds some', async () => {
    const person = await newPerson()
    await person.send('PUT', '/v1/policy', { per_day_usd: '1' })
    let usd = 1
    /** How many requests of a new app find a place. */
    const placesOf = async (app_id: string) => {
      let places = 0
      while ((await person.send('PUT', '/v1/policy', { per_day_usd: String(++usd) })).status === 200) places++
      await app.database.pool.query(
        `update approval set intent = jsonb_set(intent, '{client_id}', to_jsonb($2::text))
           where user_id = (select id from app_user where agent_id = $1) and decision is null
             and intent ->> 'client_id' not like 'app %'`,
        [person.agentId, app_id],
      )
      return places
    }
    const places = []
    for (const app_id of ['app 1', 'app 2', 'app 3', 'app 4', 'app 5', 'app 6'])
      places.push(await placesOf(app_id))
    assert.deepEqual(places, [10, 5, 3, 1, 1, 0])
  })

  test('requests that were declined count for a quarter of an hour', async () => {
    const person = await newPerson()
    await person.send('PUT', '/v1/policy', { per_day_usd: '1' })
    const ask = async (usd: number) => {
      const { status, body } = await person.send('PUT', '/v1/policy', { per_day_usd: String(usd) })
      if (status === 200)
        await app.database.pool.query(
          `update approval set decision = 'declined', decided_by = 'test', decided_at = now() where task_id = $1`,
          [body.confirmation!.task_id],
        )
      return { status, body }
    }
    for (let usd = 2; usd < 32; usd += 1) assert.equal((await ask(usd)).status, 200)
    const { status, body } = await ask(100)
    assert.deepEqual([status, body.code], [429, 'rate_limited'])
    assert.ok(body.retry_after > 600 && body.retry_after <= 900)
    await app.database.pool.query(
      `update approval set requested_at = requested_at - interval '15 minutes', expires_at = expires_at - interval '15 minutes'
         where user_id = (select id from app_user where agent_id = $1)`,
      [person.agentId],
    )
    assert.equal((await ask(100)).status, 200)
  })

  test('the holder of the key contests a link of any age: nothing is loosened through it until it ends', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '100' })
    await at(coolingMs + 1_000, async () => {
      assert.equal((await agent.ask('POST', '/v1/agents/contest', { on: true })).status, 422, 'a token alone')
      const raise = () => person.ask('PUT', '/v1/policy', { per_day_usd: '300', for_agent })
      assert.equal((await raise()).body.pending_changes.length, 1)
      assert.ok((await contest(agent, true)).body.contested_at)
      assert.deepEqual((await agent.ask('GET', '/v1/policy')).body.pending_changes, [], 'it was dropped')
      assert.deepEqual(refusal(await raise()), [409, 'conflict'])
      assert.equal((await person.send('PUT', '/v1/policy', { per_day_usd: '50', for_agent })).status, 200)
      assert.deepEqual((await agent.ask('GET', '/v1/policy')).body.pending_changes, [])
      assert.equal((await contest(agent, false)).body.contested_at, null)
      assert.equal((await raise()).body.pending_changes.length, 1)
      await contest(agent, true)
      assert.equal((await person.ask('DELETE', `/v1/agents/${for_agent}`)).status, 200, 'both agree')
    })
    assert.deepEqual(
      (await eventsOf(person, 'agent.link_contested,agent.link_accepted')).map(({ type }) => type),
      ['agent.link_contested', 'agent.link_accepted', 'agent.link_contested'],
    )
  })

  test('of contests of a link, one in a day is a message to its person', async () => {
    const [person, agent] = await Promise.all([newPerson(), newKeyPair()])
    // Its messages wait, so that they can be counted.
    await app.database.pool.query(
      `insert into person_mail (person_id, kind, items, due_at)
         select id, 'link_contested', '[]', now() + interval '1 year' from app_user where agent_id = $1`,
      [person.agentId],
    )
    assert.equal((await link(person, agent)).status, 200)
    const mailsOf = async () => {
      const { rows } = await app.database.pool.query(
        `select from person_mail, jsonb_array_elements(items) item, app_user u
           where u.agent_id = $1 and person_id = u.id and item ->> 'text' like '%contests%'`,
        [person.agentId],
      )
      return rows.length
    }
    const contestAndWithdraw = async () => {
      await contest(agent, true)
      await contest(agent, false)
    }
    await contestAndWithdraw()
    await at(coolingMs, contestAndWithdraw)
    assert.equal(await mailsOf(), 1)
    await app.database.pool.query(
      `update agent_link set contest_mailed_at = contest_mailed_at - interval '1 day'`,
    )
    await contestAndWithdraw()
    assert.equal(await mailsOf(), 2)
  })

  test('a signature that contests the link does not withdraw it, nor the other way round', async () => {
    const { agent } = await linkedPair()
    for (const on of [true, false]) {
      const flipped = { on, ...agent.sign(`agents_contest:${!on}`) }
      assert.deepEqual(refusal(await agent.ask('POST', '/v1/agents/contest', flipped)), [
        401,
        'invalid_signature',
      ])
    }
    assert.ok((await contest(agent, true)).body.contested_at)
    assert.equal((await contest(agent, false)).body.contested_at, null)
  })

  test('the agent ends a new link, and never one that has aged', async () => {
    const { agent } = await linkedPair()
    const { person, agent: aged } = await linkedPair()
    assert.equal((await agent.ask('DELETE', `/v1/agents/${agent.agentId}`)).status, 200)
    assert.deepEqual(refusal(await agent.ask('DELETE', `/v1/agents/${agent.agentId}`)), [404, 'not_found'])
    await at(coolingMs + 1_000, async () => {
      const refused = await aged.ask('DELETE', `/v1/agents/${aged.agentId}`)
      assert.deepEqual([...refusal(refused), refused.body.requires], [403, 'step_up_required', 'person'])
    })
    const asked = await person.send('DELETE', `/v1/agents/${aged.agentId}`)
    assert.equal(asked.body.state, 'awaiting_approval')
    assert.ok((await aged.ask('GET', '/v1/agents')).body.linked_to)
  })

  test('an act that begins while the agent is being unlinked is refused', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '100' })
    const { pool } = app.database
    const holder = await pool.connect()
    await holder.query('begin')
    // The unlinking waits here, after all else that it changes.
    await holder.query(
      'select from user_event_seq where user_id = (select id from app_user where agent_id = $1) for update',
      [person.agentId],
    )
    const { rows: own } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
    /** Statements of background work may wait elsewhere. */
    const waiterOf = (holders: number[]) =>
      eventually(async () => {
        const { rows } = await pool.query<{ pid: number }>(
          `select pid from pg_stat_activity where datname = current_database()
           and pg_blocking_pids(pid) && $1::int[] and pid <> all ($1)`,
          [holders],
        )
        return rows[0]?.pid
      }, `a statement waits for ${holders.length} others`)
    const held = own[0]!.pid
    const unlinking = person.ask('DELETE', `/v1/agents/${for_agent}`)
    const waiting = await waiterOf([held])
    const raise = { per_day_usd: '200', for_agent }
    const raising = person.ask('PUT', '/v1/policy', raise, { at: second.address })
    await waiterOf([held, waiting])
    await holder.query('commit')
    holder.release()
    assert.equal((await unlinking).status, 200)
    assert.deepEqual(refusal(await raising), [404, 'not_found'])
    assert.deepEqual((await agent.ask('GET', '/v1/policy')).body.pending_changes, [])
  })

  test('of an unlinking and eight acts for the agent at once, every act is whole or refused', async () => {
    const { person, agent } = await linkedPair()
    const for_agent = agent.agentId
    await agent.ask('PUT', '/v1/policy', { per_day_usd: '100' })
    const raises = Array.from({ length: 8 }, (_, turn) =>
      person.ask(
        'PUT',
        '/v1/policy',
        { per_day_usd: String(200 + turn), for_agent },
        { at: turn % 2 ? second.address : app.base },
      ),
    )
    const ends = [app.base, second.address].map((each) =>
      person.ask('DELETE', `/v1/agents/${for_agent}`, undefined, { at: each }),
    )
    const [acts, ended] = await Promise.all([Promise.all(raises), Promise.all(ends)])
    assert.deepEqual(ended.map(({ status }) => status).sort(), [200, 404])
    for (const { status, body } of acts) assert.ok(status === 200 || status === 404, JSON.stringify(body))
    assert.deepEqual((await agent.ask('GET', '/v1/policy')).body.pending_changes, [])
    assert.equal((await eventsOf(agent, 'agent.unlinked')).length, 1)
  })
})

describe('first credits', () => {
  const creditsOf = async ({ ask }: User) => (await ask('GET', '/v1/credits')).body.credits_available

  test('an agent beyond the limit of its address gets them with its person, who has them for one', async () => {
    const person = await newPerson()
    const agents = [await newKeyPair(), await newKeyPair(), await newKeyPair()] as const
    assert.deepEqual(await Promise.all([person, ...agents].map(creditsOf)), [200, 200, 0, 0])
    const [first, second, third] = agents
    assert.equal((await link(person, first)).body.credits_granted, 0)
    assert.equal((await link(person, second)).body.credits_granted, 200)
    await app.database.pool.query('delete from sign_in_limit')
    assert.equal((await link(person, third)).body.credits_granted, 0)
    assert.deepEqual(await Promise.all(agents.map(creditsOf)), [200, 200, 0])

    for (const agent of agents) await person.ask('DELETE', `/v1/agents/${agent.agentId}`)
    for (const agent of agents) assert.equal((await link(person, agent)).body.credits_granted, 0)
    assert.deepEqual(await Promise.all(agents.map(creditsOf)), [200, 200, 0])
  })

  test('links of two agents at the same time grant once', async () => {
    const person = await newPerson()
    await newKeyPair()
    const agents = await Promise.all([newKeyPair(), newKeyPair(), newKeyPair(), newKeyPair()])
    assert.deepEqual(await Promise.all(agents.map(creditsOf)), [0, 0, 0, 0])
    const codes = await Promise.all(agents.map(codeOf))
    const replies = await Promise.all(
      codes.map((code, turn) =>
        person.ask('POST', '/v1/agents', { code }, { at: turn % 2 ? second.address : app.base }),
      ),
    )
    assert.deepEqual(replies.map(({ body }) => body.credits_granted).sort(), [0, 0, 0, 200])
  })

  test('people beyond the limit of their address get none, and addresses of one mailbox get them once', async () => {
    const people = [await newPerson(), await newPerson()]
    assert.deepEqual(await Promise.all(people.map(creditsOf)), [200, 0])
    for (const [email, credits] of [
      ['grace@example.com', 200],
      ['grace+1@example.com', 0],
      ['hopper@gmail.com', 200],
      ['h.opper+2@googlemail.com', 0],
    ] as const) {
      await app.database.pool.query('delete from sign_in_limit')
      assert.equal(await creditsOf(await newPerson(email)), credits, email)
    }
  })
})
