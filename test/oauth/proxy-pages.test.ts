/** A client of the authorization server of somebody else: its pages ask for a sign-in there before a person confirms. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { ownClientIds } from '#kernel/contract/caller.ts'
import type { Lie } from '#world/identity/identity.ts'
import { eventually, http, newAgent, signedAct } from '../harness/gateway.ts'
import { federatedPerson } from './facade-app.ts'
import { createBrowser, type Page } from './oauth-app.ts'
import { createProxyApp, externalTokens, type ProxyApp } from './proxy-app.ts'
import { authorizeUrl, tokenRequest, verifier } from './session.ts'

let proxied: ProxyApp
let base: string
before(async () => {
  proxied = await createProxyApp({ hasPages: true })
  base = proxied.app.base
})
after(() => proxied?.[Symbol.asyncDispose]())
beforeEach(() => {
  proxied.identity.lie = undefined
})

type Approval = { approval_id: string; intent_sha256: string; confirm_url: string }
type Body = {
  code: string
  requires: string
  paused: object | null
  per_day_usd: string
  pending_changes: { per_day_usd: string }[]
  approval: Approval
  confirmation: Approval
  approvals: Approval[]
  agents: { agent_id: string }[]
}

/** The app of a person, which has the tokens of the other server. */
async function personWithApp(subject: string) {
  const { headers } = await externalTokens(proxied, subject, { acts: 'manage propose' })
  const call = (route: string, body?: object) => {
    const [method = '', path = ''] = route.split(' ')
    return http<Body>(base + path, { method, headers, ...(body && { body }) })
  }
  assert.equal((await call('POST /signup', {})).status, 200)
  const askToResume = async (): Promise<Approval> => {
    assert.equal((await call('POST /v1/kill', { on: true })).status, 200)
    const asked = await call('POST /v1/kill', { on: false })
    assert.equal(asked.status, 200, JSON.stringify(asked.body))
    return asked.body.approval
  }
  const isPaused = async () => (await call('GET /v1/policy')).body.paused !== null
  return { call, askToResume, isPaused, visitor: () => federatedPerson(proxied, subject) }
}

const canConfirm = ({ html }: Page): boolean => /\/approve"/.test(html)
const hiddenField = ({ html }: Page, name: string): string =>
  new RegExp(`name="${name}" value="([0-9a-f]*)"`).exec(html)?.[1] ?? ''
const alertOf = ({ html }: Page): string => /role="alert">([^<]*)/.exec(html)?.[1] ?? ''

test('an app raises a limit: its person signs in anew at the other server, reads the figure, and confirms it once', async () => {
  const { call, visitor } = await personWithApp('ada')
  assert.equal((await call('PUT /v1/policy', { per_day_usd: '100' })).status, 200)
  const asked = await call('PUT /v1/policy', { per_day_usd: '300' })
  const { approval_id, confirm_url } = asked.body.confirmation
  assert.equal(confirm_url, `${base}/oauth/approvals/${approval_id}`)
  const { intent_sha256 } = (await call('GET /v1/approvals')).body.approvals[0]!
  const byApp = await call(`POST /v1/approvals/${approval_id}/approve`, { intent_sha256 })
  assert.deepEqual([byApp.status, byApp.body.code, byApp.body.requires], [403, 'step_up_required', 'person'])

  const person = visitor()
  const signIn = await person.gateway.open(confirm_url)
  assert.match(signIn.html, new RegExp(`Continue with ${new URL(proxied.identity.issuer).host}`))
  assert.doesNotMatch(signIn.html, /<script/)
  const departure = new URL(person.addressIn(await person.gateway.submit(signIn, 'continue'))).searchParams
  const fields = ['response_type', 'prompt', 'max_age', 'code_challenge_method', 'redirect_uri']
  assert.deepEqual(
    fields.map((name) => departure.get(name)),
    ['code', 'login', '0', 'S256', `${base}/oauth/callback`],
  )
  for (const name of ['state', 'nonce', 'code_challenge'])
    assert.ok(departure.get(name)!.length >= 32, `${name} cannot be guessed`)

  const shown = await person.signIn(signIn)
  assert.equal(shown.url, confirm_url)
  assert.match(shown.html, /300/)
  assert.doesNotMatch(shown.html, /<script/)
  const other = await person.gateway.submit(shown, 'approve', { intent_sha256: 'f'.repeat(64) })
  assert.equal(other.status, 422, 'the digest of another act')
  assert.deepEqual((await call('GET /v1/policy')).body.pending_changes, [])
  assert.match((await person.gateway.submit(shown, 'approve')).html, /Approved/)
  await eventually(async () => {
    const { per_day_usd, pending_changes } = (await call('GET /v1/policy')).body
    return (per_day_usd === '100' && pending_changes[0]?.per_day_usd === '300') || undefined
  }, 'the raise waits for its time')
})

test('a person links an agent with its code on the page, and confirms it there', async () => {
  const { call, visitor } = await personWithApp('lovelace')
  const agent = await newAgent(base)
  const { body } = await http<{ code: string; confirm_url: string }>(`${base}/v1/agents/link-codes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${agent.token}` },
    body: signedAct(agent, 'agents_link_code'),
  })
  assert.equal(body.confirm_url, `${base}/oauth/account/link`)
  const person = visitor()
  const form = await person.signIn(await person.gateway.open(body.confirm_url))
  const asked = await person.gateway.submit(form, 'agent-link', { code: body.code, name: 'Trader' })
  // The sign-in was for another page than that of approvals, and is a new one all the same.
  const shown = canConfirm(asked) ? asked : await person.signIn(asked)
  assert.match(shown.html, new RegExp(agent.agentId))
  assert.match((await person.gateway.submit(shown, 'approve')).html, /Approved/)
  await eventually(
    async () => (await call('GET /v1/agents')).body.agents[0]?.agent_id === agent.agentId || undefined,
    'the agent is linked',
  )
})

const lies: Lie[] = [
  'ignores prompt and max_age',
  'old auth_time',
  'used code',
  'wrong nonce',
  'wrong issuer',
]

test('a sign-in about which the other server lies confirms nothing', async () => {
  const { askToResume, isPaused, visitor } = await personWithApp('grace')
  const { confirm_url } = await askToResume()
  // One whose code is used up.
  const honest = visitor()
  assert.ok(canConfirm(await honest.signIn(await honest.gateway.open(confirm_url))))
  for (const lie of lies) {
    proxied.identity.lie = lie
    const person = visitor()
    const answer = await person.signIn(await person.gateway.open(confirm_url))
    assert.deepEqual([answer.status, canConfirm(answer)], [422, false], lie)
    assert.match(alertOf(answer), /is not valid|did not sign in/, lie)
    const again = await person.gateway.open(confirm_url)
    assert.ok(!canConfirm(again), lie)
    assert.ok(await isPaused(), lie)
    proxied.identity.lie = undefined
    assert.ok(canConfirm(await person.signIn(again)), `${lie}: an honest sign-in follows`)
  }
})

test('another subject that the other server names sees and decides nothing', async () => {
  const { askToResume, isPaused, visitor } = await personWithApp('hopper')
  await personWithApp('mallory')
  const { confirm_url } = await askToResume()
  const owner = visitor()
  const shown = await owner.signIn(await owner.gateway.open(confirm_url))
  assert.ok(canConfirm(shown))
  proxied.identity.lie = 'another subject'
  const person = visitor()
  const answer = await person.signIn(await person.gateway.open(confirm_url))
  assert.match(answer.html, /does not wait for you/)
  assert.ok(!canConfirm(answer))
  const fields = {
    csrf: hiddenField(answer, 'csrf'),
    intent_sha256: hiddenField(shown, 'intent_sha256'),
  }
  const pressed = await person.gateway.open(`${confirm_url}/approve`, {
    method: 'POST',
    body: new URLSearchParams(fields),
    headers: { origin: base },
  })
  assert.match(pressed.html, /Nothing was changed/)
  assert.ok(await isPaused())
})

test('a return of another browser, or a second one, signs nobody in', async () => {
  const { askToResume, visitor } = await personWithApp('victim')
  const { confirm_url } = await askToResume()
  const [person, thief] = [visitor(), createBrowser()]
  const back = await person.leave(await person.gateway.open(confirm_url))
  assert.equal((await thief.open(back)).status, 410)
  assert.ok(canConfirm(await person.gateway.open(back)))
  assert.ok(!canConfirm(await person.gateway.open(back)))
})

test('a session at the other server confirms nothing, also where the page of the account was opened with it', async () => {
  const { askToResume, visitor } = await personWithApp('lin')
  const { confirm_url } = await askToResume()
  const person = visitor()
  await person.signIn(await person.gateway.open(confirm_url))
  // Another browser at the gateway, with the session of the person at the other server.
  const other = createBrowser()
  const departureFrom = async (url: string) =>
    person.provider.open(person.addressIn(await other.submit(await other.open(url), 'continue')))
  assert.match((await departureFrom(confirm_url)).html, /Choose an account/)
  proxied.identity.lie = 'auth_time that nobody asked for'
  const back = await departureFrom(`${base}/oauth/account`)
  assert.ok(back.url.startsWith(`${base}/oauth/callback?`), back.url)
  assert.match((await other.open(back.url)).html, /lin@example\.com/)
  assert.ok(!canConfirm(await other.open(confirm_url)))
})

test('apps are led to the other server, and the pages alone have the sign-in of this gateway', async () => {
  for (const clientId of ['an-app', `${base}/client.json`, '']) {
    const { url } = await createBrowser().open(`${base}/oauth/authorize?client_id=${clientId}`)
    assert.ok(url.startsWith(`${proxied.identity.issuer}/authorize?`), url)
  }
  for (const clientId of ownClientIds) {
    const page = `${base}/oauth/authorize?client_id=${clientId}&response_type=code&code_challenge_method=S256`
    const challenge = `&code_challenge=${'x'.repeat(43)}&scope=openid&redirect_uri=`
    const stolen = await createBrowser().open(`${page}${challenge}https://attacker.example`)
    assert.deepEqual([stolen.status, new URL(stolen.url).origin], [400, base])
    const twice = await createBrowser().open(`${page}${challenge}${base}&client_id=an-app`)
    assert.deepEqual([twice.status, new URL(twice.url).origin], [400, base])
  }
  const { askToResume, visitor } = await personWithApp('eve')
  const person = visitor()
  await person.signIn(await person.gateway.open((await askToResume()).confirm_url))
  const redirect_uri = `${base}/oauth/approvals/return`
  const wanted = { redirect_uri, scope: 'openid manage propose', prompt: 'none', resource: base }
  const left = await person.gateway.open(authorizeUrl(proxied.app, 'portico-approvals', wanted))
  const code = /[?&]code=([\w-]+)/.exec(left.url)?.[1] ?? ''
  assert.ok(code, left.url)
  // The token endpoint forwards it to the other server, which does not know the pages.
  const { error } = await tokenRequest(proxied.app, {
    grant_type: 'authorization_code',
    client_id: 'portico-approvals',
    redirect_uri,
    code,
    code_verifier: verifier,
  })
  assert.equal(error, 'invalid_client')
  for (const path of ['/oauth/revoke', '/oauth/introspect', '/oauth/userinfo', '/oauth/jwks'])
    assert.equal((await http(base + path)).status, 404, path)
})

test('the page of the account shows apps with what they may do, and disconnects one at this gateway', async () => {
  const other = await personWithApp('owen')
  const { call, visitor } = await personWithApp('owen')
  const person = visitor()
  const account = await person.signIn(await person.gateway.open(`${base}/oauth/account`))
  assert.match(account.html, /asks you to raise limits/)
  // The newest one is the first.
  const done = await person.gateway.submit(account, 'disconnect')
  assert.equal((await call('GET /v1/policy')).body.code, 'invalid_token')
  assert.equal((await other.call('GET /v1/policy')).status, 200)
  const left = await person.gateway.submit(done, 'sign-out-everywhere')
  for (const { html } of [account, done, left]) {
    assert.match(
      html,
      /refused here.* An app may get new tokens at http:[^ ]+, until you disconnect it there/,
    )
    assert.doesNotMatch(html, /access ends|app is disconnected/)
  }
})
