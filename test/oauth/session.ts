import { createHash } from 'node:crypto'
import { generateRandomCodeVerifier } from 'oauth4webapi'
import { http } from '../harness/gateway.ts'
import { type Browser, createBrowser, type OAuthInstance, type Page, password, signUp } from './oauth-app.ts'

/** A gateway that signs people in, and the codes that it sends. */
export type SignInApp = Pick<OAuthInstance, 'base' | 'codeFor'>

export const redirectUri = 'https://app.example.com/callback'

export type Registered = { client_id: string; status: number; error?: string }
export async function register(app: SignInApp, metadata: object = {}): Promise<Registered> {
  const { status, body } = await http<Registered>(`${app.base}/oauth/register`, {
    method: 'POST',
    body: { client_name: 'Attack', redirect_uris: [redirectUri], ...metadata },
  })
  return { ...body, status }
}

export const verifier = generateRandomCodeVerifier()
const challenge = createHash('sha256').update(verifier).digest('base64url')

export const authorizeUrl = (
  app: SignInApp,
  clientId: string,
  changes: Record<string, string | undefined> = {},
): string => {
  const fields = {
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid email offline_access',
    prompt: 'consent',
    state: 'state-1',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...changes,
  }
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) query.set(name, value)
  return `${app.base}/oauth/authorize?${query}`
}

export type Tokens = {
  status: number
  error?: string
  access_token: string
  refresh_token: string
  scope: string
}
export async function tokenRequest(app: SignInApp, fields: Record<string, string>): Promise<Tokens> {
  const reply = await fetch(`${app.base}/oauth/token`, { method: 'POST', body: new URLSearchParams(fields) })
  return { ...((await reply.json()) as Tokens), status: reply.status }
}

let people = 0
/** A client that a new person is about to connect. */
export async function consentFor(
  app: SignInApp,
  changes: Record<string, string | undefined> = {},
): Promise<{ clientId: string; browser: Browser; consent: Page }> {
  const { client_id: clientId } = await register(app)
  const browser = createBrowser()
  const page = await browser.open(authorizeUrl(app, clientId, changes))
  const consent = await signUp(app, browser, page, `person${++people}@example.com`)
  return { clientId, browser, consent }
}

export async function codeFor(app: SignInApp, changes: Record<string, string | undefined> = {}) {
  const { clientId, browser, consent } = await consentFor(app, changes)
  const done = await browser.submit(consent, 'allow')
  const code = new URL(done.url).searchParams.get('code')!
  const redeem = (more: Record<string, string> = {}) =>
    tokenRequest(app, {
      grant_type: 'authorization_code',
      client_id: clientId,
      code,
      redirect_uri: redirectUri,
      code_verifier: verifier,
      ...more,
    })
  return { clientId, browser, code, redeem }
}

type Connect = {
  /** What the client asks for beside the scopes of the interface. */
  asks?: string
  /** What the person ticks on the consent page. */
  allows?: readonly string[]
  changes?: Record<string, string | undefined>
  /** Further fields of the consent page. */
  fields?: Record<string, string>
  /** Signs in again for this client: the sign-in for another client is not fresh for it. */
  signsIn?: boolean
}
export type Connection = { clientId: string; page: Page; tokens: Tokens; authorization: string }
export type ConnectingPerson = {
  email: string
  browser: Browser
  /** A new client, or the one that is named, through the consent of this person. */
  connect(wanted?: Connect & { clientId?: string }): Promise<Connection>
  /** Opens the page that an answer names, and presses the button; the answer is the page after it. */
  confirm(confirmUrl: string, decision?: 'approve' | 'decline'): Promise<Page>
  /** What the browser keeps of a sign-in for the page of approvals, and no script of a page can read. */
  pageToken(): Promise<string>
}

/** A person with a browser that stays signed in, who connects one client after the other. */
export function connectingPerson(app: SignInApp, email = `person${++people}@example.com`): ConnectingPerson {
  // Its pages are those of the issuer, whichever instance serves them.
  const browser = createBrowser({ origin: app.base })
  let isSignedIn = false
  const openPage = async (url: string): Promise<Page> => {
    const opened = await browser.open(url)
    const asksForSignIn = /name="password"/.test(opened.html)
    return asksForSignIn ? browser.submit(opened, 'sign-in', { email, password }) : opened
  }
  return {
    email,
    browser,
    async confirm(confirmUrl, decision = 'approve') {
      return browser.submit(await openPage(confirmUrl), decision)
    },
    async pageToken() {
      const name = '/oauth/approvals portico_approvals'
      browser.cookies.delete(name)
      const { html } = await openPage(`${app.base}/oauth/approvals`)
      const value = browser.cookies.get(name)?.value.split('=')[1]
      if (!value) throw new Error(`no sign-in for the page: ${html.slice(-500)}`)
      return value
    },
    async connect({
      asks = '',
      allows = [],
      changes = {},
      clientId = '',
      fields = {},
      signsIn = false,
    } = {}) {
      const client_id = clientId || (await register(app)).client_id
      const scope = `openid email offline_access ${asks}`.trim()
      const prompt = isSignedIn && signsIn ? 'login consent' : 'consent'
      const opened = await browser.open(authorizeUrl(app, client_id, { scope, prompt, ...changes }))
      const consent = async () => (signsIn ? browser.submit(opened, 'sign-in', { email, password }) : opened)
      const page = isSignedIn ? await consent() : await signUp(app, browser, opened, email)
      isSignedIn = true
      const ticked = Object.fromEntries(allows.map((each) => [each, 'yes']))
      const done = await browser.submit(page, 'allow', { ...ticked, ...fields })
      const code = new URL(done.url).searchParams.get('code') ?? ''
      const tokens = await tokenRequest(app, {
        grant_type: 'authorization_code',
        client_id,
        code,
        redirect_uri: redirectUri,
        code_verifier: verifier,
      })
      if (tokens.status !== 200) throw new Error(`no tokens: ${JSON.stringify(tokens)} ${done.url}`)
      return { clientId: client_id, page, tokens, authorization: `Bearer ${tokens.access_token}` }
    },
  }
}

export const signUpUser = (app: SignInApp, authorization: string, body: object = {}) =>
  http(`${app.base}/signup`, { method: 'POST', headers: { authorization }, body })
