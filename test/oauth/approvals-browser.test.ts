/** With a real browser a person approves the transfer of an agent: signs in, reads plain figures, decides, once. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { eventually, freshGateway } from '../harness/gateway.ts'
import { personWithApp } from '../journeys/signed-in.ts'
import type { Person } from '../journeys/users.ts'
import { base, type World, worldOf } from '../journeys/world.ts'
import { password } from './oauth-app.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'
const friend = '0x90F79bf6EB2c4f870365E785982E1f101E93b906'

let gateway: Awaited<ReturnType<typeof freshGateway>>
let world: World
let browser: Browser
before(async () => {
  if (skip) return
  gateway = await freshGateway({ COOLING_SECONDS: '1' })
  world = await worldOf(gateway.world)
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  await gateway?.[Symbol.asyncDispose]()
})

const sizes = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 900 } }

async function personAndApp() {
  const both = await personWithApp(gateway)
  const { person } = both
  await world.fund(base, person.evm, 'USDC', '100')
  await world.fund(base, person.evm, 'native', '1')
  await person.call('POST /v1/recipients', {
    body: { chain_id: base, address: friend, label: 'Friend', agents: 'approval' },
  })
  await eventually(
    async () => {
      const { recipients } = (await person.call<{ recipients: { status: string }[] }>('GET /v1/recipients'))
        .body
      return recipients[0]?.status === 'effective' || undefined
    },
    'the recipient is effective',
    20_000,
  )
  return both
}
const send = async (app: Person, amount: string): Promise<string> => {
  const { status, body } = await app.call<{ task_id: string }>('POST /v1/wallets/transfer', {
    body: { chain_id: base, token: 'USDC', amount, recipient: friend },
  })
  assert.equal(status, 200, JSON.stringify(body))
  return body.task_id
}
const assertFits = async (page: Page, step: string) => {
  const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
    '({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })',
  )
  assert.equal(scrollWidth, clientWidth, `${step} fits the width`)
}
const signIn = async (page: Page, email: string) => {
  await page.goto(`${gateway.url}/oauth/approvals`)
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: /for you/ }).waitFor()
}

for (const [name, viewport] of Object.entries(sizes))
  test(`on a ${name} a person approves one transfer and declines another, and the money arrives once`, {
    skip,
  }, async () => {
    const { app, email } = await personAndApp()
    const before = await world.usdcOf(friend)
    const sent = await send(app, '12500000')
    const other = await send(app, '7000000')
    await using context: BrowserContext = await browser.newContext({
      viewport,
      colorScheme: name === 'phone' ? 'dark' : 'light',
    })
    const page = await context.newPage()
    const messages: string[] = []
    page.on('console', (message) => messages.push(message.text()))
    await signIn(page, email)
    await assertFits(page, `${name} two requests`)
    const first = page.getByRole('region', { name: 'Send 12.5 USDC to 0x90F7…b906 on Base' })
    const figures = (await first.textContent()) ?? ''
    for (const figure of ['12.5 USDC', '12.50 USD', friend, 'Base', 'Attack', 'in 29 minutes'])
      assert.ok(figures.includes(figure), `${figure} in ${figures}`)
    await first.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('status').waitFor()
    await assertFits(page, `${name} approved`)
    const ended = await app.ended(sent, 60_000)
    assert.deepEqual([ended.status, ended.outcome], ['completed', 'executed'], JSON.stringify(ended))
    await page.getByRole('button', { name: 'Decline' }).click()
    await page.getByRole('heading', { level: 1, name: 'Nothing waits for you' }).waitFor()
    await assertFits(page, `${name} nothing waits`)
    assert.equal((await app.ended(other, 20_000)).error?.code, 'approval_declined')
    assert.equal((await world.usdcOf(friend)) - before, 12_500_000n)
    await page.goBack()
    await page.goto(`${gateway.url}/oauth/approvals`)
    assert.equal((await world.usdcOf(friend)) - before, 12_500_000n)
    assert.deepEqual(messages, [], 'the policy of the pages holds')
  })

test('another site, another form and another person decide nothing', { skip }, async () => {
  const { app, person, email } = await personAndApp()
  const taskId = await send(app, '3000000')
  await using context = await browser.newContext()
  const page = await context.newPage()
  await signIn(page, email)
  const [approval] = (
    await person.call<{ approvals: { approval_id: string; intent_sha256: string }[] }>('GET /v1/approvals')
  ).body.approvals
  const cookie = (await context.cookies(`${gateway.url}/oauth/approvals`))
    .map(({ name, value }) => `${name}=${value}`)
    .join('; ')
  const cookies = await context.cookies(`${gateway.url}/oauth/approvals`)
  for (const each of cookies.filter((one) => one.name.startsWith('portico_approvals')))
    assert.deepEqual([each.httpOnly, each.sameSite, each.path], [true, 'Lax', '/oauth/approvals'])
  const csrf = await page.locator('input[name=csrf]').first().inputValue()
  const post = (fields: Record<string, string>, headers: Record<string, string>) =>
    fetch(`${gateway.url}/oauth/approvals/${approval!.approval_id}/approve`, {
      method: 'POST',
      redirect: 'manual',
      body: new URLSearchParams(fields),
      headers,
    })
  const form = { csrf, intent_sha256: approval!.intent_sha256 }
  const own = { cookie, origin: gateway.url }
  assert.equal((await post(form, { ...own, origin: 'https://evil.example' })).status, 403)
  assert.equal((await post({ ...form, csrf: '0'.repeat(64) }, own)).status, 403)
  assert.equal((await post({ intent_sha256: form.intent_sha256 }, own)).status, 403)
  assert.equal((await post({ ...form, intent_sha256: '0'.repeat(64) }, own)).status, 422)
  const withoutCookie = await post(form, { origin: gateway.url })
  assert.equal(withoutCookie.status, 403)
  const shown = await fetch(`${gateway.url}/oauth/approvals`, { headers: { cookie } })
  const policy = shown.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'.*form-action 'self'.*frame-ancestors 'none'/)
  assert.doesNotMatch(policy, /script-src|unsafe/)
  const stray = await fetch(`${gateway.url}/oauth/approvals/return?code=x&state=y`, { redirect: 'manual' })
  assert.equal(stray.status, 400)
  assert.equal((await app.task(taskId)).state, 'awaiting_approval')
  assert.equal((await app.call(`POST /v1/tasks/${taskId}/cancel`)).status, 200)
})
