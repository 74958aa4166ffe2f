/** People who sign in at the provider of somebody else approve what their agents ask for, on the page of the gateway. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { chromium } from 'playwright-core'
import { type IdentityProvider, startIdentityProvider } from '#world/identity/identity.ts'
import { eventually, freshGateway, http, signedAct } from '../harness/gateway.ts'
import { createFundedPerson, type Person, type TaskBody } from '../journeys/users.ts'
import { base, type World, worldOf } from '../journeys/world.ts'
import { confirming } from './confirming.ts'
import { federatedPerson, client as gatewayClient } from './facade-app.ts'
import type { Page } from './oauth-app.ts'
import { authorizeUrl, redirectUri, register, tokenRequest, verifier } from './session.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'
const friend = '0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65'

let identity: IdentityProvider
let gateway: Awaited<ReturnType<typeof freshGateway>>
let world: World
before(async () => {
  identity = await startIdentityProvider()
  gateway = await freshGateway({
    AUTH_MODE: 'facade',
    IDENTITY_ISSUER: identity.issuer,
    IDENTITY_CLIENT_ID: gatewayClient.client_id,
    IDENTITY_CLIENT_SECRET: gatewayClient.client_secret,
    COOLING_SECONDS: '1',
  })
  identity.addClient({ ...gatewayClient, redirect_uris: [`${gateway.url}/oauth/callback`] })
  world = await worldOf(gateway.world)
})
after(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await identity?.[Symbol.asyncDispose]()
})

const page = () => `${gateway.url}/oauth/approvals`
const app = () => ({ base: gateway.url, codeFor: () => '' })

/** What a person does with an app in which they have just signed in elsewhere. */
async function connectFresh(person: ReturnType<typeof federatedPerson>) {
  const { client_id } = await register(app())
  const asked = await person.gateway.open(authorizeUrl(app(), client_id, { prompt: 'login consent' }))
  const consent = await person.signIn(asked)
  const allowed = await person.gateway.submit(consent, 'allow', {
    trade: 'yes',
    manage: 'yes',
    propose: 'yes',
  })
  const tokens = await tokenRequest(app(), {
    grant_type: 'authorization_code',
    client_id,
    code: new URL(allowed.url).searchParams.get('code') ?? '',
    redirect_uri: redirectUri,
    code_verifier: verifier,
  })
  assert.equal(tokens.status, 200, JSON.stringify(tokens))
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  const confirm = async (url: string) => {
    const opened = await person.gateway.open(url)
    const shown = /Continue with/.test(opened.html) ? await person.signIn(opened) : opened
    return person.gateway.submit(shown, 'approve')
  }
  const confirmed = confirming({ confirm }, gateway.url, headers.authorization)
  return async (route: string, body?: object) => {
    const [method = 'GET', path = ''] = route.split(' ')
    const sent = await http(gateway.url + path, { method, headers, ...(body && { body }) })
    const answer = await confirmed(sent)
    assert.equal(answer.status, 200, `${route}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
}

/** A linked agent that may send to the friend where its person approves it. */
async function personWithAgent(subject: string) {
  const person = federatedPerson({ identity }, subject)
  const [call, agent] = await Promise.all([connectFresh(person), createFundedPerson(gateway.url)])
  await call('POST /signup', {})
  const { code } = (
    await agent.call<{ code: string }>('POST /v1/agents/link-codes', {
      body: signedAct(agent, 'agents_link_code'),
    })
  ).body
  await call('POST /v1/agents', { code, name: 'Sender' })
  await call('POST /v1/recipients', {
    chain_id: base,
    address: friend,
    label: 'Friend',
    for_agent: agent.agentId,
    agents: 'approval',
  })
  await eventually(async () => {
    type List = { recipients: { status: string }[] }
    const { recipients } = (await agent.call<List>('GET /v1/recipients')).body
    return recipients[0]?.status === 'effective' || undefined
  }, 'the recipient is effective')
  return { agent, email: `${subject}@example.com` }
}

async function ask(agent: Person, amount: string): Promise<string> {
  const { status, body } = await agent.call<TaskBody>('POST /v1/wallets/transfer', {
    body: { chain_id: base, token: 'USDC', amount, recipient: friend },
  })
  assert.equal(status, 200, JSON.stringify(body))
  assert.equal((await agent.task(body.task_id)).state, 'awaiting_approval')
  return body.task_id
}

const fieldsOf = ({ html }: Page) =>
  Object.fromEntries(
    [...html.matchAll(/name="(csrf|intent_sha256)" value="([0-9a-f]*)"/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  )

test('a person signs in elsewhere and approves on the page, and the money arrives once', async () => {
  const { agent } = await personWithAgent('ada')
  const before = await world.usdcOf(friend)
  const sent = await ask(agent, '12500000')
  const visitor = federatedPerson({ identity }, 'ada')
  const signIn = await visitor.gateway.open(page())
  assert.match(signIn.html, new RegExp(`Continue with ${new URL(identity.issuer).host}`))
  const shown = await visitor.signIn(signIn)
  assert.equal(shown.url, page())
  assert.match(shown.html, /1 request waits for you/)
  assert.match(shown.html, /Send 12\.5 USDC to 0x15d3…6A65/)
  // Ahead of the first answer, in another tab, and again later: one decision, one payment.
  const approve = () => visitor.gateway.submit(shown, 'approve', fieldsOf(shown))
  for (const done of await Promise.all([approve(), approve()])) assert.match(done.html, /Approved/)
  const ended = await agent.ended(sent, 60_000)
  assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
  assert.match((await approve()).html, /Approved|Nothing was changed/)
  assert.match((await visitor.gateway.submit(shown, 'decline', fieldsOf(shown))).html, /Nothing was changed/)
  assert.match((await visitor.gateway.open(page())).html, /Nothing waits for you/)
  assert.equal((await world.usdcOf(friend)) - before, 12_500_000n)
})

test('another person of the provider sees and decides nothing', async () => {
  const { agent } = await personWithAgent('grace')
  const sent = await ask(agent, '1000000')
  const stranger = federatedPerson({ identity }, 'eve')
  await (await connectFresh(stranger))('POST /signup', {})
  const shown = await stranger.signIn(await stranger.gateway.open(page()))
  assert.match(shown.html, /Nothing waits for you/)
  assert.equal((await agent.task(sent)).state, 'awaiting_approval')
  assert.equal((await agent.call(`POST /v1/tasks/${sent}/cancel`)).status, 200)
})

test('a session at the provider is no sign-in that approves: the page asks for one there', async () => {
  const { agent } = await personWithAgent('lin')
  const sent = await ask(agent, '1000000')
  const visitor = federatedPerson({ identity }, 'lin')
  await visitor.signIn(await visitor.gateway.open(page()))
  // Another browser at the gateway, which has a session at the provider: the provider asks again all the same.
  const other = federatedPerson({ identity }, 'lin')
  const departure = await other.gateway.submit(await other.gateway.open(page()), 'continue')
  const asked = await visitor.provider.open(visitor.addressIn(departure))
  assert.ok(asked.url.startsWith(`${identity.issuer}/login/`), asked.url)
  assert.match(asked.html, /Choose an account/)
  assert.equal((await agent.task(sent)).state, 'awaiting_approval')
  assert.equal((await agent.call(`POST /v1/tasks/${sent}/cancel`)).status, 200)
})

test('with a real browser a person signs in elsewhere, approves, and the money arrives once', {
  skip,
}, async () => {
  const { agent, email } = await personWithAgent('hopper')
  const before = await world.usdcOf(friend)
  const sent = await ask(agent, '7250000')
  await using browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  const tab = await (await browser.newContext()).newPage()
  const messages: string[] = []
  tab.on('console', (message) => {
    if (message.location().url.startsWith(gateway.url)) messages.push(message.text())
  })
  await tab.goto(page())
  await tab.getByRole('button', { name: 'Continue with' }).click()
  await tab.getByRole('button', { name: email }).click()
  await tab.waitForURL(page())
  const request = tab.getByRole('region', { name: 'Send 7.25 USDC to 0x15d3…6A65 on Base' })
  await request.getByRole('button', { name: 'Approve' }).click()
  await tab.getByRole('status').waitFor()
  const ended = await agent.ended(sent, 60_000)
  assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
  await tab.goBack()
  await tab.goto(page())
  await tab.getByRole('heading', { level: 1, name: 'Nothing waits for you' }).waitFor()
  assert.equal((await world.usdcOf(friend)) - before, 7_250_000n)
  assert.deepEqual(messages, [], 'the policy of the pages holds')
})
