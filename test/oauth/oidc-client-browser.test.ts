/**
 * oidc-client-ts, unmodified, in a page of an app: it signs a person in, renews, revokes, and signs the browser out of
 * the gateway as well.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Browser, chromium, type Page } from 'playwright-core'
import { http } from '../harness/gateway.ts'
import { createOAuthApp, type OAuthApp, password } from './oauth-app.ts'
import { register } from './session.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'
const library = readFileSync(
  fileURLToPath(
    new URL('../../node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js', import.meta.url),
  ),
)

let app: OAuthApp
let browser: Browser
/** The page of an app, which a server of its own serves: a browser lets no other page reach this machine. */
let html = ''
let origin: string
const server = createServer(({ url }, reply) => {
  const isLibrary = url === '/oidc.js'
  const type = isLibrary ? 'text/javascript' : 'text/html'
  reply.writeHead(200, { 'content-type': type }).end(isLibrary ? library : html)
})
before(async () => {
  if (skip) return
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  app = await createOAuthApp({ env: { CORS_ORIGINS: origin } })
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
})
after(async () => {
  await browser?.close()
  server.closeAllConnections()
  server.close()
  await app?.[Symbol.asyncDispose]()
})

/** `settings` are those of its `UserManager`. */
const appPage = (settings: object): string =>
  `<!doctype html><title>App</title><script src="/oidc.js"></script><script>
const users = new oidc.UserManager({ ...${JSON.stringify(settings)}, userStore: new oidc.WebStorageStateStore({ store: sessionStorage }) })
</script>`

const signUpAndConsent = async (page: Page, email: string): Promise<void> => {
  await page.getByRole('link', { name: 'Create an account' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Send me a code' }).click()
  await page.getByLabel('Code').waitFor()
  await page.getByLabel('Code').fill(app.codeFor(email))
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Connect Single page?' }).waitFor()
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.waitForURL(`${origin}/callback?**`)
}
type User = { access_token: string; refresh_token: string }
const statusOf = async (token: string): Promise<number> =>
  (await http(`${app.base}/v1/user`, { headers: { authorization: `Bearer ${token}` } })).status

for (const revokes of [true, false])
  test(`oidc-client-ts signs in, renews in silence and signs out, ${revokes ? 'with' : 'without'} the revocation of its tokens`, {
    skip,
  }, async () => {
    const { client_id, status } = await register(app, {
      client_name: 'Single page',
      redirect_uris: [`${origin}/callback`],
      post_logout_redirect_uris: [`${origin}/bye`],
    })
    assert.equal(status, 201)
    await using context = await browser.newContext({ viewport: { width: 390, height: 844 } })
    const page = await context.newPage()
    html = appPage({
      authority: app.base,
      client_id,
      redirect_uri: `${origin}/callback`,
      post_logout_redirect_uri: `${origin}/bye`,
      scope: 'openid email offline_access',
      loadUserInfo: true,
      revokeTokensOnSignout: revokes,
    })
    await page.goto(origin)
    await page.evaluate('void users.signinRedirect()')
    const email = `spa-${revokes}@example.com`
    await signUpAndConsent(page, email)
    const user = await page.evaluate<User & { profile: { email: string } }>(
      'users.signinRedirectCallback().then(({ access_token, refresh_token, profile }) => ({ access_token, refresh_token, profile }))',
    )
    assert.equal(user.profile.email, email)
    assert.equal(await statusOf(user.access_token), 200)
    const renewed = await page.evaluate<User>(
      'users.signinSilent().then(({ access_token, refresh_token }) => ({ access_token, refresh_token }))',
    )
    assert.notEqual(renewed.refresh_token, user.refresh_token)
    assert.equal(await statusOf(renewed.access_token), 200)

    await page.evaluate('void users.signoutRedirect()')
    await page.getByRole('heading', { name: 'Sign out of this browser?' }).waitFor()
    assert.match((await page.locator('main').textContent()) ?? '', /Single page asks this\./)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.waitForURL(`${origin}/bye**`)
    await page.evaluate('users.signoutRedirectCallback()')
    // An app that keeps its tokens keeps its connection, which the account page ends.
    assert.equal(await statusOf(renewed.access_token), revokes ? 401 : 200)
    await page.goto(`${app.base}/oauth/account`)
    await page.getByRole('heading', { name: 'Sign in', exact: true }).waitFor()
  })

test('the page for signing out keeps who stays, sends nobody to an address that is not registered, and stores nothing for strangers', {
  skip,
}, async () => {
  const { client_id } = await register(app, {
    client_name: 'Other',
    post_logout_redirect_uris: ['https://app.example.com/bye'],
  })
  const url = (fields: Record<string, string>) =>
    `${app.base}/oauth/sign-out?${new URLSearchParams({ client_id, ...fields })}`
  const rowsOf = async () =>
    (await app.database.pool.query('select count(*)::int as count from oauth_record')).rows[0].count as number
  const before = await rowsOf()
  const stray = await fetch(url({ post_logout_redirect_uri: 'https://elsewhere.example.com/' }))
  assert.equal(stray.status, 400)
  assert.match(await stray.text(), /did not register the address/)
  const answer = await fetch(url({ post_logout_redirect_uri: 'https://app.example.com/bye', state: 's' }), {
    redirect: 'manual',
  })
  assert.deepEqual(
    [answer.status, answer.headers.get('location')],
    [303, 'https://app.example.com/bye?state=s'],
  )
  assert.match(await (await fetch(url({}))).text(), /You are signed out/)
  assert.equal(await rowsOf(), before)
  const refused = await register(app, { post_logout_redirect_uris: ['http://elsewhere.example.com/'] })
  assert.equal(refused.status, 400)
  const hint = `a.${Buffer.from('{"aud":"another"}').toString('base64url')}.c`
  assert.equal((await fetch(url({ id_token_hint: hint }))).status, 400)
})
