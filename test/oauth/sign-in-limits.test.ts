/** Guesses are limited over all instances, and nobody locks a person out. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type DeriveKey, scryptKey } from '#features/oauth/passwords.ts'
import { createSignInLimits } from '#features/oauth/sign-in-limits.ts'
import { eventually, http } from '../harness/gateway.ts'
import {
  type Browser,
  createBrowser,
  createOAuthApp,
  type OAuthApp,
  openOAuthInstance,
  type Page,
  password,
  signUp,
} from './oauth-app.ts'
import { authorizeUrl, redirectUri, register, tokenRequest, verifier } from './session.ts'

const env = { TRUST_PROXY: '127.0.0.1' }
let app: OAuthApp
let clientId: string
/** Checks of passwords that begin so wait for the end of the test. */
const heldPassword = 'held guess'
const held: (() => void)[] = []
const deriveKey: DeriveKey = async (password, salt, cost) => {
  if (!password.startsWith(heldPassword)) return scryptKey(password, salt, cost)
  await new Promise<void>((resolve) => held.push(resolve))
  return Buffer.alloc(32)
}
before(async () => {
  app = await createOAuthApp({ env, overrides: { deriveKey } })
  clientId = (await register(app)).client_id
})
after(() => app?.[Symbol.asyncDispose]())

const alertOf = ({ html }: Page) => /role="alert">([^<]*)/.exec(html)?.[1] ?? ''
const isConsent = ({ html }: Page) => /Connect Attack\?/.test(html)
const from = (address: string) => ({ 'x-forwarded-for': address })

async function newPerson(email: string): Promise<Browser> {
  const browser = createBrowser()
  assert.ok(isConsent(await signUp(app, browser, await browser.open(authorizeUrl(app, clientId)), email)))
  return browser
}
/** Asks for the password again, whatever the session says. */
const signInPage = (browser: Browser) =>
  browser.open(authorizeUrl(app, clientId, { prompt: 'login consent' }))

/** Guesses of a stranger with many addresses; each is refused. Most are counted without the time of a password hash. */
async function guess(email: string): Promise<Page> {
  const limits = createSignInLimits({ db: app.database.pool, clock: { now: () => new Date() } })
  for (let turn = 0; turn < 45; turn++) await limits.take([{ name: `account|${email}`, max: 50 }])
  const browser = createBrowser()
  const page = await browser.open(authorizeUrl(app, clientId))
  let last = page
  for (let at = 0; at < 6; at++) {
    const form = { email, password: `wrong password ${at}` }
    last = await browser.submit(page, 'sign-in', form, from(`198.51.100.${at + 1}`))
    assert.equal(last.status, at < 5 ? 422 : 429)
  }
  return last
}

test('a stranger who guesses from many addresses is stopped, and the person signs in all the same', async () => {
  const email = 'target@example.com'
  const own = await newPerson(email)
  const stopped = await guess(email)
  assert.equal(stopped.status, 429)
  assert.match(alertOf(stopped), /code by email/)
  // The browser that signed in before is not concerned, also at the address of the stranger.
  const known = await own.submit(await signInPage(own), 'sign-in', { email, password }, from('198.51.100.1'))
  assert.ok(isConsent(known), alertOf(known))
  // A new browser is refused the right password, and gets in by a code.
  const fresh = createBrowser()
  const page = await fresh.open(authorizeUrl(app, clientId))
  const refused = await fresh.submit(page, 'sign-in', { email, password }, from('203.0.113.9'))
  assert.equal(refused.status, 429)
  const form = await fresh.open(`${page.url}?view=email-code`)
  const sent = await fresh.submit(form, 'email-code', { email }, from('203.0.113.9'))
  assert.equal(sent.status, 200, alertOf(sent))
  assert.ok(isConsent(await fresh.submit(sent, 'code', { email, code: app.codeFor(email) })))
  const again = await fresh.submit(await signInPage(fresh), 'sign-in', { email, password })
  assert.ok(isConsent(again), 'the code changed no password')
})

test('codes that a stranger asks for do not take those of the person away', async () => {
  const email = 'flooded@example.com'
  const own = await newPerson(email)
  const stranger = createBrowser()
  const page = await stranger.open(authorizeUrl(app, clientId))
  const form = await stranger.open(`${page.url}?view=email-code`)
  const statuses: number[] = []
  for (let at = 0; at < 62; at++)
    statuses.push((await stranger.submit(form, 'email-code', { email }, from(`198.51.101.${at + 1}`))).status)
  assert.deepEqual([...new Set(statuses)], [200, 429])
  assert.equal(statuses.indexOf(429), 59, 'sixty messages to one account, with that of the sign-up')
  const asked = await own.open(`${(await signInPage(own)).url}?view=email-code`)
  const sent = await own.submit(asked, 'email-code', { email })
  assert.ok(isConsent(await own.submit(sent, 'code', { email, code: app.codeFor(email) })))
})

test('addresses that ask again and again leave a new browser of the person the first code and the reset', async () => {
  const email = 'besieged@example.com'
  await newPerson(email)
  const open = async (view: string) => {
    const browser = createBrowser()
    const { url } = await browser.open(authorizeUrl(app, clientId))
    return { browser, form: await browser.open(`${url}?view=${view}`) }
  }
  const stranger = await open('email-code')
  const ask = async (address: string) =>
    (await stranger.browser.submit(stranger.form, 'email-code', { email }, from(address))).status
  const asked: Record<string, number[]> = {}
  for (const address of ['198.51.103.1', '198.51.103.2']) {
    asked[address] = []
    for (let turn = 0; turn < 40; turn++) asked[address].push(await ask(address))
  }
  const sent = Object.values(asked).map((statuses) => statuses.filter((status) => status === 200).length)
  assert.deepEqual(sent, [5, 4], 'ten in all, with that of the sign-up')
  for (const [view, address] of [
    ['email-code', '203.0.113.21'],
    ['reset', '203.0.113.22'],
  ] as const) {
    const { browser, form } = await open(view)
    const fields = { email, ...(view === 'reset' && { password }) }
    const page = await browser.submit(form, view, fields, from(address))
    assert.equal(page.status, 200, alertOf(page))
    assert.ok(isConsent(await browser.submit(page, 'code', { email, code: app.codeFor(email) })))
    assert.equal(await ask(address), 429, 'the first message alone')
  }
})

test('guesses hold up no browser that signed in before, and those that find no place are not counted', async () => {
  const email = 'crowd@example.com'
  const own = await newPerson(email)
  const ownPage = await signInPage(own)
  const stranger = createBrowser()
  const page = await stranger.open(authorizeUrl(app, clientId))
  const guess = (account: string) =>
    stranger.submit(page, 'sign-in', { email: account, password: heldPassword }, from('198.51.105.1'))
  const answered: number[] = []
  const all = Array.from({ length: 23 }, async (_each, n) => {
    answered.push((await guess(`nobody${n}@example.com`)).status)
  })
  try {
    const isFull = async () => (answered.length === 12 && held.length === 1 ? true : undefined)
    await eventually(isFull, 'one is checked, ten of its address wait, and the others are refused')
    for (let turn = 0; turn < 12; turn++) {
      const refused = await guess(email)
      assert.equal(refused.status, 503)
      assert.match(alertOf(refused), /code by email/)
    }
    let known: Page | undefined
    void own.submit(ownPage, 'sign-in', { email, password }).then((found) => {
      known = found
    })
    assert.ok(isConsent(await eventually(async () => known, 'the person signs in meanwhile')))
    assert.deepEqual([held.length, ...answered], [1, ...Array(12).fill(503)])
  } finally {
    let areAnswered = false
    void Promise.allSettled(all).then(() => {
      areAnswered = true
    })
    while (!areAnswered) {
      held.shift()?.()
      await new Promise(setImmediate)
    }
  }
  assert.deepEqual(answered.slice(12), Array(11).fill(422))
  // Ten wrong ones of an address would be too many.
  const fresh = createBrowser()
  const form = await fresh.open(authorizeUrl(app, clientId))
  const signedIn = await fresh.submit(form, 'sign-in', { email, password }, from('198.51.105.1'))
  assert.ok(isConsent(signedIn), alertOf(signedIn))
})

test('a mailbox without an account gets that message once a day, and no page reveals whether it did', async () => {
  const email = 'stranger@example.com'
  const mailed = () => app.emails.filter((line) => line.startsWith(`email  ${email}: There is no`)).length
  const ask = async (address: string) => {
    const browser = createBrowser()
    const { url } = await browser.open(authorizeUrl(app, (await register(app)).client_id))
    const form = await browser.open(`${url}?view=email-code`)
    const page = await browser.submit(form, 'email-code', { email }, from(address))
    return [page.status, page.html.replaceAll(/interaction\/[\w-]+/g, '')]
  }
  const first = await ask('198.51.106.1')
  for (const host of [1, 2, 3]) assert.deepEqual(await ask(`198.51.106.${host}`), first)
  assert.equal(mailed(), 1)
  app.time.offsetMs += 24 * 3_600_000 + 1_000
  try {
    assert.deepEqual(await ask('198.51.106.1'), first)
    assert.equal(mailed(), 2)
  } finally {
    app.time.offsetMs = 0
  }
})

test('after ten messages in a day a mailbox gets further ones after pauses that grow', async () => {
  const email = 'filled@example.com'
  const browser = createBrowser()
  const { url } = await browser.open(authorizeUrl(app, clientId))
  const form = await browser.open(`${url}?view=sign-up`)
  const ask = async (host: number) =>
    (await browser.submit(form, 'sign-up', { email, password }, from(`198.51.107.${host}`))).status
  for (let turn = 0; turn < 5; turn++) assert.deepEqual([await ask(1), await ask(2)], [200, 200])
  const minuteMs = 60_000
  const start = app.time.offsetMs
  try {
    // Windows of a quarter of an hour are over; the day is not.
    app.time.offsetMs = start + 15 * minuteMs + 1_000
    const seen: number[] = []
    for (let minute = 0; minute < 9; minute++) {
      // The first message of an address in its window is not paused.
      if (minute === 0) for (const host of [1, 2, 3, 4]) assert.equal(await ask(host), 200)
      seen.push(await ask(1 + (minute % 4)))
      app.time.offsetMs += minuteMs
    }
    assert.deepEqual(seen, [429, 200, 429, 200, 429, 429, 429, 200, 429])
  } finally {
    app.time.offsetMs = start
  }
})

test('the mark of a browser serves one person, and a forged one serves nobody', async () => {
  const email = 'marked@example.com'
  await newPerson(email)
  const other = await newPerson('other@example.com')
  await guess(email)
  const wrong = await other.submit(await signInPage(other), 'sign-in', { email, password })
  assert.equal(wrong.status, 429, 'the mark of another person')
  const forged = createBrowser()
  const page = await forged.open(authorizeUrl(app, clientId))
  const mark = `portico_browser=${'a'.repeat(22)}.${'b'.repeat(43)}`
  forged.cookies.set('/oauth/interaction portico_browser', { value: mark, path: '/oauth/interaction' })
  assert.equal((await forged.submit(page, 'sign-in', { email, password })).status, 429)
})

test('guesses in a browser that signed in before are limited, too', async () => {
  const email = 'stolen@example.com'
  const browser = await newPerson(email)
  const page = await signInPage(browser)
  const statuses: number[] = []
  for (let turn = 0; turn < 11; turn++)
    statuses.push((await browser.submit(page, 'sign-in', { email, password: `wrong ${turn}` })).status)
  assert.deepEqual([statuses.slice(0, 10), statuses.at(-1)], [Array(10).fill(422), 429])
})

test('two instances give no more guesses than one, also at once', async () => {
  await using other = await openOAuthInstance({ databaseUrl: app.databaseUrl, baseUrl: app.base, env })
  const email = 'shared@example.com'
  await newPerson(email)
  const browser = createBrowser()
  const page = await browser.open(authorizeUrl(app, clientId))
  const action = new URL(/action="([^"]*\/sign-in)"/.exec(page.html)![1]!, app.base)
  const cookie = [...browser.cookies.values()].map(({ value }) => value).join('; ')
  const guessAt = async (base: string, turn: number): Promise<number> => {
    const reply = await fetch(`${base}${action.pathname}`, {
      method: 'POST',
      body: new URLSearchParams({ email, password: `wrong ${turn}` }),
      headers: { cookie, origin: app.base, ...from('198.51.102.1') },
    })
    return reply.status
  }
  const replies: number[] = []
  for (let turn = 0; turn < 15; turn++)
    replies.push(...(await Promise.all([app, other].map(({ address }) => guessAt(address, turn)))))
  assert.equal(replies.filter((status) => status === 422).length, 10, replies.join())
  assert.equal(replies.filter((status) => status === 429).length, 20, replies.join())
  app.time.offsetMs += 15 * 60_000 + 1_000
  const later = await browser.submit(
    await browser.open(authorizeUrl(app, clientId)),
    'sign-in',
    { email, password },
    from('198.51.102.1'),
  )
  app.time.offsetMs = 0
  assert.ok(isConsent(later), alertOf(later))
})

test('a code for an address without an account reveals nothing on the page', async () => {
  await newPerson('someone@example.com')
  const pages: Page[] = []
  for (const email of ['someone@example.com', 'nobody@example.com']) {
    const browser = createBrowser()
    const page = await browser.open(authorizeUrl(app, clientId))
    const form = await browser.open(`${page.url}?view=email-code`)
    pages.push(await browser.submit(form, 'email-code', { email }))
  }
  const [known, unknown] = pages.map(({ status, html }) => [
    status,
    html.replaceAll(/interaction\/[\w-]+/g, '').replaceAll(/(?:someone|nobody)@/g, ''),
  ])
  assert.deepEqual(known, unknown)
  const line = app.emails.findLast((each) => each.startsWith('email '))
  assert.match(line ?? '', /nobody@example\.com: There is no Portico account/)
})

test('a new password ends sessions, connections and tokens, and the former one is wrong', async () => {
  const email = 'reset@example.com'
  const browser = createBrowser()
  const consent = await signUp(app, browser, await browser.open(authorizeUrl(app, clientId)), email)
  const done = await browser.submit(consent, 'allow')
  const tokens = await tokenRequest(app, {
    grant_type: 'authorization_code',
    client_id: clientId,
    code: new URL(done.url).searchParams.get('code')!,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  })
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  assert.equal((await http(`${app.base}/v1/user`, { headers })).status, 200)

  const other = createBrowser()
  const page = await other.open(authorizeUrl(app, clientId))
  const form = await other.open(`${page.url}?view=reset`)
  const sent = await other.submit(form, 'reset', { email, password: 'an entirely new password' })
  // Nothing has changed before the code is entered.
  assert.equal((await http(`${app.base}/v1/user`, { headers })).status, 200)
  assert.ok(isConsent(await other.submit(sent, 'code', { email, code: app.codeFor(email) })))
  assert.equal((await http(`${app.base}/v1/user`, { headers })).status, 401)
  const refresh = { grant_type: 'refresh_token', client_id: clientId, refresh_token: tokens.refresh_token }
  assert.equal((await tokenRequest(app, refresh)).error, 'invalid_grant')
  const former = await browser.open(authorizeUrl(app, clientId))
  assert.match(former.html, /Sign in/)
  const wrong = await browser.submit(former, 'sign-in', { email, password })
  assert.equal(wrong.status, 422)
  const right = await browser.submit(former, 'sign-in', { email, password: 'an entirely new password' })
  assert.ok(isConsent(right))
})
