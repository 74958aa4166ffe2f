/** A person with a terminal and a browser: from the sign-in to the credits of a plan in the chat. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Browser, chromium, type Page } from 'playwright-core'
import { dataFolder, eventually, freshGateway } from '../harness/gateway.ts'
import { cards } from '../harness/payer.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'
const cli = fileURLToPath(new URL('../../src/edges/cli/main.ts', import.meta.url))
const password = 'correct horse battery staple 7'
/** A folder that keeps pictures of the pages. */
const pictures = process.env.PORTICO_TEST_PICTURES

let gateway: Awaited<ReturnType<typeof freshGateway>>
let browser: Browser
before(async () => {
  if (skip) return
  gateway = await freshGateway({ COOLING_SECONDS: '1' })
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  await gateway?.[Symbol.asyncDispose]()
})

const codeFor = (email: string) =>
  eventually(async () => {
    const line = gateway.lines.findLast((each) => each.startsWith(`email  ${email}: `))
    return /\b\d{8}\b/.exec(line ?? '')?.[0]
  }, `the code for ${email}`)

const sizes = {
  phone: { width: 390, height: 844, colorScheme: 'dark' },
  desktop: { width: 1280, height: 800, colorScheme: 'light' },
} as const

/** Signs in by the page whose address the command prints. */
async function login(env: NodeJS.ProcessEnv, page: Page, email: string): Promise<void> {
  const child = spawn(process.execPath, [cli, 'login', '--no-browser'], { env })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const address = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.once('exit', () => reject(new Error(`no address: ${text}`)))
    child.stderr.on('data', (chunk) => {
      text += chunk
      const found = /^(http\S+)\n/m.exec(text)?.[1]
      if (found) resolve(found)
    })
  })
  await page.goto(address)
  await page.getByRole('link', { name: 'Create an account' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Send me a code' }).click()
  await page.getByLabel('Code').fill(await codeFor(email))
  await page.getByRole('button', { name: 'Continue' }).click()
  for (const scope of ['manage', 'chat']) await page.locator(`input[name=${scope}]`).check()
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.getByText('You are signed in').waitFor()
  assert.equal(await ended, 0)
}

test('a person signs in, pays for a plan with a test card, and has its credits in the chat', {
  skip,
}, async () => {
  using folder = dataFolder()
  const env = { PATH: process.env.PATH, XDG_CONFIG_HOME: folder.path, PORTICO_URL: gateway.url }
  const portico = async <B>(...words: string[]): Promise<B> => {
    const { stdout } = await promisify(execFile)(process.execPath, [cli, ...words, '--json'], { env })
    return JSON.parse(stdout) as B
  }
  await using context = await browser.newContext()
  const page = await context.newPage()
  /** Looks at the page on a phone in the dark and on a desktop by day. */
  const picture = async (step: string) => {
    for (const [name, { colorScheme, ...viewport }] of Object.entries(sizes)) {
      await page.setViewportSize(viewport)
      await page.emulateMedia({ colorScheme })
      const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
        '({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })',
      )
      assert.equal(scrollWidth, clientWidth, `${step} fits the width of a ${name}`)
      if (pictures !== undefined)
        await page.screenshot({ path: join(pictures, `${name}-${step}.png`), fullPage: true })
    }
  }
  await login(env, page, 'ada@example.com')
  type Available = { credits_available: number }
  const before = (await portico<Available>('credits', 'available')).credits_available
  const { plans } = await portico<{ plans: { price_id: string }[] }>('subscriptions', 'plans')
  const checkout = async (plan: { price_id: string } | undefined): Promise<string> => {
    const words = ['--price-id', plan!.price_id, '--client-intent-id', randomUUID()]
    return (await portico<{ checkout_url: string }>('subscriptions', 'checkout', ...words)).checkout_url
  }
  await page.goto(await checkout(plans[0]))
  await page.getByRole('heading', { name: 'Subscribe to Plus' }).waitFor()
  await picture('checkout')
  const fill = async (card: string) => {
    await page.getByLabel('Email').fill('ada@example.com')
    await page.getByLabel('Card number').fill(card)
    await page.getByLabel('Expiry').fill('12 / 34')
    await page.getByLabel('Security code').fill('123')
    await page.getByRole('button', { name: 'Subscribe' }).click()
  }
  await fill(cards.declined)
  await page.getByRole('alert').getByText('declined').waitFor()
  await picture('declined')
  await fill(cards.asks)
  await page.getByText('Is it you?').waitFor()
  await picture('bank')
  await page.getByRole('button', { name: 'Complete authentication' }).click()
  await page.waitForURL(`${gateway.url}/checkout/paid**`)
  await page.getByRole('heading', { name: 'Thank you' }).waitFor()
  await picture('thanks')
  const creditsAbove = (credits: number) =>
    eventually(async () => {
      const { credits_available: now } = await portico<Available>('credits', 'available')
      return now > credits ? now : undefined
    }, 'the credits of the plan')
  assert.equal(await creditsAbove(before), before + 800)
  assert.equal((await portico<{ plan: string }>('user', 'show')).plan, 'plus')
  await page.goto(await checkout(plans[1]))
  await page.getByRole('heading', { name: 'Change to Pro' }).waitFor()
  await picture('change')
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByText('Is it you?').waitFor()
  await page.getByRole('button', { name: 'Complete authentication' }).click()
  await page.getByRole('heading', { name: 'Thank you' }).waitFor()
  assert.equal(await creditsAbove(before + 800), before + 4_000)
  assert.equal((await portico<{ plan: string }>('user', 'show')).plan, 'pro')
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [cli, 'chat', 'stream', '--query', 'credits left?', '--json'],
    { env },
  )
  assert.match(stdout, /"credits_remaining": ?419\d\b/)
})
