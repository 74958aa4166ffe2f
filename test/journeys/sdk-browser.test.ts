/** The packed package in a browser, as unbundled modules, on a page of another origin than the gateway. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Browser, type BrowserContext, chromium, type Page, type Request } from 'playwright-core'
import { connectionProxy } from '../harness/connection-proxy.ts'
import { dataFolder, eventually, freshGateway } from '../harness/gateway.ts'
import { packPackages } from '../harness/packed-package.ts'
import { password } from '../oauth/oauth-app.ts'
import type { SdkPage } from './sdk-page.ts'
import { servePages } from './sdk-page-server.ts'
import { codeIn } from './signed-in.ts'

const executablePath = '/usr/bin/chromium'
const skip = existsSync(executablePath) ? false : 'there is no chromium on this machine'

const folder = dataFolder()
const parts = new AsyncDisposableStack()
let gateway: Awaited<ReturnType<typeof freshGateway>>
let browser: Browser
let origin: string
let foreignOrigin: string

before(async () => {
  if (skip) return
  const { sdk } = await packPackages(join(folder.path, 'release'))
  const pages = parts.use(await servePages(sdk, folder.path))
  const foreign = parts.use(await servePages(sdk, folder.path))
  origin = pages.origin
  foreignOrigin = foreign.origin
  gateway = parts.use(await freshGateway({ CORS_ORIGINS: origin }))
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  parts.defer(() => browser.close())
})
after(async () => {
  await parts.disposeAsync()
  folder[Symbol.dispose]()
})

type Called<Name extends keyof SdkPage> = Awaited<ReturnType<SdkPage[Name]>>
/** Calls a function of the script of the page. */
const inPage = <Name extends keyof SdkPage>(page: Page, name: Name, ...given: Parameters<SdkPage[Name]>) =>
  page.evaluate<Called<Name>>(`app.${name}(...${JSON.stringify(given)})`)

/** A page, and what it has sent. */
async function openPage(context: BrowserContext, url: string) {
  const page = await context.newPage()
  const sent: Request[] = []
  page.on('request', (request) => sent.push(request))
  await page.goto(url)
  await page.waitForFunction('globalThis.app !== undefined')
  return { page, sent }
}

test('a page of another origin signs in with its key pair, reads, deposits once, and follows events', {
  skip,
  timeout: 180_000,
}, async () => {
  await using context = await browser.newContext()
  await using network = await connectionProxy(gateway.url)
  const { page, sent } = await openPage(context, origin)
  const { agent, again, shown, hasRequestId } = await inPage(page, 'register', network.url)
  assert.deepEqual(again, agent, 'the pair is found again')
  assert.deepEqual([shown, hasRequestId], [agent.agentId, true])
  assert.equal(await inPage(page, 'firstFunds'), 'executed')

  await inPage(page, 'follow')
  const first = await inPage(page, 'deposit', '5', 'page-1')
  const { task_id, ...answer } = first
  assert.deepEqual(answer, {
    status: 'completed',
    outcome: 'executed',
    replayed: false,
    idempotency_key: 'page-1',
    last: 'completed',
  })
  const repeated = await inPage(page, 'deposit', '5', 'page-1')
  assert.deepEqual(repeated, { ...first, replayed: true })
  const eventsMin = (count: number) =>
    eventually(
      async () => {
        const { ids, end } = await inPage(page, 'seen')
        assert.equal(end, undefined)
        return ids.length >= count ? ids : undefined
      },
      `${count} events`,
      30_000,
    )
  const before = (await eventsMin(3)).length
  network.cut()
  assert.deepEqual(await inPage(page, 'depositWithLostAnswer', agent, network.url), {
    status: 'completed',
    outcome: 'executed',
    replayed: true,
    tries: [null, '1'],
  })
  const ids = await eventsMin(before + 2)
  assert.deepEqual(
    ids,
    ids.map((_, index) => String(index + 1)),
    'no gap and no repetition',
  )
  await inPage(page, 'leave')
  const end = await eventually(async () => (await inPage(page, 'seen')).end, 'the stream ends')
  assert.equal(end, 'Error: left')
  assert.deepEqual(await inPage(page, 'positions'), ['2', '5'])

  const origins = new Set(sent.map((request) => new URL(request.url()).origin))
  assert.deepEqual([...origins].sort(), [network.url, origin].sort())
  const resumed = sent
    .filter((request) => request.url().includes('/v1/notifications/stream'))
    .map((request) => request.headers()['last-event-id'])
  assert.equal(resumed[0], undefined)
  assert.ok(Number(resumed.at(-1)) >= before, `resumed after ${resumed.at(-1)}`)
})

test('a page gets errors with their class, code and fields, and none of a gateway that does not allow it', {
  skip,
}, async () => {
  await using context = await browser.newContext()
  const { page } = await openPage(context, origin)
  await inPage(page, 'register', gateway.url)
  await inPage(page, 'firstFunds')
  const common = { request_id: true, fields: [] }
  assert.deepEqual(await inPage(page, 'failures'), [
    { ...common, class: 'ValidationError', status: 422, code: 'validation', fields: ['body.amount_usdc'] },
    { ...common, class: 'ConflictError', status: 409, code: 'insufficient_balance' },
    { ...common, class: 'NotFoundError', status: 404, code: 'not_found' },
  ])
  const denied = await inPage(page, 'failureOfShow', gateway.url, 'agt_none')
  assert.deepEqual([denied?.class, denied?.code], ['AuthenticationError', 'invalid_token'])

  const { page: foreign } = await openPage(context, foreignOrigin)
  const unread = await inPage(foreign, 'failureOfShow', gateway.url, 'agt_none')
  assert.deepEqual([unread?.class, unread?.status, unread?.code], ['ConnectionError', 0, 'connection_failed'])
})

async function signUpAndConsent(page: Page, email: string): Promise<void> {
  await page.getByRole('link', { name: 'Create an account' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Send me a code' }).click()
  await page.getByLabel('Code').fill(await eventually(async () => codeIn(gateway.lines, email), 'the code'))
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Connect Page?' }).waitFor()
  await page.locator('input[name=earn]').check()
  await page.getByRole('button', { name: 'Connect', exact: true }).click()
  await page.waitForURL(`${origin}/callback?**`)
  await page.waitForFunction('globalThis.app !== undefined')
}

/** A store whose tabs read an older state fails within a few. */
const renewals = 10

test('a person signs in on a page, which acts, renews its token once for all its tabs, and signs out', {
  skip,
  timeout: 180_000,
}, async () => {
  await using context = await browser.newContext()
  const { page, sent } = await openPage(context, origin)
  await page.goto(await inPage(page, 'beginSignIn', gateway.url, 'openid email offline_access earn'))
  await signUpAndConsent(page, 'page@example.com')
  const agentId = await inPage(page, 'completeSignIn', gateway.url)
  assert.equal(await inPage(page, 'firstFunds'), 'executed')
  const { status, outcome } = await inPage(page, 'deposit', '3', 'person-1')
  assert.deepEqual([status, outcome], ['completed', 'executed'])
  assert.deepEqual(await inPage(page, 'positions'), ['3'])

  const { page: tab, sent: sentByTab } = await openPage(context, origin)
  const exchanges = () =>
    [...sent, ...sentByTab].filter((request) => request.url() === `${gateway.url}/oauth/token`).length
  assert.equal(exchanges(), 1)
  const first = await inPage(page, 'tokens')
  for (let round = 1; round <= renewals; round++) {
    await inPage(page, 'endTokens')
    const shown = await Promise.all([page, tab, page].map((each) => inPage(each, 'showMe', gateway.url)))
    assert.deepEqual(shown, [agentId, agentId, agentId])
    assert.equal(exchanges(), 1 + round)
  }
  const renewed = await inPage(tab, 'tokens')
  assert.notEqual(renewed?.accessToken, first?.accessToken)
  assert.notEqual(renewed?.refreshToken, first?.refreshToken)

  await inPage(tab, 'signOut')
  assert.equal((await inPage(page, 'failureOfSession', gateway.url))?.code, 'signed_out')
  await inPage(page, 'writeTokens', renewed!)
  const ended = await inPage(page, 'failureOfSession', gateway.url)
  assert.deepEqual([ended?.class, ended?.code], ['AuthenticationError', 'signed_out'], 'it was revoked')
  assert.equal(await inPage(page, 'tokens'), undefined)
})
