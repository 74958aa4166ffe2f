/** What the script of the pages does, at the level of HTTP. */
import assert from 'node:assert/strict'
import { type Browser, createBrowser, type OAuthApp, type Page } from './oauth-app.ts'
import { authorizeUrl, register } from './session.ts'
import {
  type Challenge,
  createSoftwareAuthenticator,
  type SoftwarePasskey,
} from './software-authenticator.ts'

export const alertOf = ({ html }: Page): string | undefined => /role="alert">([^<]+)/.exec(html)?.[1]

/** The options for the form of a page that has this button. */
export async function optionsFor(browser: Browser, page: Page, step: string): Promise<Challenge> {
  const reply = await requestOptions(browser, page, step)
  assert.equal(reply.status, 200, reply.html)
  return JSON.parse(reply.html) as Challenge
}
export async function requestOptions(browser: Browser, page: Page, step: string): Promise<Page> {
  const address = new RegExp(`data-options="([^"]*/${step})"`).exec(page.html)?.[1]
  assert.ok(address, `no form for ${step}: ${page.status} ${page.html.slice(-600)}`)
  const url = new URL(address, page.url)
  return browser.open(url.href, {
    method: 'POST',
    body: new URLSearchParams(),
    headers: { origin: url.origin },
  })
}

/** One client for each gateway: registrations are limited. */
const clients = new WeakMap<OAuthApp, Promise<string>>()
function clientOf(app: OAuthApp): Promise<string> {
  const known = clients.get(app) ?? register(app).then(({ client_id }) => client_id)
  clients.set(app, known)
  return known
}

export async function openSignIn(
  app: OAuthApp,
  browser: Browser,
  changes: Record<string, string | undefined> = {},
): Promise<{ clientId: string; page: Page }> {
  const clientId = await clientOf(app)
  return { clientId, page: await browser.open(authorizeUrl(app, clientId, changes)) }
}

/** Up to the page that creates the passkey: the address is proven. */
export async function proveEmail(app: OAuthApp, browser: Browser, page: Page, email: string): Promise<Page> {
  const form = await browser.open(`${page.url}?view=passkey-sign-up`)
  const sent = await browser.submit(form, 'passkey-sign-up', { email })
  const proven = await browser.submit(sent, 'code', { email, code: app.codeFor(email) })
  assert.match(proven.html, /Create your passkey/)
  return proven
}

export type PasskeyPerson = {
  email: string
  browser: Browser
  passkey: SoftwarePasskey
  clientId: string
  consent: Page
}
export async function signUpWithPasskey(app: OAuthApp, email: string): Promise<PasskeyPerson> {
  const browser = createBrowser()
  const { clientId, page } = await openSignIn(app, browser)
  const proven = await proveEmail(app, browser, page, email)
  const options = await optionsFor(browser, proven, 'passkey-create-options')
  const { passkey, credential } = createSoftwareAuthenticator(app.base).create(options)
  const consent = await browser.submit(proven, 'passkey-create', { credential })
  assert.match(consent.html, /Connect Attack\?/, alertOf(consent))
  return { email, browser, passkey, clientId, consent }
}
