/** The page of the account by its requests: who is shown what, and which acts take a sign-in. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { bearer, eventually, http, newAgent, signedAct } from '../harness/gateway.ts'
import { confirming } from './confirming.ts'
import { takeAccount } from './early-person.ts'
import {
  type Browser,
  createBrowser,
  createOAuthApp,
  type OAuthApp,
  type Page,
  password,
} from './oauth-app.ts'
import { authorizeUrl, connectingPerson, signUpUser } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp({ env: { COOLING_SECONDS: '3600', RATE_READ: '600' } })
})
after(() => app?.[Symbol.asyncDispose]())

type Body = {
  code: string
  agents: { agent_id: string; name: string }[]
  paused: object | null
  pending_changes: { change_id: string }[]
}
const account = () => `${app.base}/oauth/account`
const alertOf = ({ html }: Page) => /role="alert">([^<]*)/.exec(html)?.[1]
const noticeOf = ({ html }: Page) => /role="status">([^<]*)/.exec(html)?.[1]

async function newVisitor() {
  const person = connectingPerson(app)
  const { authorization, clientId } = await person.connect({ allows: ['trade', 'manage', 'propose'] })
  await signUpUser(app, authorization)
  const browser = createBrowser()
  let csrf: string | undefined
  const confirmed = confirming(person, app.base, authorization)
  const call = (method: string, path: string, body?: object) =>
    http<Body>(app.base + path, { method, headers: { authorization }, ...(body && { body }) })
  const signIn = (page: Page) => browser.submit(page, 'sign-in', { email: person.email, password })
  return {
    email: person.email,
    clientId,
    browser,
    signIn,
    open: async (path = '') => signIn(await browser.open(account() + path)),
    call,
    confirmed: async (...given: Parameters<typeof call>) => confirmed(await call(...given)),
    /** With the proof of a page that was shown before. */
    async post(step: string, fields: Record<string, string>) {
      csrf ??= proofOf(await browser.open(`${account()}/link`))
      return browser.open(`${account()}/${step}`, {
        method: 'POST',
        body: new URLSearchParams({ ...fields, ...(csrf && { csrf }) }),
        headers: { origin: app.base },
      })
    },
    /** What the person confirms on the page that an act has led to. */
    confirm: async (page: Page) => {
      const shown = isSignIn(page) ? await signIn(page) : page
      return browser.submit(shown, 'approve')
    },
  }
}
const proofOf = ({ html }: Page) => /name="csrf" value="([0-9a-f]{64})"/.exec(html)?.[1]
const tokenOfPage = ({ cookies }: Browser): string =>
  cookies.get('/oauth/account portico_account')?.value.split('=')[1] ?? ''
const isSignIn = ({ html }: Page) => /<h1>Sign in<\/h1>/.test(html)
async function newKeyPair() {
  const agent = await newAgent(app.base)
  const ask = (method: string, path: string, body?: object) =>
    http<Body>(app.base + path, { method, headers: bearer(agent), ...(body && { body }) })
  return {
    ...agent,
    ask,
    code: async () =>
      (await ask('POST', '/v1/agents/link-codes', signedAct(agent, 'agents_link_code'))).body.code,
  }
}

test('the token of the own pages makes no more requests that wait than an app does', async () => {
  const visitor = await newVisitor()
  await visitor.open()
  await visitor.call('PUT', '/v1/policy', { per_day_usd: '100' })
  const headers = { authorization: `Bearer ${tokenOfPage(visitor.browser)}` }
  const statuses: number[] = []
  for (let limit = 101; limit <= 111; limit++) {
    const body = { per_day_usd: String(limit) }
    statuses.push((await http(`${app.base}/v1/policy`, { method: 'PUT', headers, body })).status)
  }
  assert.deepEqual([new Set(statuses.slice(0, 10)), statuses.at(-1)], [new Set([200]), 409])
})

test('the page tightens at once; what loosens is named on the page of approvals and confirmed there', async () => {
  const visitor = await newVisitor()
  const { browser, call, post, confirm } = visitor
  const agent = await newKeyPair()
  await visitor.open()
  const isPaused = async () => (await call('GET', '/v1/policy')).body.paused !== null
  const agents = async () => (await call('GET', '/v1/agents')).body.agents.length
  assert.equal(noticeOf(await post('stop', {})), 'Trading is stopped.')
  assert.ok(await isPaused())
  const resumed = await post('resume', {})
  assert.match(resumed.html, /Allow trading again for your account/)
  assert.doesNotMatch(resumed.html, /<script/)
  assert.match(resumed.headers.get('content-security-policy') ?? '', /default-src 'none'; style-src/)
  assert.equal(resumed.headers.get('cross-origin-opener-policy'), 'noopener-allow-popups')
  assert.ok(await isPaused(), 'nobody has confirmed it')
  await browser.submit(resumed, 'decline')
  assert.ok(await isPaused())
  assert.match((await confirm(await post('resume', {}))).html, /Approved/)
  await eventually(async () => !(await isPaused()), 'the switch is lifted')

  const linking = await post('agent-link', {
    code: ` ${(await agent.code()).toLowerCase()} `,
    name: '<i>Bot</i>',
  })
  assert.match(linking.url, /\/oauth\/approvals\/[0-9a-f-]{36}$/)
  assert.match(linking.html, new RegExp(`Link the agent ${agent.agentId}.*&lt;i&gt;Bot&lt;/i&gt;`, 's'))
  assert.equal(await agents(), 0)
  await confirm(linking)
  await eventually(async () => (await agents()) === 1, 'the agent is linked')
  await confirm(await post('agent-unlink', { agent_id: agent.agentId }))
  await eventually(async () => (await agents()) === 0, 'the agent is unlinked')
})

test('a form without the proof of the page changes nothing, whatever it says of its origin', async () => {
  const visitor = await newVisitor()
  await visitor.open()
  for (const headers of [{}, { origin: app.base }] as Record<string, string>[])
    for (const csrf of ['', '0'.repeat(64)]) {
      const body = new URLSearchParams({ csrf })
      const refused = await visitor.browser.open(`${account()}/stop`, { method: 'POST', body, headers })
      assert.equal(refused.status, 403)
    }
  assert.equal((await visitor.call('GET', '/v1/policy')).body.paused, null)
})

test('a person acts for own agents alone, and another site for nobody', async () => {
  const [one, two] = [await newVisitor(), await newVisitor()]
  const agent = await newKeyPair()
  await one.confirmed('POST', '/v1/agents', { code: await agent.code(), name: 'Bot' })
  await one.call('PUT', '/v1/policy', { per_day_usd: '100', for_agent: agent.agentId })
  const raised = await one.confirmed('PUT', '/v1/policy', { per_day_usd: '500', for_agent: agent.agentId })
  const [change] = raised.body.pending_changes
  const mine = await one.open(`/agents/${agent.agentId}`)
  assert.match(mine.html, /24 hours: up to 500 USD.*Takes effect in 59 minutes/s)
  const theirs = await two.open(`/agents/${agent.agentId}`)
  assert.deepEqual([theirs.status, alertOf(theirs)], [404, 'This agent is not linked to you.'])
  assert.ok(!theirs.html.includes(agent.agentId))
  const fields = { agent_id: agent.agentId, change_id: change!.change_id }
  for (const step of ['stop', 'limit-cancel', 'agent-unlink', 'resume']) {
    const refused = await two.post(step, fields)
    assert.equal(refused.status, 404, step)
  }
  const foreign = await one.browser.submit(mine, 'stop', fields, { origin: 'https://evil.example' })
  assert.equal(foreign.status, 403)
  assert.equal((await agent.ask('GET', '/v1/policy')).body.paused, null)
  const cancelled = await one.browser.submit(mine, 'limit-cancel', fields)
  assert.equal(cancelled.url, `${account()}/agents/${agent.agentId}?notice=cancelled`)
  assert.deepEqual((await agent.ask('GET', '/v1/policy')).body.pending_changes, [])
  const late = await one.post('limit-cancel', fields)
  assert.deepEqual([late.status, alertOf(late)], [404, 'This change is in effect, or was cancelled before.'])
  assert.equal((await one.post('nothing', {})).status, 404)
})

test('another person who signs in to the browser sees nothing of the former one', async () => {
  const [one, two] = [await newVisitor(), await newVisitor()]
  const webhook = { url: 'http://127.0.0.1:2/', description: 'Of the former one' }
  assert.equal((await one.call('POST', '/v1/webhooks', webhook)).status, 200)
  const before = await one.open()
  assert.match(before.html, new RegExp(one.email))
  assert.match(before.html, /Of the former one/)
  // The session of the browser changes in a request of another app; the cookie of the page stays.
  const asked = await one.browser.open(authorizeUrl(app, two.clientId, { prompt: 'login consent' }))
  await one.browser.submit(asked, 'sign-in', { email: two.email, password })
  const shown = await one.browser.open(account())
  assert.match(shown.html, new RegExp(two.email))
  assert.doesNotMatch(shown.html, new RegExp(one.email))
  assert.doesNotMatch(shown.html, /Of the former one/)
  const token = tokenOfPage(one.browser)
  const read = () => http(`${app.base}/v1/policy`, { headers: bearer({ token }) })
  assert.equal((await read()).status, 200)
  const left = await one.browser.submit(shown, 'sign-out')
  assert.match(left.html, /You are signed out/)
  assert.equal((await read()).status, 401)
  assert.ok(isSignIn(await one.browser.open(account())))
})

test('a person without a sign-up sees apps alone, and links an agent after it', async () => {
  const person = connectingPerson(app)
  await takeAccount(app.database.pool, (await person.connect()).authorization)
  const browser = createBrowser()
  const asked = await browser.open(account())
  const shown = await browser.submit(asked, 'sign-in', { email: person.email, password })
  assert.match(shown.html, /appear here once you have signed up.*Connected apps.*Attack/s)
  assert.doesNotMatch(shown.html, /Link an agent|Trading/)
  const refused = await browser.open(`${account()}/stop`, {
    method: 'POST',
    body: new URLSearchParams(),
    headers: { origin: app.base },
  })
  assert.equal(refused.status, 403)
})

test('wrong codes are counted on the page as everywhere', async () => {
  const visitor = await newVisitor()
  const page = await visitor.open('/link')
  const link = (code: string) => visitor.browser.submit(page, 'agent-link', { code })
  assert.equal(alertOf(await link('short')), 'A code has twelve letters and digits. Check it, and the name.')
  for (let n = 0; n < 10; n++)
    assert.match(alertOf(await link('AAAA-AAAA-AAAA')) ?? '', /This code is wrong, or it has expired/)
  const limited = await link('AAAA-AAAA-AAAA')
  assert.deepEqual(
    [limited.status, alertOf(limited)],
    [429, 'Too many wrong codes. Wait 15 minutes and try again.'],
  )
})

/** The token of the page ends before the session of the browser. */
const forgetToken = ({ cookies }: ReturnType<typeof createBrowser>) => {
  assert.ok(cookies.delete('/oauth/account portico_account'), [...cookies.keys()].join())
}

test('a press after the sign-in of the page is over is not lost in silence, and an app can still be disconnected', async () => {
  const visitor = await newVisitor()
  const { browser, call, post } = visitor
  const shown = await visitor.open()
  forgetToken(browser)
  const again = await browser.submit(shown, 'stop')
  assert.match(noticeOf(again) ?? '', /nothing was changed\. Press it once more/)
  assert.equal((await call('GET', '/v1/policy')).body.paused, null)
  assert.equal(noticeOf(await post('stop', {})), 'Trading is stopped.')
  forgetToken(browser)
  const disconnected = await post('disconnect', { client_id: visitor.clientId })
  assert.equal(noticeOf(disconnected), 'The app is disconnected.')
  assert.match(disconnected.html, /cannot be shown now/)
  assert.equal((await call('GET', '/v1/policy')).status, 401)
  assert.match((await post('sign-out', {})).html, /signed out/i)
  assert.ok(isSignIn(await browser.open(account())))
})

test('an app cannot use up the reads of the page, and without any the person still stops trading and disconnects it', async () => {
  const visitor = await newVisitor()
  const { browser, call, post } = visitor
  await visitor.open()
  const useUp = async (read: () => Promise<{ status: number }>) => {
    const reads = await Promise.all(Array.from({ length: 700 }, read))
    assert.ok(reads.some(({ status }) => status === 429))
  }
  await useUp(() => call('GET', '/v1/policy'))
  assert.doesNotMatch((await browser.open(account())).html, /cannot be shown now/, 'the page counts apart')
  const token = tokenOfPage(browser)
  await useUp(() => http(`${app.base}/v1/policy`, { headers: bearer({ token }) }))
  const shown = await browser.open(account())
  assert.match(shown.html, /cannot be shown now.*Stop all trading.*Disconnect/s)
  assert.match((await post('stop', {})).html, /Trading is stopped\./)
  assert.equal(
    noticeOf(await post('disconnect', { client_id: visitor.clientId })),
    'The app is disconnected.',
  )
})

test('where nobody signs in there are no pages, and no agent is sent to one', async () => {
  await using off = await createOAuthApp({ env: { AUTH_MODE: 'off' } })
  for (const path of ['/oauth/account', '/oauth/approvals', '/oauth/account/link', '/oauth/authorize']) {
    const reply = await http<{ detail: string; code: string }>(off.base + path)
    assert.deepEqual([reply.status, reply.body.code], [404, 'not_found'], path)
    assert.match(reply.body.detail, /people do not sign in at this gateway/i)
  }
  const agent = await newAgent(off.base)
  const made = await http<{ confirm_url: string | null; instructions: string; code: string }>(
    `${off.base}/v1/agents/link-codes`,
    { method: 'POST', headers: bearer(agent), body: signedAct(agent, 'agents_link_code') },
  )
  assert.equal(made.body.confirm_url, null)
  assert.ok(made.body.instructions.startsWith(`Enter the code ${made.body.code}`))
})
