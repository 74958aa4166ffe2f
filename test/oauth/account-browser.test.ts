/**
 * With a real browser a person links an agent by its code, sees what waits and what may act, undoes it, and is notified of each
 * act that loosens.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { eventually, freshGateway, newAgent, signedAct } from '../harness/gateway.ts'
import { personWithApp } from '../journeys/signed-in.ts'
import { type Person, personOf } from '../journeys/users.ts'
import { base } from '../journeys/world.ts'
import { password } from './oauth-app.ts'
import { contrastsInPage } from './page-contrast.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'
const friend = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let browser: Browser
before(async () => {
  if (skip) return
  gateway = await freshGateway({ COOLING_SECONDS: '86400' })
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  await gateway?.[Symbol.asyncDispose]()
})

const sizes = {
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
  desktop: { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
} as const

/** Fits the width, is readable in its colours, and has one heading. */
async function assertPage(page: Page, name: string) {
  const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
    '({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })',
  )
  assert.equal(scrollWidth, clientWidth, `${name} fits the width`)
  assert.deepEqual(await page.evaluate(contrastsInPage), [], name)
  assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, name)
}

const textOf = async (page: Page, name: string) =>
  (await page.getByRole('region', { name, exact: true }).textContent()) ?? ''
/** Opens the second step of a row. */
const press = async (page: Page, act: RegExp, button: string) => {
  await page.locator('summary').filter({ hasText: act }).first().click()
  await page.getByRole('button', { name: button, exact: true }).first().click()
}
const confirm = async (page: Page, act: RegExp, button: string) => {
  await press(page, act, button)
  await page.getByRole('status').waitFor()
}
/** Decides on the page of approvals; the act is done when the gateway has run it. */
const confirmRequest = async (page: Page) => {
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByRole('status').filter({ hasText: 'Approved' }).waitFor()
}
/**
 * A page shows what the gateway has run at its time, and is opened again until it shows this. Before the link it is that
 * of the account, which may show the name too where the link is made between its reads.
 */
const openAgent = (page: Page, agentId: string, text: string) =>
  eventually(async () => {
    const opened = await page.goto(`${gateway.url}/oauth/account/agents/${agentId}`)
    return (opened?.status() === 200 && (await page.getByText(text).count()) > 0) || undefined
  }, `the page of the agent shows ${text}`)
const subjectsTo = (email: string) =>
  gateway.lines.flatMap((line) => (line.startsWith(`email  ${email}: `) ? [line.split(': ')[1]] : []))

async function prepare(person: Person) {
  const agent = await personOf(gateway.url, await newAgent(gateway.url))
  const { code } = (
    await agent.call<{ code: string }>('POST /v1/agents/link-codes', {
      body: signedAct(agent, 'agents_link_code'),
    })
  ).body
  await person.call('PUT /v1/policy', { body: { per_transaction_usd: '100', approval_above_usd: '50' } })
  await person.call('PUT /v1/policy', { body: { per_transaction_usd: '500' } })
  const recipient = { chain_id: base, address: friend, label: 'Friend <b>of</b> mine', agents: 'approval' }
  assert.equal((await person.call('POST /v1/recipients', { body: recipient })).status, 200)
  await eventually(async () => {
    const { items } = (
      await person.call<{ items: { status: string; client_id: string | null }[] }>(
        'GET /v1/tasks?kind=faucet_grant',
      )
    ).body
    if (items[0]?.status !== 'completed') return undefined
    assert.equal(items[0].client_id, null, 'the gateway itself made the grant')
    return true
  }, 'the faucet grant')
  const deposit = await person.deposit('5', { query: '?wait=true' })
  assert.match(String((deposit.body as { client_id?: string }).client_id), /./, 'the app asked for it')
  const hook = { url: 'http://127.0.0.1:9/events', types: ['task.completed'], description: 'Ledger' }
  assert.equal((await person.call('POST /v1/webhooks', { body: hook })).status, 200)
  return { agent, code }
}

for (const [size, options] of Object.entries(sizes))
  test(`on a ${size} a person links an agent, sees what waits, and undoes it`, { skip }, async () => {
    const { person, email } = await personWithApp(gateway)
    const { agent, code } = await prepare(person)
    await using context = await browser.newContext(options)
    const page = await context.newPage()
    const messages: string[] = []
    page.on('console', (message) => messages.push(message.text()))

    // The address that the agent shows leads there over the sign-in.
    await page.goto(`${gateway.url}/oauth/account/link`)
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Link an agent' }).waitFor()
    await assertPage(page, `${size} link`)
    await page.getByLabel('Code of the agent').fill('AAAA-AAAA-AAAA')
    await page.getByLabel('Your name for it').fill('Momentum bot')
    await page.getByRole('button', { name: 'Link this agent' }).click()
    await page.getByRole('alert').filter({ hasText: 'This code is wrong' }).waitFor()
    await assertPage(page, `${size} wrong code`)
    assert.equal(await page.getByLabel('Your name for it').inputValue(), 'Momentum bot')
    await page.getByLabel('Code of the agent').fill(code)
    await page.getByRole('button', { name: 'Link this agent' }).click()
    const naming = page.getByRole('region', { name: `Link the agent ${agent.agentId} to your account` })
    assert.match((await naming.textContent()) ?? '', /Momentum bot/)
    await assertPage(page, `${size} confirmation`)
    await confirmRequest(page)
    await openAgent(page, agent.agentId, 'Momentum bot')
    await page.getByRole('heading', { level: 1, name: 'Momentum bot' }).waitFor()
    await assertPage(page, `${size} agent`)
    await confirm(page, /^Stop/, 'Stop this agent')
    assert.match(await textOf(page, 'Trading'), /Trading is stopped/)
    const { approval } = (
      await agent.call<{ approval: { approval_id: string } }>('POST /v1/kill', { body: { on: false } })
    ).body
    assert.match((await person.decide(approval.approval_id, 'decline')) ?? '', /Declined/)
    const { paused } = (await agent.call<{ paused: object | null }>('GET /v1/policy')).body
    assert.notEqual(paused, null, 'the agent does not start itself')
    await press(page, /^Allow/, 'Allow trading again')
    await confirmRequest(page)
    await openAgent(page, agent.agentId, 'Trading is allowed')

    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByRole('heading', { level: 1, name: 'Your account' }).waitFor()
    await assertPage(page, `${size} account`)
    assert.match(
      await textOf(page, 'Limits'),
      /Up to 100 USD.*Above 50 USD.*up to 500 USDWaits.*in 23 hours/s,
    )
    assert.match(await textOf(page, 'Recipients'), /Friend <b>of<\/b> mineWaits.*Counts in 23 hours/s)
    assert.ok((await textOf(page, 'Recipients')).includes(friend))
    assert.match(await textOf(page, 'Linked agents'), /Momentum bot/)
    assert.match(
      await textOf(page, 'Money'),
      /Together[\d,.]+ USDWallets[\d,.]+ USDVault5\.00 USD.*USDC.*In the vault, on/s,
    )
    const payIn = await textOf(page, 'Pay in')
    for (const words of [person.evm, person.solana, 'On Solana', 'nothing here is worth anything'])
      assert.ok(payIn.includes(words), payIn)
    assert.match(
      await textOf(page, 'Latest acts'),
      /Earn deposit−5 USDC, \+[\d.]+ \w+By Attack · .*Faucet grant.*By this gateway, for you/s,
    )
    assert.match(await textOf(page, 'Connected apps'), /Attack.*trades/s)
    assert.match(await textOf(page, 'Webhooks'), /Ledger.*127\.0\.0\.1:9/s)

    await confirm(page, /^Cancel/, 'Cancel this change')
    await confirm(page, /^Remove.*Friend/, 'Remove this recipient')
    await confirm(page, /^Remove.*127/, 'Remove this webhook')
    await press(page, /^Unlink/, 'Unlink this agent')
    await confirmRequest(page)
    await eventually(async () => {
      const { agents } = (await person.call<{ agents: unknown[] }>('GET /v1/agents')).body
      return agents.length === 0 || undefined
    }, 'the agent is unlinked')
    await page.getByRole('link', { name: 'Your account' }).click()
    await confirm(page, /^Stop/, 'Stop all trading')
    await assertPage(page, `${size} account undone`)
    const policy = await person.call<{ pending_changes: unknown[]; paused: { scope: string } | null }>(
      'GET /v1/policy',
    )
    assert.deepEqual([policy.body.pending_changes, policy.body.paused?.scope], [[], 'user'])
    for (const [path, list] of [
      ['/v1/recipients', 'recipients'],
      ['/v1/webhooks', 'webhooks'],
    ] as const)
      assert.deepEqual((await person.call<Record<string, unknown[]>>(`GET ${path}`)).body[list], [], path)

    await page.getByRole('link', { name: 'Requests that wait for you' }).click()
    await page.getByRole('heading', { level: 1, name: 'Nothing waits for you' }).waitFor()
    await assertPage(page, `${size} approvals`)
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByRole('heading', { level: 1, name: 'Your account' }).waitFor()
    assert.deepEqual(
      messages.filter((text) => !text.includes('status of 404')),
      [],
      'the policy of the pages holds',
    )

    const notified = [
      'An app was connected to your Portico account',
      'Limits of your Portico account were raised',
      'A recipient was added to your Portico account',
      'An agent was linked to your Portico account',
      'Trading with your Portico account was allowed again',
    ]
    await eventually(
      async () => notified.every((subject) => subjectsTo(email).includes(subject)) || undefined,
      `messages: ${notified.join(', ')}`,
    )
  })
