/** A person with a real browser signs up, connects an app, and the app calls an operation. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { type Browser, chromium } from 'playwright-core'
import { http } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp, password } from './oauth-app.ts'
import { contrastsInPage } from './page-contrast.ts'
import { authorizeUrl, redirectUri, register, tokenRequest, verifier } from './session.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'

let app: OAuthApp
let browser: Browser
before(async () => {
  if (skip) return
  app = await createOAuthApp()
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  await app?.[Symbol.asyncDispose]()
})

const sizes = { phone: { width: 390, height: 844 }, desktop: { width: 1280, height: 800 } }

for (const [name, viewport] of Object.entries(sizes)) {
  test(`on a ${name} a person signs up, connects an app, and the app acts`, { skip }, async () => {
    const email = `${name}@example.com`
    const { client_id } = await register(app, { client_name: 'Momentum Bot' })
    await using context = await browser.newContext({
      viewport,
      colorScheme: name === 'phone' ? 'dark' : 'light',
    })
    const page = await context.newPage()
    const messages: string[] = []
    page.on('console', (message) => messages.push(message.text()))
    // The app itself is not on this machine.
    await page.route(`${new URL(redirectUri).origin}/**`, (route) => route.fulfill({ body: 'connected' }))
    const assertFits = async (step: string) => {
      const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
        '({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })',
      )
      assert.equal(scrollWidth, clientWidth, `${step} fits the width`)
    }
    await page.goto(authorizeUrl(app, client_id))
    await assertFits('sign-in')
    await page.getByRole('link', { name: 'Create an account' }).click()
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await assertFits('sign-up')
    await page.getByRole('button', { name: 'Send me a code' }).click()
    await page.getByLabel('Code').fill('000000')
    await page.getByRole('button', { name: 'Continue' }).click()
    await assertFits('wrong-code')
    await page.getByLabel('Code').fill(app.codeFor(email))
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Connect Momentum Bot?' }).waitFor()
    await assertFits('consent')
    await page.getByRole('button', { name: 'Connect', exact: true }).click()
    await page.waitForURL(`${redirectUri}?**`)
    const code = new URL(page.url()).searchParams.get('code')
    assert.ok(code, page.url())
    const { access_token } = await tokenRequest(app, {
      grant_type: 'authorization_code',
      client_id,
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    })
    const headers = { authorization: `Bearer ${access_token}` }
    const signup = await http(`${app.base}/signup`, { method: 'POST', headers, body: {} })
    assert.equal(signup.status, 200)
    const wallets = await http<{ wallets: unknown[] }>(`${app.base}/v1/wallets`, { headers })
    assert.deepEqual([wallets.status, wallets.body.wallets.length], [200, 2])
    // The answer to the wrong code; a violation of the policy of a page would be another line.
    assert.deepEqual(
      messages.filter((text) => !text.includes('status of 422')),
      [],
    )
  })
}

for (const colorScheme of ['light', 'dark'] as const)
  test(`in ${colorScheme} colours pages are readable, labelled and used by keyboard alone`, {
    skip,
  }, async () => {
    const email = `${colorScheme}@example.com`
    const { client_id } = await register(app, { client_name: 'Momentum Bot' })
    await using context = await browser.newContext({ viewport: sizes.desktop, colorScheme })
    const page = await context.newPage()
    const assertReadable = async (step: string) => {
      assert.deepEqual(await page.evaluate(contrastsInPage), [], step)
      assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, step)
      assert.equal(await page.getByRole('main').count(), 1, step)
      const unlabelled = await page.evaluate<number>(
        "[...document.querySelectorAll('input:not([type=hidden])')].filter((each) => each.labels.length !== 1).length",
      )
      assert.equal(unlabelled, 0, step)
    }
    /** Types into the fields in their order, and sends the form by the return key. */
    const fill = async (...texts: string[]) => {
      for (const text of texts) {
        await page.keyboard.press('Tab')
        await page.keyboard.type(text)
      }
      await page.keyboard.press('Enter')
    }
    await page.goto(`${app.base}/oauth/authorize?client_id=unknown`)
    await assertReadable('error')
    await page.goto(authorizeUrl(app, client_id))
    await assertReadable('sign-in')
    await fill(email, 'a wrong password')
    await page.getByRole('alert').waitFor()
    await assertReadable('wrong password')
    await page.goto(`${page.url().replace(/\/sign-in$/, '')}?view=email-code`)
    await assertReadable('email code')
    await page.goto(page.url().replace('email-code', 'reset'))
    await assertReadable('reset')
    await page.goto(page.url().replace('reset', 'sign-up'))
    await assertReadable('sign-up')
    await fill(email, password)
    await page.getByLabel('Code').waitFor()
    await assertReadable('code')
    await fill(app.codeFor(email))
    await page.getByRole('heading', { name: 'Connect Momentum Bot?' }).waitFor()
    await assertReadable('consent')
    await page.getByRole('button', { name: 'Connect', exact: true }).focus()
    const arrived = page.waitForRequest((request) => request.url().startsWith(redirectUri))
    await page.keyboard.press('Enter')
    await arrived
  })

test('the request of an app that is wrong is answered in words, and the code is for its makers', {
  skip,
}, async () => {
  await using context = await browser.newContext({ viewport: sizes.phone })
  const page = await context.newPage()
  await page.goto(`${app.base}/oauth/authorize?client_id=nobody&response_type=code`)
  await page.getByText('This gateway does not know the app that sent you here.').waitFor()
  await page.getByText('Error: invalid_client').waitFor()
  await page.goto(app.base)
  await page.getByRole('link', { name: 'Your account' }).click()
  await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
})
