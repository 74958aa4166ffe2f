/** Typical mistakes of people and models: each is answered by a sentence that says what is wrong, where and what to do. */
import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { after, before, test } from 'node:test'
import { testFunding } from '../harness/conservation.ts'
import { bearer, freshGateway, freshToken, http, keyPair, newAgent } from '../harness/gateway.ts'
import { venueControl } from '../harness/venue-gateway.ts'
import { createFundedPerson, type Person } from '../journeys/users.ts'
import { createHttpClient, type HttpClient, type HttpReply } from './support/http-client.ts'
import { type IdentityRecords, openIdentityRecords } from './support/identity-records.ts'
import type { Mistake, Sent } from './support/mistakes/mistake.ts'
import { mistakeSections } from './support/mistakes/sections.ts'
import { unlimitedRates } from './support/unlimited.ts'

const parts = new AsyncDisposableStack()
let client: HttpClient
/** The values of the placeholders. */
const values: Record<string, string> = {
  long_text: 'x'.repeat(17_000),
  huge_text: '5'.repeat(270_000),
  long_key: 'k'.repeat(256),
  any_signature: Buffer.alloc(64, 7).toString('base64'),
}

before(async () => {
  const gateway = parts.use(await freshGateway(unlimitedRates, { ownWorld: 'prices are constant' }))
  client = parts.use(createHttpClient(gateway.url))
  const venue = venueControl(gateway.world)
  await venue('POST', '/settings', { walking: false })
  await venue('POST', '/price', { coin: 'BTC', price: 100_000 })
  const rows = parts.use(await openIdentityRecords(gateway.databaseUrl))
  const people = [createFundedPerson(gateway.url), createFundedPerson(gateway.url)]
  const [person, other] = (await Promise.all(people)) as [Person, Person]
  await addIdentities(gateway.url, person, rows)
  await addObjects(person, other)
})
after(() => parts.disposeAsync())

async function addIdentities(url: string, person: Person, rows: IdentityRecords): Promise<void> {
  const userIdOf = async (token: string) =>
    (await http<{ user_id: string }>(`${url}/v1/user`, { headers: bearer({ token }) })).body.user_id
  const userId = await userIdOf(person.token)
  const [newcomer, paused, suspended] = await Promise.all([newAgent(url), newAgent(url), newAgent(url)])
  const suspendedId = await userIdOf(suspended.token)
  const revoked = await freshToken(url, person.agentId, person.privateKey)
  await http(`${url}/v1/auth/token`, { method: 'DELETE', headers: bearer({ token: revoked }) })
  await http(`${url}/v1/kill`, { method: 'POST', body: { on: true }, headers: bearer(paused) })
  testFunding.excludeUser(suspended.agentId, 'a suspended user reads nothing')
  const suspendedToken = await rows.token(suspendedId)
  await rows.suspend(suspendedId)
  const registered = await http<{ nonce: string }>(`${url}/v1/auth/register`, {
    method: 'POST',
    body: { public_key: keyPair().publicKey },
  })
  const now = Math.floor(Date.now() / 1_000)
  const signature = sign(null, Buffer.from(`${person.agentId}${now - 60}`), person.privateKey)
  const signIn = { agent_id: person.agentId, timestamp: now - 60, signature: signature.toString('base64') }
  assert.equal((await http(`${url}/v1/auth/token`, { method: 'POST', body: signIn })).status, 200)
  Object.assign(values, {
    token: person.token,
    agent_id: person.agentId,
    public_key: person.publicKey,
    unknown_token: rows.unknownToken(),
    expired_token: await rows.token(userId, { expiresAt: new Date(Date.now() - 1_000) }),
    revoked_token: revoked,
    reading_token: await rows.token(userId, { scopes: ['read'] }),
    suspended_token: suspendedToken,
    newcomer_token: newcomer.token,
    paused_token: paused.token,
    nonce: registered.body.nonce,
    now: String(now),
    used_sign_in: JSON.stringify(signIn),
  })
}

/** A position in the vault and one at the venue, an order that has ended, and the same of another user. */
async function addObjects(person: Person, other: Person): Promise<void> {
  const perp = async (path: string, body: object) => {
    const { body: task } = await person.call<{ status: string; result: { order_id: string } }>(
      `POST /v1/perp/${path}?wait=true`,
      { body },
    )
    assert.equal(task.status, 'completed', JSON.stringify(task))
    return task.result.order_id
  }
  const [deposit, foreign] = await Promise.all([person.deposit('10'), other.deposit('10')])
  await perp('setup', {})
  await perp('fund', { amount_usd: '500' })
  await perp('open', { asset: 'BTC', side: 'long', size: '0.01', leverage: 10 })
  const resting = { asset: 'ETH', side: 'long', size: '0.02', order_type: 'limit', limit_price: '1000' }
  const ended = await perp('open', resting)
  await perp('orders/cancel', { order_id: ended })
  const { body: listed } = await person.call<{ markets: { outcomes: { outcome_id: string }[] }[] }>(
    'GET /predmkt/markets?limit=1',
  )
  Object.assign(values, {
    task: deposit.body.task_id,
    position: deposit.body.result.position_id,
    foreign_task: foreign.body.task_id,
    foreign_position: foreign.body.result.position_id,
    ended_order: ended,
    outcome: listed.markets[0]!.outcomes[0]!.outcome_id,
  })
}

/** Other braces, such as those of JSON, stay. */
const filled = (text: string): string =>
  text.replace(/\{([a-z_]+)\}/g, (whole, name: string) => values[name] ?? whole)

function send({ send: route, body, raw, headers = {} }: Sent): Promise<HttpReply> {
  const [method = '', path = ''] = route.split(' ')
  const json = body === undefined ? undefined : JSON.stringify(body)
  const all: Record<string, string | null> = {
    authorization: 'Bearer {token}',
    ...(json !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  }
  const given = Object.entries(all).flatMap(([name, value]) =>
    value === null ? [] : [[name, filled(value)]],
  )
  const text = raw ?? json
  return client.send({
    method,
    path: filled(path),
    headers: Object.fromEntries(given) as Record<string, string>,
    ...(text !== undefined && { body: filled(text) }),
  })
}

/** A sentence in which `<...>` matches anything. */
const sentencePattern = (sentence: string): RegExp =>
  new RegExp(
    `^${sentence
      .split(/<[^<>]+>/)
      .map(RegExp.escape)
      .join('.+')}$`,
  )

type Item = { loc: (string | number)[]; msg: string }

async function difference({ mistake, before: earlier = [], answer, ...sent }: Mistake): Promise<string[]> {
  for (const each of earlier) assert.equal((await send(each)).status, 200, mistake)
  const { status, text } = await send(sent)
  const { code, detail, request_id } = JSON.parse(text) as {
    code: string
    detail: string | Item[]
    request_id: string
  }
  const [item] = typeof detail === 'string' ? [] : detail
  const got = { status, code, at: item?.loc.join('.'), says: item?.msg ?? String(detail) }
  const isEqual =
    got.status === answer.status &&
    got.code === answer.code &&
    got.at === answer.at &&
    sentencePattern(answer.says).test(got.says) &&
    request_id.length > 0
  return isEqual ? [] : [`${mistake} ${JSON.stringify(got)}`]
}

test('the table has at least 99 mistakes, each with a sentence of its own request', () => {
  const all = mistakeSections.flatMap(({ mistakes }) => mistakes)
  const requests = all.map(({ send: route, body, raw, headers, before: earlier }) =>
    JSON.stringify([route, body, raw, headers, earlier]),
  )
  assert.ok(all.length >= 99)
  assert.equal(new Set(requests).size, all.length)
  for (const { mistake, answer } of all) {
    assert.equal(answer.status === 422, answer.at !== undefined, mistake)
    assert.doesNotMatch(answer.says, /\^|\\d|\[0-9\]/, mistake)
  }
})

for (const { title, mistakes } of mistakeSections)
  test(`${title}: each of ${mistakes.length} mistakes is answered with its code, its location and a remedy`, async () => {
    const differences: string[] = []
    for (const each of mistakes) differences.push(...(await difference(each)))
    assert.deepEqual(differences, [])
  })
