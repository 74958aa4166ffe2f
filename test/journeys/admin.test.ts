/** Operator commands on users, tokens, limits, switches and sponsors, beside two running instances. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { admin, type Operator, operatorOf } from '../harness/admin.ts'
import {
  bearer,
  dataFolder,
  eventually,
  freshGateway,
  freshToken,
  http,
  keyPair,
  launch,
  newAgent,
} from '../harness/gateway.ts'
import { parseMetrics } from '../harness/prometheus.ts'
import { openReceiver } from '../webhooks/receiver.ts'
import { createFundedPerson, type Person } from './users.ts'
import { worldOf } from './world.ts'

let first: Awaited<ReturnType<typeof freshGateway>>
let second: Awaited<ReturnType<typeof launch>>
let world: Awaited<ReturnType<typeof worldOf>>
let operator: Operator
let env: Record<string, string>
const folder = dataFolder()

before(async () => {
  first = await freshGateway()
  world = await worldOf(first.world)
  const urls = Object.fromEntries(Object.entries(world.env)) as Record<string, string>
  second = await launch({ env: { ...urls, DATA_DIR: folder.path, DATABASE_URL: first.databaseUrl } })
  env = { DATABASE_URL: first.databaseUrl, DATA_DIR: folder.path }
  operator = operatorOf(env)
})
after(async () => {
  await second?.[Symbol.asyncDispose]()
  await first?.[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const userOf = async (url: string, token: string) =>
  http<{ user_id: string; code?: string }>(`${url}/v1/user`, { headers: bearer({ token }) })
const userIdOf = async ({ token }: { token: string }) => (await userOf(first.url, token)).body.user_id

/** A notification takes some milliseconds; without it the cache of an instance would be stale for 30 s. */
const eventuallyStatus = (url: string, token: string, wanted: unknown[]) =>
  eventually(
    async () => {
      const { status, body } = await userOf(url, token)
      return [status, body.code].every((each, at) => each === wanted[at]) ? true : undefined
    },
    `${url} answers ${wanted}`,
    20_000,
  )

const lastAction = async () => (await operator.log('--limit', '2'))[1]!

test('without a command, and for an unknown one, the commands are listed', async () => {
  const help = await operator.run()
  for (const name of [
    'tasks end',
    'accounts freeze',
    'users freeze',
    'keys rotate',
    'backup',
    'restore',
    'psql',
  ])
    assert.ok(help.out.includes(name), name)
  assert.match(await operator.refusal('users', 'melt', 'x'), /no command users melt/)
  assert.match(await operator.refusal('users', 'freeze', 'agt_x'), /requires --why/)
  assert.match(await operator.refusal('users', 'freeze', 'agt_x', '--why', 'test'), /There is no user agt_x/)
})

test('a frozen user is rejected on every instance at once, and signs in again when unfrozen', async () => {
  const agent = await newAgent(first.url)
  const userId = await userIdOf(agent)
  await eventuallyStatus(second.url, agent.token, [200, undefined])
  await operator.act('reported stolen', 'users', 'freeze', agent.agentId)
  for (const { url } of [first, second]) await eventuallyStatus(url, agent.token, [403, 'suspended'])
  await assert.rejects(freshToken(second.url, agent.agentId, agent.privateKey), /suspended/)
  const { actor, command, subject, reason } = await lastAction()
  assert.deepEqual([actor, command, subject, reason], ['ann', 'users freeze', userId, 'reported stolen'])
  await operator.act('found again', 'users', 'unfreeze', userId)
  for (const { url } of [first, second]) await eventuallyStatus(url, agent.token, [200, undefined])
})

test('the webhook of a frozen user gets nothing from any instance, and what waited when unfrozen', async () => {
  await using receiver = await openReceiver()
  const [frozen, witness] = [await newAgent(first.url), await newAgent(first.url)]
  receiver.answer(() => 503)
  for (const [agent, path] of [
    [frozen, '/frozen'],
    [witness, '/witness'],
  ] as const) {
    const headers = bearer(agent)
    const send = (method: string, route: string, body: object) =>
      http(`${first.url}${route}`, { method, headers, body })
    const webhook = { url: receiver.url(path), types: ['policy.changed'] }
    assert.equal((await send('POST', '/v1/webhooks', webhook)).status, 200)
    assert.equal((await send('PUT', '/v1/policy', { per_day_usd: '900' })).status, 200)
    await receiver.until(1, path)
  }
  await operator.act('reported stolen', 'users', 'freeze', frozen.agentId)
  receiver.answer(() => 200)
  await receiver.until(2, '/witness')
  assert.equal(receiver.at('/frozen').length, 1)
  await operator.act('found again', 'users', 'unfreeze', frozen.agentId)
  const [failed, again] = await receiver.until(2, '/frozen')
  assert.equal(again?.headers['webhook-id'], failed?.headers['webhook-id'])
})

test('tokens of an agent, and a single one, end at once everywhere', async () => {
  const agent = await newAgent(first.url)
  const [one, two, three] = [
    agent.token,
    await freshToken(first.url, agent.agentId, agent.privateKey),
    await freshToken(first.url, agent.agentId, agent.privateKey),
  ]
  for (const token of [one, two, three]) await eventuallyStatus(second.url, token, [200, undefined])
  await operator.act('seen in a log', 'tokens', 'revoke', '--token', one)
  for (const { url } of [first, second]) await eventuallyStatus(url, one, [401, 'invalid_token'])
  assert.equal((await userOf(second.url, two)).status, 200)
  const ended = await operator.act('the whole agent', 'tokens', 'revoke', '--user', agent.agentId)
  assert.match(ended.out, /2 tokens/)
  for (const { url } of [first, second])
    for (const token of [two, three]) await eventuallyStatus(url, token, [401, 'invalid_token'])
  assert.match(await operator.refusal('tokens', 'revoke', '--why', 'x'), /either --user .* or --token/)
  const record = JSON.stringify(await operator.log())
  assert.ok(!record.includes(one), 'a token is in the record')
})

test('a stolen key is replaced: the thief is locked out, the owner signs with the new one', async () => {
  const agent = await newAgent(first.url)
  const fresh = keyPair()
  await eventuallyStatus(second.url, agent.token, [200, undefined])
  const made = await http<{ webhook_id: string }>(`${first.url}/v1/webhooks`, {
    method: 'POST',
    headers: bearer(agent),
    body: { url: 'http://127.0.0.1:2/thief' },
  })
  assert.equal(made.status, 200)
  await operator.act(
    'key stolen, identity checked by phone',
    'users',
    'set-key',
    agent.agentId,
    fresh.publicKey,
  )
  await eventuallyStatus(second.url, agent.token, [401, 'invalid_token'])
  await assert.rejects(freshToken(first.url, agent.agentId, agent.privateKey), /invalid_signature/)
  agent.privateKey = fresh.privateKey
  agent.token = await freshToken(second.url, agent.agentId, fresh.privateKey)
  assert.equal((await userOf(first.url, agent.token)).status, 200)
  const read = async <B>(path: string) =>
    (await http<B>(`${second.url}${path}`, { headers: bearer(agent) })).body
  assert.deepEqual((await read<{ webhooks: object[] }>('/v1/webhooks')).webhooks, [])
  const { events } = await read<{ events: { data: object }[] }>('/v1/notifications?types=webhook.deleted')
  assert.deepEqual(events[0]?.data, {
    webhook_id: made.body.webhook_id,
    origin: 'http://127.0.0.1:2',
    client_id: null,
    reason: 'revoked',
  })
  const again = await operator.refusal('users', 'set-key', agent.agentId, agent.publicKey, '--why', 'x')
  assert.match(again, /is or was registered/)
})

const limits = async (person: Person) =>
  (await person.call<{ per_day_usd: string; paused: unknown }>('GET /v1/policy')).body

test('limits and the kill switch that a thief has set are reverted', async () => {
  const person = await createFundedPerson(first.url)
  const before = await limits(person)
  const tightened = await person.call('PUT /v1/policy', { body: { per_day_usd: '0' } })
  assert.equal((await limits(person)).per_day_usd, '0', JSON.stringify(tightened.body))
  await person.call('POST /v1/kill', { body: { on: true } })
  assert.equal((await person.deposit('2')).body.code ?? '', 'trading_paused')
  const [switched] = await operator.rows('kill-switch', 'list')
  assert.equal(switched?.scope, 'user')

  await operator.act('a thief set it', 'kill-switch', 'off', '--user', person.agentId)
  await operator.act('a thief set it', 'policy', 'reset', person.agentId)
  const restored = await limits(person)
  assert.deepEqual([restored.per_day_usd, restored.paused], [before.per_day_usd, null])
  assert.equal((await person.deposit('2')).body.status, 'completed')
  const [shown] = await operator.rows('policy', 'show', person.agentId)
  assert.equal(shown?.per_day_micros, null)
  const reset = (await operator.log()).find(({ command }) => command === 'policy reset')
  const former = (reset?.details.before ?? {}) as Record<string, unknown>
  assert.equal(former.per_day_micros, '0')
})

/** Health and metrics keep their answers for up to a second. */
const untilShown = (url: string, wanted: { status: string; isOn: boolean }) =>
  eventually(
    async () => {
      type Health = { checks: { money: { status: string; stopped_since: string | null } } }
      const { money } = (await http<Health>(`${url}/health`)).body.checks
      const scrape = parseMetrics(await (await fetch(`${url}/metrics`)).text())
      const isOn = Date.parse(money.stopped_since ?? '') <= Date.now()
      const isSame = scrape.value('portico_kill_switch_on') === Number(isOn)
      return isSame && isOn === wanted.isOn && money.status === wanted.status
    },
    `${url} shows the switch: ${JSON.stringify(wanted)}`,
  )

test('the global kill switch stops opening on every instance and allows exits', async () => {
  const person = await createFundedPerson(first.url)
  const opened = (await person.deposit('5')).body
  assert.equal(opened.status, 'completed')
  await operator.act('the venue looks wrong', 'kill-switch', 'on', '--global')
  for (const at of [first.url, second.url]) {
    const refused = await person.deposit('1', { at })
    assert.deepEqual([refused.status, refused.body.code], [403, 'trading_paused'])
    await untilShown(at, { status: 'degraded', isOn: true })
  }
  const out = await person.withdraw({ position_id: opened.result.position_id, amount_usdc: '1' })
  assert.equal(out.body.status, 'completed', JSON.stringify(out.body))
  await operator.act('it was a false alarm', 'kill-switch', 'off', '--global')
  await untilShown(first.url, { status: 'ok', isOn: false })
  assert.equal((await person.deposit('1', { at: second.url })).body.status, 'completed')
})

test('a paused sponsor pays for nothing new on any instance until it is unpaused', async () => {
  const person = await createFundedPerson(first.url)
  const payers = async (at: string): Promise<string> => {
    const { body } = await person.deposit('1', { at })
    assert.equal(body.status, 'completed', JSON.stringify(body))
    const transaction = (await world.rpc('eth_getTransactionByHash', [body.result.tx_hash])) as {
      from: string
    }
    return transaction.from.toLowerCase()
  }
  for (let n = 0; n < 4; n++) await payers(first.url)
  const known = await operator.rows<{ chain: string; signer: string }>('sponsors', 'list')
  const signers = [...new Set(known.filter(({ chain }) => chain === '8453').map(({ signer }) => signer))]
  assert.ok(signers.length >= 2, JSON.stringify(known))
  const remaining = signers[0]!
  for (const signer of signers.slice(1))
    await operator.act('balance looks wrong', 'sponsors', 'pause', signer, '--chain', '8453')
  for (const url of [first.url, second.url]) {
    await eventually(
      async () => ((await payers(url)) === remaining ? true : undefined),
      'only one pays',
      20_000,
    )
    for (let n = 0; n < 3; n++) assert.equal(await payers(url), remaining)
  }
  await operator.act('none left', 'sponsors', 'pause', remaining, '--chain', '8453')
  const refused = await eventually(async () => {
    const { status, body } = await person.deposit('1', { at: second.url })
    return status === 503 ? (body as unknown as { reason: string }).reason : undefined
  }, 'sponsored transactions are paused')
  assert.equal(refused, 'sponsor_paused')
  for (const signer of signers) await operator.act('checked', 'sponsors', 'unpause', signer)
  for (const url of [first.url, second.url])
    await eventually(async () => {
      const { status } = await person.deposit('1', { at: url })
      return status === 200 ? true : undefined
    }, 'sponsors pay again')
  assert.match(await operator.refusal('sponsors', 'unpause', remaining, '--why', 'x'), /is not paused/)
})

test('the sponsors on Solana are listed, and paused by their address', async () => {
  const onSolana = async () =>
    (
      await operator.rows<{ chain: string; signer: string; paused_since: string | null }>('sponsors', 'list')
    ).filter(({ chain }) => chain === '7565164')
  const [sponsor, ...others] = await onSolana()
  assert.ok(sponsor && others.length === 1, JSON.stringify([sponsor, others]))
  await operator.act('balance looks wrong', 'sponsors', 'pause', sponsor.signer)
  const paused = (await onSolana()).filter(({ paused_since }) => paused_since !== null)
  assert.deepEqual(
    paused.map(({ signer }) => signer),
    [sponsor.signer],
  )
  await operator.act('checked', 'sponsors', 'unpause', sponsor.signer, '--chain', '7565164')
  assert.ok((await onSolana()).every(({ paused_since }) => paused_since === null))
  const refusal = await operator.refusal('sponsors', 'pause', sponsor.signer, '--chain', '1', '--why', 'x')
  assert.match(refusal, /none of chain 1/)
})

test('SQL is read-only unless a write is requested, and each statement is recorded', async () => {
  const read = await operator.rows('psql', 'select 1 as one')
  assert.deepEqual(read[0], { one: 1 })
  const note = "insert into database_binding (key, value) values ('note', 'x')"
  for (const way of ['set default_transaction_read_only = off', 'commit', 'set transaction read write'])
    assert.match(await operator.refusal('psql', `${way}; ${note}`), /multiple commands/)
  const refused = await operator.refusal('psql', note)
  assert.equal(refused, 'portico admin: cannot execute INSERT in a read-only transaction\n')
  assert.match(await operator.refusal('psql', 'select 1', '--write'), /--write requires --why/)
  await operator.act(
    'a note',
    'psql',
    "insert into database_binding (key, value) values ('note', 'x')",
    '--write',
  )
  const piped = await admin(
    env,
    ['psql'],
    "select value\nfrom database_binding where key = 'note';\nselect 2 as two;\n",
  )
  assert.equal(piped.code, 0, piped.err)
  assert.match(piped.out, /value\nx\n\(1 row\)\ntwo\n2\n/)
  const url = await operator.run('psql', '--url')
  assert.equal(url.out.trim(), first.databaseUrl)
  const statements = (await operator.log()).filter(({ command }) => command === 'psql')
  assert.ok(
    statements.some(({ details }) => String(details.statement).startsWith('insert into database_binding')),
  )
})

test('recorded commands are listed by subject, and cannot be changed', async () => {
  const agent = await newAgent(first.url)
  const userId = await userIdOf(agent)
  await operator.act('one', 'users', 'freeze', userId)
  await operator.act('two', 'users', 'unfreeze', userId)
  const listed = await operator.log('--subject', userId)
  assert.deepEqual(
    listed.map(({ command, reason, actor }) => [command, reason, actor]),
    [
      ['users unfreeze', 'two', 'ann'],
      ['users freeze', 'one', 'ann'],
    ],
  )
  const change = "update admin_action set actor = 'nobody'"
  assert.match(await operator.refusal('psql', change, '--write', '--why', 'x'), /never changed/)
})
