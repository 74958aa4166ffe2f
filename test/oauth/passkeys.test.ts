/** People sign up, sign in and manage their account with passkeys; an authenticator in code signs. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { decodeJwt } from 'jose'
import { query } from '#store/query.ts'
import { eventually, http } from '../harness/gateway.ts'
import { createBrowser, createOAuthApp, type OAuthApp, type Page, password, signUp } from './oauth-app.ts'
import {
  alertOf,
  openSignIn,
  optionsFor,
  proveEmail,
  requestOptions,
  signUpWithPasskey,
} from './passkey-steps.ts'
import { authorizeUrl, redirectUri, signUpUser, type Tokens, tokenRequest, verifier } from './session.ts'
import { createSoftwareAuthenticator } from './software-authenticator.ts'

let app: OAuthApp
let device: ReturnType<typeof createSoftwareAuthenticator>
before(async () => {
  app = await createOAuthApp({ hostname: 'localhost' })
  device = createSoftwareAuthenticator(app.base)
})
after(() => app?.[Symbol.asyncDispose]())

const tokensOf = async (done: Page, client_id: string): Promise<Tokens & { id_token: string }> => {
  const code = new URL(done.url).searchParams.get('code') ?? ''
  const tokens = await tokenRequest(app, {
    grant_type: 'authorization_code',
    client_id,
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  })
  assert.equal(tokens.status, 200, `${tokens.error} ${done.url}`)
  return tokens as Tokens & { id_token: string }
}
const emailTo = (email: string, subject: RegExp) =>
  eventually(
    async () => app.emails.find((line) => line.startsWith(`email  ${email}: `) && subject.test(line)),
    `a message ${subject}`,
  )
const ageSessions = (seconds: number) =>
  query(
    app.database.pool,
    `update oauth_record set payload = jsonb_set(payload, '{loginTs}', to_jsonb((payload->>'loginTs')::int - $1::int))
     where model = 'Session' and payload ? 'loginTs'`,
    [seconds],
  )

test('a person signs up with a passkey alone, and signs in with it in another browser', async () => {
  const person = await signUpWithPasskey(app, 'alone@example.com')
  const first = await tokensOf(await person.browser.submit(person.consent, 'allow'), person.clientId)
  assert.deepEqual(decodeJwt(first.id_token).amr, ['otp', 'pop', 'user', 'mfa'])
  await emailTo('alone@example.com', /A passkey was added to your Portico account/)

  const other = createBrowser()
  const { clientId, page } = await openSignIn(app, other)
  const options = await optionsFor(other, page, 'passkey-options')
  const consent = await other.submit(page, 'passkey', { credential: device.sign(person.passkey, options) })
  assert.match(consent.html, /alone@example\.com/, alertOf(consent))
  const second = await tokensOf(await other.submit(consent, 'allow', { manage: 'yes' }), clientId)
  const [one, two] = [decodeJwt(first.access_token), decodeJwt(second.access_token)]
  assert.equal(one.sub, two.sub)
  assert.deepEqual(decodeJwt(second.id_token).amr, ['pop', 'user', 'mfa'])
})

test('a sign-in with a passkey is a fresh one: it confirms what only people do, and answers prompt=login and max_age', async () => {
  const person = await signUpWithPasskey(app, 'fresh@example.com')
  const { browser } = person
  const connected = await browser.submit(person.consent, 'allow', { manage: 'yes', propose: 'yes' })
  const { access_token } = await tokensOf(connected, person.clientId)
  await signUpUser(app, `Bearer ${access_token}`)
  type Switch = { approval: { confirm_url: string }; paused: object | null }
  const call = (method: string, path: string, body?: object) =>
    http<Switch>(app.base + path, {
      method,
      headers: { authorization: `Bearer ${access_token}` },
      ...(body && { body }),
    })
  const isPaused = async () => (await call('GET', '/v1/policy')).body.paused !== null
  const signIn = async (page: Page) => {
    assert.match(page.html, /Sign in with a passkey/)
    const options = await optionsFor(browser, page, 'passkey-options')
    return browser.submit(page, 'passkey', { credential: device.sign(person.passkey, options) })
  }
  await call('POST', '/v1/kill', { on: true })
  const { approval } = (await call('POST', '/v1/kill', { on: false })).body
  await ageSessions(1_000)
  // The session of the browser goes on, and confirms nothing before the passkey has.
  const asked = await browser.open(approval.confirm_url)
  assert.doesNotMatch(asked.html, /\/approve"/)
  assert.ok(await isPaused())
  assert.match((await browser.submit(await signIn(asked), 'approve')).html, /Approved/)
  await eventually(async () => !(await isPaused()), 'the switch is lifted')

  const again = (changes: Record<string, string | undefined>) =>
    browser.open(
      authorizeUrl(app, person.clientId, { prompt: undefined, scope: 'openid manage', ...changes }),
    )
  const authTimeOf = async (page: Page) => {
    const { auth_time, amr } = decodeJwt((await tokensOf(page, person.clientId)).id_token)
    assert.deepEqual(amr, ['pop', 'user', 'mfa'])
    return Date.now() / 1_000 - Number(auth_time)
  }
  for (const changes of [{ prompt: 'login' }, { max_age: '300' }]) {
    await ageSessions(1_000)
    assert.ok((await authTimeOf(await again({}))) > 900, 'a session that goes on is an old sign-in')
    assert.ok(Math.abs(await authTimeOf(await signIn(await again(changes)))) < 60)
  }
})

test('an account with a password gets a passkey by the sign-up page, keeps its password and has both', async () => {
  const browser = createBrowser()
  const { page } = await openSignIn(app, browser)
  await signUp(app, browser, page, 'both@example.com')
  const { passkey } = await signUpWithPasskey(app, 'both@example.com')
  const other = createBrowser()
  const opened = await openSignIn(app, other)
  const withPassword = await other.submit(opened.page, 'sign-in', { email: 'both@example.com', password })
  assert.match(withPassword.html, /Connect Attack\?/)
  const third = createBrowser()
  const { page: again } = await openSignIn(app, third)
  const options = await optionsFor(third, again, 'passkey-options')
  const consent = await third.submit(again, 'passkey', { credential: device.sign(passkey, options) })
  assert.match(consent.html, /both@example\.com/)
  const rows = await query(
    app.database.pool,
    `select count(*)::int as count from person where email = 'both@example.com'`,
  )
  assert.deepEqual(rows, [{ count: 1 }])
})

test('passkeys are added, named, listed and removed on the account page, and a code by email remains', async () => {
  const browser = createBrowser()
  const { clientId, page } = await openSignIn(app, browser)
  const consent = await signUp(app, browser, page, 'manages@example.com')
  await browser.submit(consent, 'allow', { trade: 'yes' })
  const account = await browser.open(`${app.base}/oauth/account`)
  assert.equal(account.status, 200)
  assert.match(account.html, /You have no passkey/)
  assert.match(account.html, /Attack.*Reads, trades/s)
  const options = await optionsFor(browser, account, 'passkey-add-options')
  const { passkey, credential } = device.create(options)
  const added = await browser.submit(account, 'passkey-add', { credential, name: 'Desk <b>\u202Ekey' })
  assert.match(added.html, /Desk &lt;b&gt;key/)
  await emailTo('manages@example.com', /A passkey was added/)
  const replayed = await browser.submit(account, 'passkey-add', { credential, name: 'again' })
  assert.deepEqual([replayed.status, /<strong>again/.test(replayed.html)], [422, false])

  const other = createBrowser()
  const { page: start } = await openSignIn(app, other)
  const ask = await optionsFor(other, start, 'passkey-options')
  await other.submit(start, 'passkey', { credential: device.sign(passkey, ask) })
  const used = await browser.open(`${app.base}/oauth/account`)
  assert.match(used.html, /last used/)

  const id = /name="id" value="([^"]+)"/.exec(used.html)?.[1] ?? ''
  const stranger = await signUpWithPasskey(app, 'stranger@example.com')
  const theirs = await stranger.browser.open(`${app.base}/oauth/account`)
  await stranger.browser.submit(theirs, 'passkey-remove', { id })
  assert.match((await browser.open(`${app.base}/oauth/account`)).html, /Desk/)
  const removed = await browser.submit(used, 'passkey-remove', { id })
  assert.match(removed.html, /You have no passkey/)
  await emailTo('manages@example.com', /A passkey was removed/)
  const { page: late } = await openSignIn(app, other, { prompt: 'login' })
  const options2 = await optionsFor(other, late, 'passkey-options')
  const refused = await other.submit(late, 'passkey', { credential: device.sign(passkey, options2) })
  assert.equal(refused.status, 422)
  const form = await other.open(`${late.url}?view=email-code`)
  const sent = await other.submit(form, 'email-code', { email: 'manages@example.com' })
  const entered = await other.submit(sent, 'code', { code: app.codeFor('manages@example.com') })
  assert.ok(entered.url.startsWith(redirectUri) || /Connect Attack/.test(entered.html))
  assert.ok(clientId)
})

test('an old sign-in shows the account and changes no passkey; signing in again does', async () => {
  const person = await signUpWithPasskey(app, 'old@example.com')
  const fresh = await person.browser.open(`${app.base}/oauth/account`)
  const challenge = await optionsFor(person.browser, fresh, 'passkey-add-options')
  await ageSessions(1_000)
  const stale = await person.browser.open(`${app.base}/oauth/account`)
  assert.match(stale.html, /Sign in again to change passkeys/)
  assert.doesNotMatch(stale.html, /passkey-remove|passkey-add/)
  const id = /name="id" value="([^"]+)"/.exec(fresh.html)?.[1] ?? ''
  const { credential } = device.create(challenge)
  assert.equal((await requestOptions(person.browser, fresh, 'passkey-add-options')).status, 403)
  assert.equal((await person.browser.submit(fresh, 'passkey-add', { credential })).status, 403)
  assert.equal((await person.browser.submit(fresh, 'passkey-remove', { id })).status, 403)
  assert.match((await person.browser.open(`${app.base}/oauth/account`)).html, /not used since/)

  const again = await person.browser.submit(stale, 'sign-in')
  const options = await optionsFor(person.browser, again, 'passkey-options')
  const back = await person.browser.submit(again, 'passkey', {
    credential: device.sign(person.passkey, options),
  })
  assert.equal(back.url, `${app.base}/oauth/account`)
  assert.match(back.html, /Add a passkey/)
})

test('an account has at most ten passkeys, also when they are added at once', async () => {
  const person = await signUpWithPasskey(app, 'many@example.com')
  const account = await person.browser.open(`${app.base}/oauth/account`)
  const add = async () => {
    const options = await optionsFor(person.browser, account, 'passkey-add-options')
    return person.browser.submit(account, 'passkey-add', device.answer(options))
  }
  for (let turn = 0; turn < 8; turn += 1) assert.equal((await add()).status, 200)
  // Two sessions of one account, nine passkeys so far.
  const second = createBrowser()
  const { page } = await openSignIn(app, second)
  const ask = await optionsFor(second, page, 'passkey-options')
  await second.submit(page, 'passkey', { credential: device.sign(person.passkey, ask) })
  const theirs = await second.open(`${app.base}/oauth/account`)
  // Neither has stored its passkey before the other begins.
  const holder = await app.database.pool.connect()
  await holder.query('begin')
  await holder.query('lock table passkey in share mode')
  const adding = Promise.all(
    [
      { browser: person.browser, page: account },
      { browser: second, page: theirs },
    ].map(async ({ browser, page: on }) =>
      browser.submit(on, 'passkey-add', device.answer(await optionsFor(browser, on, 'passkey-add-options'))),
    ),
  )
  await eventually(async () => {
    const { rows } = await app.database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length >= 2 ? true : undefined
  }, 'both wait')
  await holder.query('commit')
  holder.release()
  const both = await adding
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 422])
  const full = await second.open(`${app.base}/oauth/account`)
  assert.match(full.html, /at most 10 passkeys/)
  assert.equal(full.html.match(/name="id"/g)?.length, 10)
})

test('an app is disconnected on the account page, and its tokens end', async () => {
  const person = await signUpWithPasskey(app, 'apps@example.com')
  const { access_token } = await tokensOf(
    await person.browser.submit(person.consent, 'allow'),
    person.clientId,
  )
  const authorization = `Bearer ${access_token}`
  assert.equal((await signUpUser(app, authorization)).status, 200)
  const other = await signUpWithPasskey(app, 'neighbour@example.com')
  await other.browser.submit(other.consent, 'allow')
  const theirs = await other.browser.open(`${app.base}/oauth/account`)
  // The client of somebody else's grant: nothing of that person ends.
  await other.browser.submit(theirs, 'disconnect', { client_id: person.clientId })
  assert.equal((await signUpUser(app, authorization)).status, 200)
  const account = await person.browser.open(`${app.base}/oauth/account`)
  const done = await person.browser.submit(account, 'disconnect', { client_id: person.clientId })
  assert.match(done.html, /No app has access/)
  assert.equal((await signUpUser(app, authorization)).status, 401)
})

test('the account page asks strangers to sign in, and lets a person leave', async () => {
  const browser = createBrowser()
  const asked = await browser.open(`${app.base}/oauth/account`)
  assert.match(asked.html, /to continue to <strong>your account/)
  await signUpWithPasskey(app, 'leaves@example.com')
  const form = await browser.open(`${asked.url}?view=email-code`)
  const sent = await browser.submit(form, 'email-code', { email: 'leaves@example.com' })
  const account = await browser.submit(sent, 'code', { code: app.codeFor('leaves@example.com') })
  assert.equal(account.url, `${app.base}/oauth/account`)
  const grants = async () =>
    query(
      app.database.pool,
      `select 1 from oauth_record r join person p on p.id = r.account_id::uuid
       where model = 'Grant' and payload->>'clientId' = 'portico-pages' and p.email = 'leaves@example.com'`,
    )
  assert.equal((await grants()).length, 1)
  assert.doesNotMatch(account.html, /portico-pages|Disconnect/, 'the page itself is no connected app')
  const foreign = await browser.submit(account, 'sign-out', {}, { origin: 'https://attacker.example' })
  assert.equal(foreign.status, 403)
  assert.match((await browser.submit(account, 'sign-out')).html, /You are signed out/)
  assert.deepEqual(await grants(), [], 'its token ends with the session')
  assert.match((await browser.open(`${app.base}/oauth/account`)).html, /Sign in<\/h1>/)
})

test('another person signs in on the same browser, and nothing of the former session stays', async () => {
  const first = await signUpWithPasskey(app, 'first@example.com')
  const second = await signUpWithPasskey(app, 'second@example.com')
  await first.browser.submit(first.consent, 'allow')
  const { page } = await openSignIn(app, first.browser)
  const other = await first.browser.open(`${page.url}?view=sign-in`)
  const options = await optionsFor(first.browser, other, 'passkey-options')
  const consent = await first.browser.submit(other, 'passkey', {
    credential: device.sign(second.passkey, options),
  })
  assert.match(consent.html, /second@example\.com/, alertOf(consent))
  const account = await first.browser.open(`${app.base}/oauth/account`)
  assert.match(account.html, /second@example\.com/)
})

test('where the address of the gateway has no name, no passkey is offered', async () => {
  await using plain = await createOAuthApp()
  const browser = createBrowser()
  const { page } = await openSignIn(plain, browser)
  assert.doesNotMatch(page.html, /passkey|<script/)
  assert.doesNotMatch(page.headers.get('content-security-policy') ?? '', /script-src/)
  const tried = await browser.open(`${page.url}/passkey-options`, {
    method: 'POST',
    body: new URLSearchParams(),
  })
  assert.equal(tried.status, 409)
})

test('the sign-up without a password takes no account of an address that was not proven', async () => {
  const browser = createBrowser()
  const { page } = await openSignIn(app, browser)
  const proven = await proveEmail(app, browser, page, 'mine@example.com')
  const options = await optionsFor(browser, proven, 'passkey-create-options')
  // A code for the victim is on its way, and has not been entered.
  await browser.submit(await browser.open(`${page.url}?view=passkey-sign-up`), 'passkey-sign-up', {
    email: 'victim@example.com',
  })
  await browser.submit(proven, 'passkey-create', {
    ...device.answer(options),
    email: 'victim@example.com',
  })
  const rows = await query(
    app.database.pool,
    `select p.email from passkey k join person p on p.id = k.person_id where p.email in ('mine@example.com', 'victim@example.com')`,
  )
  assert.deepEqual(rows, [{ email: 'mine@example.com' }])
})
