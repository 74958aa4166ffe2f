/** What an app, a thief of its tokens and a script of the page can loosen without a page of the gateway: nothing. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, beforeEach, test } from 'node:test'
import { http, newAgent, signedAct } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp } from './oauth-app.ts'
import { connectingPerson, register, signUpUser, type Tokens, tokenRequest, verifier } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp({ env: { COOLING_SECONDS: '60' } })
})
after(() => app?.[Symbol.asyncDispose]())
beforeEach(() => app.database.pool.query('delete from sign_in_limit'))

const evil = '0x2222222222222222222222222222222222222222'
type Body = {
  code?: string
  status?: string
  state?: string
  approval?: { approval_id: string }
  confirmation?: { approval_id: string }
  approvals: { approval_id: string; intent_sha256: string }[]
  recipients: object[]
  agents: object[]
  paused: object | null
  pending_changes: object[]
  per_day_usd: string
}
const caller =
  ({ access_token }: Pick<Tokens, 'access_token'>) =>
  (method: string, path: string, body?: object) =>
    http<Body>(app.base + path, {
      method,
      headers: { authorization: `Bearer ${access_token}` },
      ...(body && { body }),
    })
const everything = ['trade', 'earn', 'chat', 'manage', 'propose']

test('no box is ticked when the page is shown, and a connection with the boxes as shown reads and nothing else', async () => {
  const person = connectingPerson(app)
  const { page, tokens } = await person.connect({ asks: everything.join(' ') })
  assert.equal([...page.html.matchAll(/type="checkbox"/g)].length, everything.length)
  assert.doesNotMatch(page.html, /<input[^>]* checked/)
  assert.match(page.html, /Never send money to an address that you have not confirmed/)
  await signUpUser(app, `Bearer ${tokens.access_token}`)
  const ask = caller(tokens)
  assert.equal((await ask('GET', '/v1/policy')).status, 200)
  for (const [method, path, body] of [
    ['POST', '/v1/recipients', { chain_id: '8453', address: evil, label: 'Savings', agents: 'allowed' }],
    ['PUT', '/v1/policy', { per_day_usd: '1' }],
    ['POST', '/v1/kill', { on: true }],
    ['POST', '/v1/chat', { query: 'what do i hold', stream: false }],
    ['GET', '/v1/chat/threads', undefined],
    ['POST', '/v1/webhooks', { url: 'http://127.0.0.1:2/' }],
  ] as const)
    assert.equal((await ask(method, path, body)).body.code, 'insufficient_scope', path)
})

/** What an app may ask for once every box is ticked; each is one way to money at a new address. */
const ways: readonly (readonly [method: string, path: string, body: object])[] = [
  ['PUT', '/v1/policy', { per_day_usd: '4000' }],
  ['PUT', '/v1/policy', { per_transaction_usd: '900', approval_above_usd: null }],
  ['POST', '/v1/kill', { on: false }],
  ['POST', '/v1/agents', { code: '7K3M-Q0WD-2XNB' }],
]

test('an app with every box, a thief of its token and one of its refresh token loosen nothing that outlasts the token', async () => {
  const person = connectingPerson(app)
  const { tokens, clientId } = await person.connect({ allows: everything })
  await signUpUser(app, `Bearer ${tokens.access_token}`)
  const owner = caller(tokens)
  await owner('PUT', '/v1/policy', { per_day_usd: '100', per_transaction_usd: '50', approval_above_usd: '5' })
  await owner('POST', '/v1/kill', { on: true })
  const before = (await owner('GET', '/v1/policy')).body
  // Each refresh token is good once, so the thief of one has another access token.
  const stolen = await tokenRequest(app, {
    grant_type: 'refresh_token',
    client_id: clientId,
    refresh_token: tokens.refresh_token,
  })
  for (const thief of [caller(tokens), caller(stolen)]) {
    for (const [method, path, body] of ways) await thief(method, path, body)
    const agent = await newAgent(app.base)
    const made = await http<{ code: string }>(`${app.base}/v1/agents/link-codes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${agent.token}` },
      body: signedAct(agent, 'agents_link_code'),
    })
    assert.equal(
      (await thief('POST', '/v1/agents', { code: made.body.code })).body.state,
      'awaiting_approval',
    )
    const { approvals } = (await thief('GET', '/v1/approvals')).body
    assert.ok(approvals.length > 0)
    for (const { approval_id, intent_sha256 } of approvals) {
      const approved = await thief('POST', `/v1/approvals/${approval_id}/approve`, { intent_sha256 })
      assert.equal(approved.body.code, 'step_up_required')
    }
  }
  const after = (await caller(stolen)('GET', '/v1/policy')).body
  assert.deepEqual(
    [after.per_day_usd, after.pending_changes, after.paused],
    [before.per_day_usd, [], before.paused],
  )
  assert.deepEqual((await caller(stolen)('GET', '/v1/recipients')).body.recipients, [])
  assert.deepEqual((await caller(stolen)('GET', '/v1/agents')).body.agents, [])
})

test('the code of a page of the gateway is redeemed by this process alone, and none is given to a script', async () => {
  const person = connectingPerson(app)
  const { tokens } = await person.connect({ allows: everything })
  await signUpUser(app, `Bearer ${tokens.access_token}`)
  await person.pageToken()
  await person.browser.open(`${app.base}/oauth/account`)
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  for (const [clientId, path] of [
    ['portico-approvals', '/oauth/approvals/return'],
    ['portico-pages', '/oauth/account/return'],
  ] as const) {
    const query = new URLSearchParams({
      client_id: clientId,
      redirect_uri: `${app.base}${path}`,
      response_type: 'code',
      scope: 'openid manage propose',
      resource: app.base,
      prompt: 'none',
      state: 's',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    })
    const url = `${app.base}/oauth/authorize?${query}`
    const asked = (headers: Record<string, string>) => person.browser.open(url, { headers })
    for (const headers of [
      { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-dest': 'iframe', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-dest': 'worker', 'sec-fetch-mode': 'same-origin' },
      { 'sec-fetch-dest': 'image', 'sec-fetch-mode': 'no-cors' },
    ])
      assert.equal((await asked(headers)).status, 403, JSON.stringify(headers))
    const left = await person.browser.open(url, { redirect: 'manual' })
    const code = /[?&]code=([\w-]+)/.exec(left.url)?.[1]
    assert.ok(code, left.url)
    const redeemed = await tokenRequest(app, {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: code!,
      redirect_uri: `${app.base}${path}`,
      code_verifier: verifier,
    })
    assert.deepEqual([redeemed.status, redeemed.error], [400, 'invalid_grant'])
  }
})

test('an app spends the credits that its person allows it in a day, and decides with the scope of what it decides', async () => {
  const person = connectingPerson(app)
  const clientId = (await register(app)).client_id
  const first = await person.connect({ allows: everything, clientId, fields: { chat_credits: '2' } })
  await signUpUser(app, first.authorization)
  const chat = () =>
    http<{ status: string; code?: string; credits_used: number }>(`${app.base}/v1/chat`, {
      method: 'POST',
      headers: { authorization: first.authorization },
      body: { query: 'help', stream: false },
    })
  const answers = [await chat(), await chat(), await chat()]
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.code]),
    [
      [200, undefined],
      [200, undefined],
      [402, 'insufficient_credits'],
    ],
    JSON.stringify(answers.map(({ body }) => body)),
  )
})
