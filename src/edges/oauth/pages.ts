import { createHash } from 'node:crypto'
import { type ActingScope, actingScopes, oauthPaths } from './paths-and-scopes.ts'
import { passkeyScriptElement, passkeyScriptHash } from './sign-in/passkey-script.ts'
import { styles } from './styles.ts'

/** The pages of the sign-in are HTML with at most one script. Every value of a client or a person is escaped here. */

const styleHash = createHash('sha256').update(styles).digest('base64')

type PageSources = {
  /**
   * A further target that the content security policy allows for forms: browsers also check the redirect that follows a
   * form.
   */
  form?: string | undefined
  hasScript?: boolean
}
export const pageHeaders = ({ form, hasScript = false }: PageSources = {}): Record<string, string> => ({
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    ...(hasScript ? [`script-src 'sha256-${passkeyScriptHash}'`, "connect-src 'self'"] : []),
    `form-action 'self'${form === undefined ? '' : ` ${form}`}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // With `no-referrer` a browser would send a form without its origin, which the gateway checks.
  'referrer-policy': 'same-origin',
  // This policy cuts the page off from the window that opened it, so that no other page of this origin can control a
  // page on which a person acts.
  'cross-origin-opener-policy': 'noopener-allow-popups',
  'cache-control': 'no-store',
})

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}
export const hasPasskeyScript = (html: string): boolean => html.includes(passkeyScriptElement)

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (mark) => entities[mark]!)

const nameMax = 60
/** Puts a name on one line, without characters that change the direction or the look of the text after it. */
export const shownName = (text: string): string =>
  text
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, '')
    .replace(/\p{M}{3,}/gu, '')
    .trim()
    .slice(0, nameMax)
    .toWellFormed()

const logo =
  '<svg viewBox="0 0 32 32" fill="none" aria-hidden="true"><path d="M4 12 16 4l12 8" stroke="currentColor" stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/><path d="M8 15v11M16 15v11M24 15v11M4 28h24" stroke="currentColor" stroke-width="3" stroke-linecap="round"/></svg>'
export const tick =
  '<svg viewBox="0 0 20 20" fill="none" aria-hidden="true"><path d="m4 10.5 4 4 8-9" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" stroke-linejoin="round"/></svg>'
export const cross =
  '<svg viewBox="0 0 20 20" fill="none" aria-hidden="true"><path d="m5 5 10 10M15 5 5 15" stroke="currentColor" stroke-width="2.2" stroke-linecap="round"/></svg>'

const key =
  '<svg viewBox="0 0 20 20" fill="none" aria-hidden="true"><circle cx="7" cy="13" r="3.6" stroke="currentColor" stroke-width="1.8"/><path d="m9.7 10.3 7-7M13.5 6.5l2.6 2.6" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round"/></svg>'

type PageForm = {
  head?: string
  isWide?: boolean
}
export const page = (title: string, body: string, { head = '', isWide = false }: PageForm = {}): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">${head}<title>${escapeHtml(title)} · Portico</title><style>${styles}</style></head><body><main${isWide ? ' class="wide"' : ''}><div class="brand">${logo}<span>Portico</span></div>${body}</main><footer>Check that the address bar shows the address of your gateway.</footer></body></html>`

export const alert = (error: string | undefined): string =>
  error === undefined ? '' : `<p class="error" role="alert">${escapeHtml(error)}</p>`

const actionOf = (uid: string, step: string): string =>
  escapeHtml(`${oauthPaths.interaction}/${encodeURIComponent(uid)}/${step}`)
const viewOf = (uid: string, view: string): string =>
  escapeHtml(`${oauthPaths.interaction}/${encodeURIComponent(uid)}?view=${view}`)

export type PageContext = {
  uid: string
  client: string
  hasPasskeys?: boolean
  email?: string | undefined
  error?: string | undefined
}

type PasskeyForm = {
  kind: 'create' | 'get'
  action: string
  options: string
  fields?: string
  button: string
  look: 'main' | 'quiet'
}
/** The script fills this form, which stays hidden if the browser has no script or no passkeys. */
export const passkeyForm = ({ kind, action, options, fields = '', button, look }: PasskeyForm): string =>
  `<form method="post" action="${action}" data-kind="${kind}" data-options="${options}" data-failed="${
    kind === 'create'
      ? 'No passkey was created. Try again, or use another way.'
      : 'No passkey was used. Try again, or use another way.'
  }" data-known="This device already has a passkey for this account." data-with-passkeys hidden>${fields}<input type="hidden" name="credential"><button class="${look}">${key}<span>${button}</span></button><p class="error" role="alert" hidden></p></form>`

export const field = (name: string, label: string, attributes: string, hint = ''): string =>
  `<label for="${name}">${label}</label><input id="${name}" name="${name}" required ${attributes}${hint && ` aria-describedby="${name}-hint"`}>${hint && `<p class="hint" id="${name}-hint">${hint}</p>`}`

const emailField = (email = ''): string =>
  field('email', 'Email', `type="email" autocomplete="username" maxlength="254" value="${escapeHtml(email)}"`)
const newPassword = (label: string): string =>
  field(
    'password',
    label,
    'type="password" autocomplete="new-password" minlength="10" maxlength="256"',
    'At least 10 characters',
  )

const passkeySignIn = (uid: string): string =>
  `<p class="or" data-with-passkeys hidden><span>or</span></p>${passkeyForm({
    kind: 'get',
    action: actionOf(uid, 'passkey'),
    options: actionOf(uid, 'passkey-options'),
    button: 'Sign in with a passkey',
    look: 'quiet',
  })}`

export const signInPage = ({ uid, client, hasPasskeys, email, error }: PageContext): string =>
  page(
    'Sign in',
    `<h1>Sign in</h1><p class="soft">to continue to <strong>${escapeHtml(client)}</strong></p>${alert(error)}
<form method="post" action="${actionOf(uid, 'sign-in')}">${emailField(email)}${field('password', 'Password', 'type="password" autocomplete="current-password" maxlength="256"')}<button class="main">Sign in</button></form>${hasPasskeys ? passkeySignIn(uid) : ''}
<p class="links"><a href="${viewOf(uid, 'sign-up')}">Create an account</a><a href="${viewOf(uid, 'reset')}">Forgot your password?</a><a href="${viewOf(uid, 'email-code')}">Sign in with a code by email</a></p>${hasPasskeys ? passkeyScriptElement : ''}`,
  )

/** People leave this page to sign in elsewhere; `provider` is the host of the identity provider. */
export const externalSignInPage = ({
  uid,
  client,
  error,
  provider,
}: PageContext & { provider: string }): string =>
  page(
    'Sign in',
    `<h1>Sign in</h1><p class="soft">to continue to <strong>${escapeHtml(client)}</strong></p>${alert(error)}
<form method="post" action="${actionOf(uid, 'continue')}"><button class="main">Continue with ${escapeHtml(provider)}</button></form>
<p class="small soft below">You sign in there and come back here. Portico learns your email address, and never your password.</p>`,
  )

/**
 * The browser reaches the identity provider through this page and not by a redirect, because the content security
 * policy of the form would have to allow a redirect that follows it.
 */
export const departurePage = (provider: string, url: string): string =>
  page(
    'Sign in',
    `<h1>Taking you to ${escapeHtml(provider)}</h1><p class="soft">Sign in there. You come back here by yourself.</p>
<p><a href="${escapeHtml(url)}">Continue</a></p>`,
    { head: `<meta http-equiv="refresh" content="0;url=${escapeHtml(url)}">` },
  )

export const signUpPage = ({ uid, client, hasPasskeys, email, error }: PageContext): string =>
  page(
    'Create an account',
    `<h1>Create an account</h1><p class="soft">to continue to <strong>${escapeHtml(client)}</strong></p>${alert(error)}
<form method="post" action="${actionOf(uid, 'sign-up')}">${emailField(email)}${newPassword('Password')}<button class="main">Send me a code</button></form>
<p class="links"><a href="${viewOf(uid, 'sign-in')}">I have an account</a>${
      hasPasskeys
        ? `<a href="${viewOf(uid, 'passkey-sign-up')}" data-with-passkeys hidden>Use a passkey instead</a>`
        : ''
    }</p>${hasPasskeys ? passkeyScriptElement : ''}`,
  )

export const passkeySignUpPage = ({ uid, client, email, error }: PageContext): string =>
  page(
    'Create an account',
    `<h1>Create an account</h1><p class="soft">to continue to <strong>${escapeHtml(client)}</strong>, without a password: this device keeps a passkey. First we send a code to your address.</p>${alert(error)}
<form method="post" action="${actionOf(uid, 'passkey-sign-up')}">${emailField(email)}<button class="main">Send me a code</button></form>
<p class="links"><a href="${viewOf(uid, 'sign-in')}">I have an account</a><a href="${viewOf(uid, 'sign-up')}">Use a password instead</a></p>`,
  )

/** This page is for a browser in which the code that was sent to `email` has been entered. */
export const createPasskeyPage = ({ uid, email = '', error }: PageContext): string =>
  page(
    'Create a passkey',
    `<h1>Create your passkey</h1><p class="soft">for <strong>${escapeHtml(email)}</strong>. Your device asks for your fingerprint, your face or its PIN; nothing of that leaves it.</p>${alert(error)}
${passkeyForm({
  kind: 'create',
  action: actionOf(uid, 'passkey-create'),
  options: actionOf(uid, 'passkey-create-options'),
  button: 'Create the passkey',
  look: 'main',
})}
<p class="error" data-without-passkeys>This browser offers no passkeys. Use a password instead.</p>
<p class="links"><a href="${viewOf(uid, 'sign-up')}">Use a password instead</a></p>${passkeyScriptElement}`,
  )

export const resetPage = ({ uid, email, error }: PageContext): string =>
  page(
    'New password',
    `<h1>Set a new password</h1><p class="soft">We send a code to your address. The new password ends every session and connected app.</p>${alert(error)}
<form method="post" action="${actionOf(uid, 'reset')}">${emailField(email)}${newPassword('New password')}<button class="main">Send me a code</button></form>
<p class="links"><a href="${viewOf(uid, 'sign-in')}">Back to sign in</a></p>`,
  )

export const emailCodePage = ({ uid, client, email, error }: PageContext): string =>
  page(
    'Sign in with a code',
    `<h1>Sign in with a code</h1><p class="soft">to continue to <strong>${escapeHtml(client)}</strong>. We send it to the address of your account.</p>${alert(error)}
<form method="post" action="${actionOf(uid, 'email-code')}">${emailField(email)}<button class="main">Send me a code</button></form>
<p class="links"><a href="${viewOf(uid, 'sign-in')}">Back to sign in</a></p>`,
  )

export const codePage = ({ uid, email = '', error }: PageContext): string =>
  page(
    'Enter the code',
    `<h1>Check your email</h1><p class="soft">We sent a code of eight digits to <strong>${escapeHtml(email)}</strong>. It is valid for 10 minutes.</p>${alert(error)}
<form method="post" action="${actionOf(uid, 'code')}"><input type="hidden" name="email" value="${escapeHtml(email)}">${field('code', 'Code', 'class="code" inputmode="numeric" autocomplete="one-time-code" pattern="[0-9]{8}" maxlength="8"')}<button class="main">Continue</button></form>
<p class="links"><a href="${viewOf(uid, 'sign-up')}">Use another address</a></p>`,
  )

export type Consent = {
  uid: string
  client: string
  redirect: string
  /** Who published the metadata of the client; absent if it registered itself. */
  publisher?: string | undefined
  email: string
  scopes: readonly string[]
  /** The amount that the checkbox for chats shows. */
  creditsPerDay: number
  creditsPerDayMax: number
}

type Choices = Pick<Consent, 'scopes' | 'creditsPerDay' | 'creditsPerDayMax'>

const scopeTexts: Record<string, string> = {
  openid: 'Know the id of your account',
  profile: 'See your profile',
  email: 'See your email address',
  offline_access: 'Stay connected while you are away, until you disconnect it',
}

const choiceTexts: Record<ActingScope, string> = {
  trade: 'Swap and trade for you, within your limits',
  earn: 'Deposit into the vault and withdraw, for you',
  chat: 'Chat for you, decide what a chat recommends, and spend your credits up to this amount',
  manage:
    'Lower your limits, stop all trading, open payment pages for plans or end your plan, send your events to its own server, and acknowledge the disclaimer on prediction markets',
  propose:
    'Ask in your name for more: raised limits, recipients, linked agents, trading after a stop. You confirm each on a page of this gateway',
}

/** Returns the checkbox of a scope, which is never ticked beforehand, whatever the app asks for. */
const choiceOf = (scope: ActingScope, view: Choices): string =>
  `<label class="choice"><input type="checkbox" name="${scope}" value="yes"><span>${choiceTexts[scope]}${
    view.scopes.includes(scope) ? ' <span class="badge">The app asks for it</span>' : ''
  }</span></label>${scope === 'chat' ? creditsField(view) : ''}`
const creditsField = ({ creditsPerDay, creditsPerDayMax }: Choices): string =>
  `<label class="choice amount"><input type="number" name="chat_credits" min="1" max="${creditsPerDayMax}" value="${creditsPerDay}"> credits a day</label>`

/** Returns the checkboxes of all acts that a person may allow. */
export const actChoices = (view: Choices): string =>
  actingScopes.map((scope) => choiceOf(scope, view)).join('')

export function consentPage(view: Consent): string {
  const { uid, client, redirect, publisher, email, scopes } = view
  const name = escapeHtml(client)
  const may = [
    'See your wallets, balances, orders and history',
    ...scopes.flatMap((scope) => scopeTexts[scope] ?? []),
  ]
  const items = may.map((text) => `<li>${tick}<span>${escapeHtml(text)}</span></li>`).join('')
  const choices = actChoices(view)
  const origin =
    publisher === undefined
      ? 'This app registered itself. Portico has not checked its name, so trust the address above.'
      : `This app is published by ${escapeHtml(publisher)}.`
  return page(
    'Connect an app',
    `<h1>Connect ${name}?</h1><p class="soft">It gets access to your account at this gateway.</p>
<dl class="who"><div><dt>App</dt><dd>${name}</dd></div><div><dt>Sends you to</dt><dd>${escapeHtml(redirect)}</dd></div><div><dt>Your account</dt><dd>${escapeHtml(email)}</dd></div></dl>
<p class="small soft">${origin}</p>
<h2>It may</h2><ul>${items}<li class="never">${cross}<span>Never send money to an address that you have not confirmed on a page of this gateway, and never raise a limit by itself</span></li></ul>
<form method="post" action="${actionOf(uid, 'allow')}"><fieldset><legend>You decide: may it also act?</legend>${choices}</fieldset><button class="main">Connect</button></form>
<form method="post" action="${actionOf(uid, 'deny')}"><button class="quiet">Cancel</button></form>
<p class="links"><a href="${viewOf(uid, 'sign-in')}">Use another account</a><a href="${oauthPaths.account}">Manage your account</a><a href="${oauthPaths.approvals}">Requests that wait for you</a></p>`,
  )
}

/** `code` is for the makers of the app; `isSignIn` is false for a page on which nobody signs in. */
export const errorPage = (sentence: string, code: string, { isSignIn = true } = {}): string =>
  page(
    'Something is wrong',
    `<h1>${isSignIn ? 'This sign-in cannot go on' : 'This cannot go on'}</h1><p class="soft">${escapeHtml(sentence)}</p><p class="small soft">Error: ${escapeHtml(code)}. Go back to the app and start again.</p>`,
  )
