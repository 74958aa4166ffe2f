/** What an attacker sends instead of an honest passkey, each against the running server. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { query } from '#store/query.ts'
import { createBrowser, createOAuthApp, type OAuthApp, type Page, signUp } from './oauth-app.ts'
import {
  alertOf,
  openSignIn,
  optionsFor,
  type PasskeyPerson,
  proveEmail,
  requestOptions,
  signUpWithPasskey,
} from './passkey-steps.ts'
import { createSoftwareAuthenticator, type Deviation } from './software-authenticator.ts'

let app: OAuthApp
let device: ReturnType<typeof createSoftwareAuthenticator>
let person: PasskeyPerson
before(async () => {
  app = await createOAuthApp({ hostname: 'localhost' })
  device = createSoftwareAuthenticator(app.base)
  person = await signUpWithPasskey(app, 'victim@example.com')
})
after(() => app?.[Symbol.asyncDispose]())

const assertRefused = (page: Page, what: string) => {
  assert.equal(page.status, 422, `${what}: ${page.status} ${page.url}`)
  assert.match(page.html, /<h1>Sign in<\/h1>/, what)
}
const assertSignedIn = (page: Page) => assert.match(page.html, /Connect Attack\?/, alertOf(page))

async function signInPage() {
  const browser = createBrowser()
  const { page } = await openSignIn(app, browser)
  return { browser, page, options: await optionsFor(browser, page, 'passkey-options') }
}

const deviations: Record<string, Deviation> = {
  'another origin': { origin: 'https://attacker.example' },
  'another port of this host': { origin: 'http://localhost:1' },
  'another relying party': { rpId: 'attacker.example' },
  'a challenge of its own': { challenge: Buffer.alloc(32).toString('base64url') },
  'a user who was not verified': { isVerified: false },
  'a frame of another site': { isFramed: true },
  'the type of a creation': { type: 'webauthn.create' },
  'the handle of somebody else': { userHandle: Buffer.alloc(16).toString('base64url') },
  'no handle': { userHandle: '' },
}
for (const [what, deviation] of Object.entries(deviations))
  test(`a sign-in with ${what} is refused, and the honest one after it is not`, async () => {
    const { browser, page, options } = await signInPage()
    const forged = device.sign(person.passkey, options, deviation)
    assertRefused(await browser.submit(page, 'passkey', { credential: forged }), what)
    const again = await optionsFor(browser, page, 'passkey-options')
    assertSignedIn(await browser.submit(page, 'passkey', { credential: device.sign(person.passkey, again) }))
  })

test('a signature counts once, in the browser that asked for it, for five minutes', async () => {
  const { browser, page, options } = await signInPage()
  const credential = device.sign(person.passkey, options)
  const thief = await signInPage()
  assertRefused(await thief.browser.submit(thief.page, 'passkey', { credential }), 'stolen')
  // The challenge of the thief is used up by the attempt.
  const own = device.sign(person.passkey, thief.options)
  assertRefused(await thief.browser.submit(thief.page, 'passkey', { credential: own }), 'second attempt')
  const foreign = await thief.browser.submit(page, 'passkey', { credential })
  assert.equal(foreign.status, 410)
  const both = await Promise.all([1, 2].map(() => browser.submit(page, 'passkey', { credential })))
  assert.equal(both.filter(({ html }) => /Connect Attack\?/.test(html)).length, 1)

  const late = await signInPage()
  app.time.offsetMs = 301_000
  const expired = device.sign(person.passkey, late.options)
  assertRefused(await late.browser.submit(late.page, 'passkey', { credential: expired }), 'late')
  app.time.offsetMs = 0
})

test('neither the challenge nor the signature can be taken from the database', async () => {
  const { options } = await signInPage()
  const rows = await query<{ payload: object }>(
    app.database.pool,
    `select payload from oauth_record where model = 'PasskeyChallenge'`,
  )
  assert.ok(rows.length > 0)
  assert.ok(!JSON.stringify(rows).includes(options.challenge))
})

test('another key under a known id, and another account’s handle, sign nobody in', async () => {
  const attacker = await signUpWithPasskey(app, 'attacker@example.com')
  for (const forged of [
    { ...attacker.passkey, id: person.passkey.id },
    { ...attacker.passkey, id: person.passkey.id, userHandle: person.passkey.userHandle },
    { ...attacker.passkey, userHandle: person.passkey.userHandle },
    { ...attacker.passkey, id: Buffer.alloc(32).toString('base64url') },
  ]) {
    const { browser, page, options } = await signInPage()
    const sent = await browser.submit(page, 'passkey', { credential: device.sign(forged, options) })
    assertRefused(sent, 'forged')
    // One sentence for all of them: it says nothing about accounts.
    assert.match(alertOf(sent) ?? '', /did not sign you in/)
  }
})

test('a counter that does not advance is refused: the passkey may have been copied', async () => {
  const browser = createBrowser()
  const { page } = await openSignIn(app, browser)
  const proven = await proveEmail(app, browser, page, 'counts@example.com')
  const created = await optionsFor(browser, proven, 'passkey-create-options')
  const { passkey, credential } = device.create(created, { signCount: 5 })
  await browser.submit(proven, 'passkey-create', { credential })
  const attempt = async (signCount: number) => {
    const { browser: other, page: form, options } = await signInPage()
    const answer = await other.submit(form, 'passkey', {
      credential: device.sign(passkey, options, { signCount }),
    })
    return answer.status
  }
  assert.deepEqual(
    [await attempt(5), await attempt(6), await attempt(6), await attempt(0)],
    [422, 200, 422, 422],
  )
  assert.equal(await attempt(7), 200)
})

test('hostile bodies are refused as a wrong passkey', async () => {
  const bodies = [
    '',
    'null',
    '[]',
    '{"id":1}',
    '{"id":"AAAA","response":null}',
    JSON.stringify({ id: person.passkey.id, rawId: person.passkey.id, type: 'public-key', response: {} }),
    JSON.stringify({
      id: person.passkey.id,
      rawId: person.passkey.id,
      type: 'public-key',
      response: { clientDataJSON: 'bnVsbA', userHandle: person.passkey.userHandle, authenticatorData: '%%' },
    }),
    `{"id":"${'A'.repeat(2_000)}"}`,
    'x'.repeat(7_000),
  ]
  for (const credential of bodies) {
    const { browser, page } = await signInPage()
    assertRefused(await browser.submit(page, 'passkey', { credential }), credential.slice(0, 40))
  }
})

const forgedCreations: Record<string, Deviation> = {
  'another origin': { origin: 'https://attacker.example' },
  'another relying party': { rpId: 'attacker.example' },
  'a challenge of its own': { challenge: Buffer.alloc(32).toString('base64url') },
  'a user who was not verified': { isVerified: false },
  'a frame of another site': { isFramed: true },
  'the type of a sign-in': { type: 'webauthn.get' },
  'a statement with certificates': {
    statement: {
      fmt: 'packed',
      attStmt: new Map<string, number | Buffer | Map<never, never>>([
        ['alg', -7],
        ['sig', Buffer.alloc(70)],
        ['x5c', new Map<never, never>()],
      ]),
    },
  },
}
test('a passkey is not created from a forged answer, and an account without one does not exist', async () => {
  for (const [what, deviation] of Object.entries(forgedCreations)) {
    const email = `forged${Object.keys(forgedCreations).indexOf(what)}@example.com`
    const browser = createBrowser()
    const { page } = await openSignIn(app, browser)
    const proven = await proveEmail(app, browser, page, email)
    const options = await optionsFor(browser, proven, 'passkey-create-options')
    const answer = await browser.submit(proven, 'passkey-create', device.answer(options, deviation))
    assert.equal(answer.status, 422, what)
    assert.match(answer.html, /Create your passkey/, what)
    const rows = await query(app.database.pool, 'select id from person where email = $1', [email])
    assert.deepEqual(rows, [], what)
  }
})

test('nobody gets a passkey for an address without its code', async () => {
  const browser = createBrowser()
  const { page } = await openSignIn(app, browser)
  const form = await browser.open(`${page.url}?view=passkey-sign-up`)
  const sent = await browser.submit(form, 'passkey-sign-up', { email: 'victim@example.com' })
  assert.match(sent.html, /Check your email/)
  // The same page as for an address without an account.
  const unknown = await browser.submit(form, 'passkey-sign-up', { email: 'nobody@example.com' })
  const shape = (html: string) => html.replaceAll(/victim|nobody/g, 'x')
  assert.equal(shape(sent.html), shape(unknown.html))
  const url = page.url
  const options = await browser.open(`${url}/passkey-create-options`, {
    method: 'POST',
    body: new URLSearchParams(),
  })
  assert.equal(options.status, 409)
  const ask = await optionsFor(browser, page, 'passkey-options')
  // The challenge of a sign-in makes no passkey either.
  const { credential } = device.answer({
    ...ask,
    rp: { id: 'localhost' },
    user: { id: person.passkey.userHandle },
  })
  const forced = await browser.open(`${url}/passkey-create`, {
    method: 'POST',
    body: new URLSearchParams({ credential }),
  })
  assert.equal(forced.status, 422)
  const rows = await query(
    app.database.pool,
    `select count(*)::int as count from passkey k join person p on p.id = k.person_id where p.email = 'victim@example.com'`,
  )
  assert.deepEqual(rows, [{ count: 1 }])
})

test('a challenge for a new passkey signs nobody in', async () => {
  const browser = createBrowser()
  const { page } = await openSignIn(app, browser)
  const proven = await proveEmail(app, browser, page, 'purpose@example.com')
  const { challenge } = await optionsFor(browser, proven, 'passkey-create-options')
  const credential = device.sign(person.passkey, { challenge, rpId: 'localhost' })
  const body = new URLSearchParams({ credential })
  assertRefused(await browser.open(`${page.url}/passkey`, { method: 'POST', body }), 'purpose')
})

test('a credential of one account is not added to another', async () => {
  const browser = createBrowser()
  const { page } = await openSignIn(app, browser)
  await signUp(app, browser, page, 'second@example.com')
  const account = await browser.open(`${app.base}/oauth/account`)
  const options = await optionsFor(browser, account, 'passkey-add-options')
  const taken = await browser.submit(account, 'passkey-add', {
    ...device.answer(options, { id: person.passkey.id }),
    name: 'theirs',
  })
  assert.deepEqual([taken.status, /in use already/.test(taken.html)], [422, true])
  const { browser: other, page: form, options: ask } = await signInPage()
  assertSignedIn(await other.submit(form, 'passkey', { credential: device.sign(person.passkey, ask) }))
})

test('a challenge of one session adds nothing in another one', async () => {
  const [one, two] = [
    await signUpWithPasskey(app, 'one@example.com'),
    await signUpWithPasskey(app, 'two@example.com'),
  ]
  const [mine, theirs] = [
    await one.browser.open(`${app.base}/oauth/account`),
    await two.browser.open(`${app.base}/oauth/account`),
  ]
  const options = await optionsFor(one.browser, mine, 'passkey-add-options')
  const { credential } = device.answer(options)
  assert.equal((await two.browser.submit(theirs, 'passkey-add', { credential })).status, 422)
  await optionsFor(two.browser, theirs, 'passkey-add-options')
  assert.equal((await two.browser.submit(theirs, 'passkey-add', { credential })).status, 422)
  const foreign = await one.browser.submit(
    mine,
    'passkey-add',
    { credential },
    { origin: 'https://attacker.example' },
  )
  assert.equal(foreign.status, 403)
  assert.equal((await one.browser.submit(mine, 'passkey-add', { credential })).status, 200)
})

test('guesses with passkeys are limited by address, like those with passwords', async () => {
  await using limited = await createOAuthApp({ hostname: 'localhost' })
  const browser = createBrowser()
  const { page } = await openSignIn(limited, browser)
  const statuses = new Set<number>()
  for (let turn = 0; turn < 60; turn += 1)
    statuses.add((await browser.submit(page, 'passkey', { credential: '{}' })).status)
  assert.deepEqual([...statuses], [422])
  assert.equal((await browser.submit(page, 'passkey', { credential: '{}' })).status, 429)
  assert.equal((await requestOptions(browser, page, 'passkey-options')).status, 200)
})
