/** A person with a real browser and its virtual authenticator: passkeys from the sign-up to the removal. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { decodeJwt } from 'jose'
import { type Browser, chromium, type Page } from 'playwright-core'
import { createOAuthApp, type OAuthApp, password } from './oauth-app.ts'
import { contrastsInPage } from './page-contrast.ts'
import { authorizeUrl, redirectUri, register, tokenRequest, verifier } from './session.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'

let app: OAuthApp
let browser: Browser
before(async () => {
  if (skip) return
  app = await createOAuthApp({ hostname: 'localhost' })
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  await app?.[Symbol.asyncDispose]()
})

const sizes = {
  phone: { viewport: { width: 390, height: 844 }, colorScheme: 'dark' },
  desktop: { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
} as const

/** A device with a key and a verified user. */
async function withAuthenticator(page: Page) {
  const client = await page.context().newCDPSession(page)
  await client.send('WebAuthn.enable')
  const { authenticatorId } = await client.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    setVerified: (isUserVerified: boolean) =>
      client.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    async credentials() {
      const { credentials } = await client.send('WebAuthn.getCredentials', { authenticatorId })
      return credentials
    },
    forget: () => client.send('WebAuthn.clearCredentials', { authenticatorId }),
  }
}

/** Fits the width, is readable in its colours, and has a heading. */
async function assertPage(page: Page, name: string) {
  const { scrollWidth, clientWidth } = await page.evaluate<{ scrollWidth: number; clientWidth: number }>(
    '({ scrollWidth: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth })',
  )
  assert.equal(scrollWidth, clientWidth, `${name} fits the width`)
  assert.deepEqual(await page.evaluate(contrastsInPage), [], name)
  assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, name)
}

for (const [size, options] of Object.entries(sizes))
  test(`on a ${size} a person signs up, signs in and changes the account with passkeys`, {
    skip,
  }, async () => {
    const email = `${size}@example.com`
    const { client_id } = await register(app, { client_name: 'Momentum Bot' })
    await using context = await browser.newContext(options)
    const page = await context.newPage()
    const device = await withAuthenticator(page)
    const messages: string[] = []
    page.on('console', (message) => messages.push(message.text()))
    await page.route(`${new URL(redirectUri).origin}/**`, (route) => route.fulfill({ body: 'connected' }))
    const connect = async () => {
      await page.getByRole('button', { name: 'Connect', exact: true }).click()
      await page.waitForURL(`${redirectUri}?**`)
      const code = new URL(page.url()).searchParams.get('code') ?? ''
      const { access_token } = await tokenRequest(app, {
        grant_type: 'authorization_code',
        client_id,
        code,
        redirect_uri: redirectUri,
        code_verifier: verifier,
      })
      return decodeJwt(access_token)
    }

    await page.goto(authorizeUrl(app, client_id))
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
    await assertPage(page, `${size}-sign-in`)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('alert').filter({ hasText: 'No passkey was used' }).waitFor()
    await assertPage(page, `${size}-sign-in-without`)
    await page.getByRole('link', { name: 'Create an account' }).click()
    await assertPage(page, `${size}-sign-up`)
    await page.getByRole('link', { name: 'Use a passkey instead' }).click()
    await page.getByLabel('Email').fill(email)
    await assertPage(page, `${size}-passkey-sign-up`)
    await page.getByRole('button', { name: 'Send me a code' }).click()
    await page.getByLabel('Code').fill(app.codeFor(email))
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('heading', { name: 'Create your passkey' }).waitFor()
    await assertPage(page, `${size}-create`)
    await page.getByRole('button', { name: 'Create the passkey' }).click()
    await page.getByRole('heading', { name: 'Connect Momentum Bot?' }).waitFor()
    await assertPage(page, `${size}-consent`)
    const first = await connect()
    assert.equal((await device.credentials()).length, 1)

    await context.clearCookies()
    await page.goto(authorizeUrl(app, client_id))
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('heading', { name: 'Connect Momentum Bot?' }).waitFor()
    const second = await connect()
    assert.equal(second.sub, first.sub)

    await page.goto(`${app.base}/oauth/account`)
    await assertPage(page, `${size}-account`)
    // The device has a passkey for this account and makes no second one; another device does.
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByRole('alert').filter({ hasText: 'already has a passkey' }).waitFor()
    await assertPage(page, `${size}-account-known`)
    await device.forget()
    await page.getByLabel('Name of the new passkey').fill('Work laptop')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByRole('status').waitFor()
    await page.getByText('Remove', { exact: false }).first().click()
    await assertPage(page, `${size}-account-two`)
    await page.getByRole('button', { name: 'Remove this passkey' }).first().click()
    await page.getByRole('status').filter({ hasText: 'was removed' }).waitFor()
    assert.equal(await page.locator('form[action$=passkey-remove]').count(), 1)
    const passkeys = page.getByRole('region', { name: 'Passkeys' })
    assert.match((await passkeys.getByRole('listitem').first().textContent()) ?? '', /Work laptop/)
    await page.getByText('Disconnect', { exact: false }).first().click()
    await page.getByRole('button', { name: 'Disconnect this app' }).click()
    await page.getByText('No app has access to your account.').waitFor()
    await assertPage(page, `${size}-account-empty`)

    // A session that is signed in for a while: the page asks again, and the new passkey answers.
    app.time.offsetMs = 301_000
    await page.goto(`${app.base}/oauth/account`)
    await assertPage(page, `${size}-account-stale`)
    app.time.offsetMs = 0
    await page.getByRole('button', { name: 'Sign in again to change passkeys' }).click()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('button', { name: 'Add a passkey' }).waitFor()
    await page.getByRole('button', { name: 'Sign out of this browser' }).click()
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor()
    await assertPage(page, `${size}-signed-out`)

    // A device that does not verify its user signs nobody in.
    await device.setVerified(false)
    await page.getByRole('link', { name: 'Sign in again' }).click()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('alert').filter({ hasText: 'No passkey was used' }).waitFor()
    assert.deepEqual(messages, [])
  })

test('without a script the pages have no passkeys, and password and code work', { skip }, async () => {
  const { client_id } = await register(app, { client_name: 'Momentum Bot' })
  await using context = await browser.newContext({ javaScriptEnabled: false, viewport: sizes.phone.viewport })
  const page = await context.newPage()
  await page.goto(authorizeUrl(app, client_id))
  assert.equal(await page.getByRole('button', { name: 'passkey' }).count(), 0)
  await page.getByRole('link', { name: 'Create an account' }).click()
  assert.equal(await page.getByRole('link', { name: 'passkey' }).count(), 0)
  await page.getByLabel('Email').fill('plain@example.com')
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Send me a code' }).click()
  await page.getByLabel('Code').fill(app.codeFor('plain@example.com'))
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Connect Momentum Bot?' }).waitFor()
  await page.getByRole('link', { name: 'Manage your account' }).click()
  await page.getByText('This browser offers no passkeys.').waitFor()
})
