/** The session of a browser at the authorization server: how long it lasts, and that its end is an end. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createBrowser, createOAuthApp, type OAuthApp, type Page, password } from './oauth-app.ts'
import { authorizeUrl, connectingPerson, register } from './session.ts'

let app: OAuthApp
before(async () => {
  app = await createOAuthApp()
})
after(() => app?.[Symbol.asyncDispose]())

const dayMs = 86_400_000
const isSignIn = ({ html }: Page) => /<h1>Sign in<\/h1>/.test(html)
const errorOf = ({ url }: Page) => new URL(url).searchParams.get('error')

/** What a request that begins now does when it ends: it stores the session of the person. */
async function beginRequest(email: string): Promise<() => Promise<void>> {
  const { rows } = await app.database.pool.query<{ id: string; payload: Record<string, unknown> }>(
    `select r.id, r.payload from oauth_record r join person p on p.id::text = r.account_id
     where r.model = 'Session' and p.email = $1`,
    [email],
  )
  assert.equal(rows.length, 1)
  const { id, payload } = rows[0]!
  return () => app.composed.features.oauth!.sessions.store.upsert(id, payload, 3_600)
}

test('a request that began before a new password does not bring the session back', async () => {
  const { email, browser, connect } = connectingPerson(app)
  const { clientId } = await connect()
  const finish = await beginRequest(email)
  const owner = createBrowser()
  const page = await owner.open(authorizeUrl(app, clientId))
  const form = await owner.open(`${page.url}?view=reset`)
  const next = 'an entirely new password'
  const sent = await owner.submit(form, 'reset', { email, password: next })
  const consent = await owner.submit(sent, 'code', { email, code: app.codeFor(email) })
  assert.match(consent.html, /Attack/, 'the new password enters a session of its own')
  await finish()
  assert.ok(isSignIn(await browser.open(authorizeUrl(app, clientId))))
  assert.equal(errorOf(await browser.open(authorizeUrl(app, clientId, { prompt: 'none' }))), 'login_required')
  const done = await owner.submit(consent, 'allow')
  assert.ok(new URL(done.url).searchParams.get('code'))
})

test('a request that began before a sign-out does not bring the session back', async () => {
  const { email, browser, connect } = connectingPerson(app)
  const { clientId } = await connect()
  const account = await browser.open(`${app.base}/oauth/account`)
  const finish = await beginRequest(email)
  assert.match((await browser.submit(account, 'sign-out')).html, /You are signed out/)
  await finish()
  assert.equal(errorOf(await browser.open(authorizeUrl(app, clientId, { prompt: 'none' }))), 'login_required')
})

test('a sign-in that was not finished before every access ended enters nothing', async () => {
  const person = connectingPerson(app)
  const { clientId } = await person.connect()
  const { client_id: other } = await register(app)
  const thief = createBrowser()
  const opened = await thief.open(authorizeUrl(app, other))
  const action = /action="([^"]*\/sign-in)"/.exec(opened.html)?.[1] ?? ''
  // The browser does not follow the redirect yet.
  const cookie = [...thief.cookies.values()].map(({ value }) => value).join('; ')
  const entered = await fetch(new URL(action, opened.url), {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie, origin: app.base },
    body: new URLSearchParams({ email: person.email, password }),
  })
  assert.equal(entered.status, 303)
  const account = await person.browser.open(`${app.base}/oauth/account`)
  const left = await person.browser.submit(account, 'sign-out-everywhere')
  assert.match(left.html, /every app is disconnected/)
  await thief.open(new URL(entered.headers.get('location')!, app.base).href)
  assert.equal(errorOf(await thief.open(authorizeUrl(app, other, { prompt: 'none' }))), 'login_required')
  const page = await person.browser.open(authorizeUrl(app, clientId))
  assert.ok(isSignIn(page))
  const consent = await person.browser.submit(page, 'sign-in', { email: person.email, password })
  assert.match(consent.html, /Attack/, 'the person signs in again at once')
})

test('a session ends after 30 days, however often it is used', async () => {
  const person = connectingPerson(app)
  const { clientId } = await person.connect()
  const silent = () => person.browser.open(authorizeUrl(app, clientId, { prompt: 'none', scope: 'openid' }))
  try {
    for (const day of [10, 20, 29]) {
      app.time.offsetMs = day * dayMs
      assert.equal(errorOf(await silent()), null, `day ${day}`)
    }
    app.time.offsetMs = 31 * dayMs
    assert.equal(errorOf(await silent()), 'login_required')
  } finally {
    app.time.offsetMs = 0
  }
})
