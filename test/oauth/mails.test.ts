/** People are notified by mail of what was loosened at their accounts: once, also where services and gateways fail. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import { claimMails } from '#engines/person-mails/mail-queue.ts'
import { query } from '#store/query.ts'
import { bearer, dataFolder, eventually, http, launch, newAgent, signedAct } from '../harness/gateway.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { offlineSettings } from '../journeys/offline-gateway.ts'
import { confirming } from './confirming.ts'
import { openEmailService } from './email-service.ts'
import { createBrowser, createOAuthApp, type OAuthApp, openOAuthInstance, password } from './oauth-app.ts'
import { authorizeUrl, connectingPerson, register, type SignInApp, signUpUser } from './session.ts'

const pollMs = 100
let service: Awaited<ReturnType<typeof openEmailService>>
let app: OAuthApp
let signInApp: SignInApp
before(async () => {
  service = await openEmailService()
  app = await createOAuthApp({
    env: { EMAIL_URL: service.url, COOLING_SECONDS: '3600' },
    overrides: { mailPollMs: pollMs },
  })
  signInApp = { base: app.base, codeFor: service.codeFor }
})
after(async () => {
  await app?.[Symbol.asyncDispose]()
  await service?.[Symbol.asyncDispose]()
})

type Body = { code: string; agent_id: string; pending_changes: { effective_at: string }[] }
async function newPerson() {
  const person = connectingPerson(signInApp)
  const { authorization } = await person.connect({ allows: ['trade', 'manage', 'propose'] })
  await signUpUser(signInApp, authorization)
  const confirmed = confirming(person, app.base, authorization)
  const send = (method: string, path: string, body?: object) =>
    http<Body>(app.base + path, { method, headers: { authorization }, ...(body && { body }) })
  const call = async (...given: Parameters<typeof send>) => confirmed(await send(...given))
  const limit = (per_day_usd: string) => call('PUT', '/v1/policy', { per_day_usd })
  return { ...person, call, limit }
}
const rowOf = 'from person_mail m join person p on p.id = m.person_id where p.email = $1 and m.kind = $2'
/** The first message about limits was accepted, and that is recorded. */
const settled = (email: string) =>
  eventually(async () => {
    const rows = await query(
      app.database.pool,
      `select 1 ${rowOf} and sending is null and sent_at is not null`,
      [email, 'limits_raised'],
    )
    return rows.length === 1 || undefined
  }, `the message to ${email} is settled`)
const shownTime = (iso: string): string => {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) (\d+) (\d\d:\d\d)/.exec(new Date(iso).toUTCString())!
  return `${Number(day)} ${month} ${year}, ${time} UTC`
}
/** Each message has no code, no key, and no address but that of the page and of the gateway. */
const assertHarmless = (text: string) => {
  const addresses = [...text.matchAll(/https?:\/\/[^\s,)]+/g)].map(([address]) => address.replace(/\.$/, ''))
  assert.deepEqual([...new Set(addresses)].sort(), [app.base, `${app.base}/oauth/account`])
  assert.doesNotMatch(text, /\b\d{8}\b|eyJ|whsec|agt_[\w-]{40}/)
}

test('a person is notified of a raised limit, the switch, an agent and an app: what, when and where to undo it', async () => {
  const { email, call, limit } = await newPerson()
  await limit('100')
  const raised = await limit('500')
  await call('POST', '/v1/kill', { on: true })
  await call('POST', '/v1/kill', { on: false })
  const agent = await newAgent(app.base)
  const codes = await http<Body>(`${app.base}/v1/agents/link-codes`, {
    method: 'POST',
    headers: bearer(agent),
    body: signedAct(agent, 'agents_link_code'),
  })
  const name = 'Bot https://evil.example/now'
  assert.equal((await call('POST', '/v1/agents', { code: codes.body.code, name })).status, 200)
  const ofAgent = await call('PUT', '/v1/policy', { per_day_usd: '200', for_agent: agent.agentId })
  assert.equal(ofAgent.status, 200)

  const [limits] = await service.until(email, /^Limits of your Portico account were raised$/)
  const at = raised.body.pending_changes[0]!.effective_at
  assert.match(
    limits!.text,
    /The limits of your account were raised: 24 hours may cost up to 500 USD instead of 100 USD\./,
  )
  assert.ok(limits!.text.includes(`It takes effect on ${shownTime(at)}.`), limits!.text)
  assert.ok(
    limits!.text.includes(`open ${app.base}/oauth/account, sign in and cancel the change`),
    limits!.text,
  )
  const [resumed] = await service.until(email, /^Trading with your Portico account was allowed again$/)
  assert.match(resumed!.text, /The kill switch of your account was lifted.*\nIt took effect at once\./)
  const [linked] = await service.until(email, /^An agent was linked to your Portico account$/)
  assert.ok(
    linked!.text.includes(`The agent “Bot https evil example now” (${agent.agentId}) was linked.`),
    linked!.text,
  )
  const [connected] = await service.until(email, /^An app was connected to your Portico account$/)
  assert.match(
    connected!.text,
    /The app “Attack” was connected\. It may see .*; trade within your limits; lower your limits/,
  )
  for (const each of [limits, resumed, linked, connected]) assertHarmless(each!.text)
  assert.equal(
    service.to(email).filter(({ subject }) => /Limits/.test(subject)).length,
    1,
    'what tightens is no news',
  )
})

test('the pages of the gateway itself are no app that was connected', async () => {
  const { email } = await newPerson()
  await service.until(email, /An app was connected/)
  const browser = createBrowser()
  const asked = await browser.open(`${app.base}/oauth/account`)
  const shown = await browser.submit(asked, 'sign-in', { email, password })
  assert.match(shown.html, /<h1>Your account<\/h1>/)
  await browser.open(`${app.base}/oauth/approvals`)
  const rows = await query(app.database.pool, `select m.items ${rowOf}`, [email, 'app_connected'])
  assert.deepEqual(rows, [{ items: [] }])
})

test('a new password ends the sessions and is notified of; the password of a new account is not', async () => {
  const { email, call } = await newPerson()
  const browser = createBrowser()
  const { client_id } = await register(app)
  const page = await browser.open(authorizeUrl(app, client_id))
  const form = await browser.open(`${page.url}?view=reset`)
  const sent = await browser.submit(form, 'reset', { email, password: 'another long password' })
  await browser.submit(sent, 'code', { email, code: service.codeFor(email) })
  const notified = await service.until(email, /^The password of your Portico account was changed$/)
  assert.equal(notified.length, 1)
  assert.match(
    notified[0]!.text,
    /Every session and connected app was ended\..*choose “Forgot your password\?”/s,
  )
  assertHarmless(notified[0]!.text)
  assert.equal((await call('GET', '/v1/user')).status, 401)
})

test('one message of a sort leaves in a minute, and the next one has what came meanwhile', async () => {
  const { email, limit } = await newPerson()
  const subject = /^Limits/
  await limit('100')
  await limit('200')
  await service.until(email, subject)
  await settled(email)
  for (const usd of ['300', '400', '500']) await limit(usd)
  const [row] = await query<{ waits: number; after_ms: string }>(
    app.database.pool,
    `select jsonb_array_length(items) as waits, extract(epoch from due_at - sent_at) * 1000 as after_ms ${rowOf}`,
    [email, 'limits_raised'],
  )
  assert.deepEqual([row!.waits, Number(row!.after_ms)], [3, 60_000])
  assert.equal((await service.until(email, subject)).length, 1)
  app.time.offsetMs += 61_000
  try {
    const [, next] = await service.until(email, subject, 2)
    assert.equal(next!.subject, 'Limits of your Portico account were raised (3 times)')
    for (const usd of ['300', '400', '500']) assert.ok(next!.text.includes(`up to ${usd} USD`), next!.text)
    assert.notEqual(next!.key, service.to(email).find((each) => subject.test(each.subject))!.key)
  } finally {
    app.time.offsetMs = 0
  }
})

test('more changes than one message names are counted', async () => {
  const { email, limit, call } = await newPerson()
  await limit('1')
  await limit('2')
  await settled(email)
  for (let usd = 3; usd < 26; usd++) assert.equal((await limit(String(usd))).status, 200)
  assert.equal((await call('GET', '/v1/policy')).body.pending_changes.length, 1)
  app.time.offsetMs += 61_000
  try {
    const [, next] = await service.until(email, /^Limits/, 2)
    assert.equal(next!.subject, 'Limits of your Portico account were raised (23 times)')
    assert.match(next!.text, /And 3 more of this sort\./)
  } finally {
    app.time.offsetMs = 0
  }
})

test('a service that fails undoes nothing, and gets the same message again under its key', async () => {
  const { email, limit } = await newPerson()
  service.answer(({ subject }) => (subject.startsWith('Limits') ? 503 : 202))
  await limit('100')
  const raised = await limit('200')
  assert.equal(raised.status, 200)
  // The attempts of one sending.
  await service.until(email, /^Limits/, 3)
  service.answer(() => 202)
  const later = await limit('300')
  assert.equal(later.body.pending_changes.length, 1)
  app.time.offsetMs += 61_000
  try {
    const all = await service.until(email, /^Limits/, 4)
    assert.deepEqual(
      all.map(({ status }) => status),
      [503, 503, 503, 202],
    )
    assert.equal(new Set(all.map(({ key }) => key)).size, 1)
    assert.equal(new Set(all.map(({ text }) => text)).size, 1, 'what came meanwhile is in the next message')
  } finally {
    app.time.offsetMs = 0
  }
})

test('two instances that look for messages at once send each of them once', async () => {
  await using _other = await openOAuthInstance({
    databaseUrl: app.databaseUrl,
    baseUrl: app.base,
    env: { EMAIL_URL: service.url },
    overrides: { mailPollMs: 10 },
  })
  const people = await Promise.all(Array.from({ length: 8 }, () => newPerson()))
  await Promise.all(people.map(({ limit }) => limit('100')))
  await Promise.all(people.map(({ limit }) => limit('200')))
  for (const { email } of people) {
    await settled(email)
    assert.equal((await service.until(email, /^Limits/)).length, 1, email)
  }
})

test('a message that another instance is claiming is left to it', async () => {
  await using idle = await createOAuthApp({ overrides: { mailPollMs: 86_400_000 } })
  const { pool } = idle.database
  const id = randomUUID()
  await pool.query(
    `with added as (insert into person (id, email, created_at) values ($1, 'claimed@example.com', now()) returning id)
     insert into person_mail (person_id, kind, items, due_at) select $1, 'limits_raised', '[]', now() from added`,
    [id],
  )
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from person_mail where person_id = $1 for update', [id])
  const claim = () => claimMails(pool, { now: new Date(), leaseMs: 60_000, max: 10 })
  let hasClaimed = false
  const claims = Promise.all([claim(), claim()]).finally(() => {
    hasClaimed = true
  })
  await eventually(async () => {
    const { rows } = await pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return hasClaimed || rows.length >= 2 ? true : undefined
  }, 'both have claimed, or wait')
  await holder.query('commit')
  holder.release()
  assert.deepEqual(await claims, [[], []])
  assert.equal((await claim()).length, 1)
})

test('a gateway that is killed while it sends leaves the message to the next one, and loses none', async () => {
  await using own = await ownDatabase()
  using folder = dataFolder()
  const start = () =>
    launch({
      env: { ...offlineSettings, DATA_DIR: folder.path, DATABASE_URL: own.url, EMAIL_URL: service.url },
    })
  await using first = await start()
  const person = connectingPerson({ base: first.url, codeFor: service.codeFor }, 'killed@example.com')
  const { email } = person
  const { authorization } = await person.connect({ allows: ['manage', 'propose'] })
  const confirmed = confirming(person, first.url, authorization)
  await signUpUser({ base: first.url, codeFor: service.codeFor }, authorization)
  await service.until(email, /An app was connected/)
  service.answer(({ subject }) => (subject.startsWith('Limits') ? 'hold' : 202))
  for (const per_day_usd of ['100', '500']) {
    const asked = await http(`${first.url}/v1/policy`, {
      method: 'PUT',
      headers: { authorization },
      body: { per_day_usd },
    })
    assert.equal((await confirmed(asked)).status, 200)
  }
  const [cut] = await service.until(email, /^Limits/)
  await first.kill()
  service.answer(() => 202)
  await using _second = await start()
  const waiting = await query(own.database.pool, `select kind from person_mail where due_at is not null`)
  assert.deepEqual(waiting, [{ kind: 'limits_raised' }])
  // As if its minute had passed.
  await query(own.database.pool, `update person_mail set due_at = now() where due_at is not null`)
  const [, again] = await service.until(email, /^Limits/, 2)
  assert.equal(again!.key, cut!.key)
  assert.match(again!.text, /up to 500 USD instead of 100 USD/)
  await eventually(
    async () =>
      (await query(own.database.pool, 'select 1 from person_mail where due_at is not null')).length === 0 ||
      undefined,
    'the message is settled',
  )
})
