/** The page for approvals by its requests: it asks for a fresh sign-in, and calls the operations as every client does. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, test } from 'node:test'
import { group, implement, task, taskOf } from '#kernel/contract/operation.ts'
import { TaskResponse } from '#kernel/contract/task-response.ts'
import { ApprovalRequired, actionTerms } from '#kernel/task/approval.ts'
import { http } from '../harness/gateway.ts'
import {
  type Browser,
  createBrowser,
  createOAuthApp,
  type OAuthApp,
  type Page,
  password,
} from './oauth-app.ts'
import { authorizeUrl, connectingPerson, signUpUser } from './session.ts'

const symbol = '<b>USDC</b>\u202e'
const contract = group('test', 'Operations of a test.', {
  run: task('POST /v1/test/run', {
    summary: 'Asks for an approval, also for a person',
    access: 'trade',
    waitSeconds: 60,
    output: TaskResponse,
  }),
})
const run = taskOf({
  async admit(_input: unknown, { userId }) {
    const action = {
      userId,
      operation: 'test_run',
      chainId: '1',
      tokens: [],
      recipients: [],
      usdMicros: 1_234_567_890_000n,
      exit: false,
      terms: actionTerms(`Send 5 ${symbol} to 0xfriend`, {
        token: symbol,
        amount: '5',
        recipient: '0xfriend',
      }),
    }
    throw new ApprovalRequired(action, 'approval_above_usd', 'agents act above 1 USD only with an approval')
  },
  steps: { only: async () => ({ end: 'completed' as const, outcome: 'executed' as const, result: {} }) },
})

let app: OAuthApp
before(async () => {
  app = await createOAuthApp({ overrides: { addOperations: () => implement(contract, { run }) } })
})
after(() => app?.[Symbol.asyncDispose]())

const page = () => `${app.base}/oauth/approvals`
type Listed = { approvals: { approval_id: string; task_id: string }[] }

async function visitor() {
  const person = connectingPerson(app)
  const { authorization, clientId } = await person.connect({ allows: ['trade', 'manage'] })
  await signUpUser(app, authorization)
  const headers = { authorization }
  const browser = createBrowser()
  const signIn = async (shown: Page) => browser.submit(shown, 'sign-in', { email: person.email, password })
  return {
    email: person.email,
    clientId,
    browser,
    signIn,
    ask: async () => {
      const { status, body } = await http<{ task_id: string }>(`${app.base}/v1/test/run`, {
        method: 'POST',
        headers,
        body: {},
      })
      assert.equal(status, 200, JSON.stringify(body))
      return body.task_id
    },
    waiting: async () => (await http<Listed>(`${app.base}/v1/approvals`, { headers })).body.approvals,
    decision: async (taskId: string) =>
      (await app.database.pool.query('select decision from approval where task_id = $1', [taskId])).rows[0]
        .decision as string | null,
  }
}
const fieldsOf = ({ html }: Page) =>
  Object.fromEntries(
    [...html.matchAll(/name="(csrf|intent_sha256)" value="([0-9a-f]*)"/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  )

test('a person signs in on the page, without a consent, and every text of others is plain there', async () => {
  const { browser, signIn, ask, decision } = await visitor()
  const taskId = await ask()
  const asked = await browser.open(page())
  assert.match(asked.html, /to continue to <strong>Approvals<\/strong>/)
  const shown = await signIn(asked)
  assert.equal(shown.url, page())
  assert.match(shown.html, /1 request waits for you/)
  assert.match(shown.html, /Send 5 &lt;b&gt;USDC&lt;\/b&gt; to 0xfriend/)
  assert.ok(!shown.html.includes('\u202e'), 'no mark turns the text around')
  assert.match(shown.html, /1,234,567\.89 USD/)
  assert.match(shown.headers.get('content-security-policy') ?? '', /default-src 'none'/)
  assert.equal(shown.headers.get('cache-control'), 'no-store')
  const done = await browser.submit(shown, 'approve', fieldsOf(shown))
  assert.match(done.html, /Approved/)
  assert.equal(await decision(taskId), 'approved')
  const again = await browser.submit(shown, 'approve', fieldsOf(shown))
  assert.match(again.html, /Approved/, 'a second click is the same decision')
  const late = await browser.submit(shown, 'decline', fieldsOf(shown))
  assert.match(late.html, /Nothing was changed/)
})

/** Presses with the headers of a window, which `fetch` replaces by its own; the answer is the status. */
async function press({ cookies }: Browser, shown: Page, headers: Record<string, string>) {
  const action = /action="([^"]*\/approve)"/.exec(shown.html)![1]!
  const cookie = [...cookies.values()].filter(({ path }) => action.startsWith(path)).map(({ value }) => value)
  const sent = request(app.base + action, {
    method: 'POST',
    headers: {
      cookie: cookie.join('; '),
      origin: app.base,
      'content-type': 'application/x-www-form-urlencoded',
      'sec-fetch-dest': 'document',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-site': 'same-origin',
      ...headers,
    },
  })
  sent.end(new URLSearchParams(fieldsOf(shown)).toString())
  const [reply] = (await once(sent, 'response')) as [IncomingMessage]
  reply.resume()
  return reply.statusCode
}

test('a person approves with Safari, which never says who has pressed, and a script of a page in Chromium does not', async () => {
  const { browser, signIn, ask, decision } = await visitor()
  const taskId = await ask()
  const shown = await signIn(await browser.open(page()))
  assert.equal(await press(browser, shown, { 'sec-ch-ua': '"Chromium";v="140"' }), 403)
  assert.equal(await decision(taskId), null)
  assert.equal(await press(browser, shown, { 'user-agent': 'Version/18.5 Mobile/15E148 Safari/604.1' }), 303)
  assert.equal(await decision(taskId), 'approved')
})

test('a cookie that a script has set proves no form, and hides no other one', async () => {
  const { browser, signIn, ask, decision } = await visitor()
  const taskId = await ask()
  const shown = await signIn(await browser.open(page()))
  const { csrf, ...fields } = fieldsOf(shown)
  const path = '/oauth/approvals'
  browser.cookies.set('planted', { value: 'portico_form=planted', path })
  const planted = createHash('sha256').update('form planted').digest('hex')
  assert.notEqual(csrf, planted)
  assert.equal((await browser.submit(shown, 'approve', { ...fields, csrf: planted })).status, 403)
  assert.equal(fieldsOf(await browser.open(page())).csrf, csrf)
  browser.cookies.set('planted', { value: 'portico_approvals=planted', path })
  assert.equal((await browser.submit(shown, 'approve', fieldsOf(shown))).status, 400)
  assert.equal(await decision(taskId), null, 'a token that comes twice is refused')
  browser.cookies.delete('planted')
  await browser.submit(await browser.open(page()), 'approve')
  assert.equal(await decision(taskId), 'approved')
})

test('an old sign-in decides nothing: the page asks for the password again', async () => {
  const { browser, signIn, ask, waiting, decision } = await visitor()
  const taskId = await ask()
  const shown = await signIn(await browser.open(page()))
  app.time.offsetMs += 310_000
  try {
    const stale = await browser.submit(shown, 'approve', fieldsOf(shown))
    assert.match(stale.html, /<h1>Sign in<\/h1>/)
    assert.equal(await decision(taskId), null)
    const fresh = await signIn(stale)
    assert.match(fresh.html, /1 request waits for you/)
    const declined = await browser.submit(fresh, 'decline', fieldsOf(fresh))
    assert.match(declined.html, /Declined/)
    assert.equal(await decision(taskId), 'declined')
    assert.deepEqual(await waiting(), [])
  } finally {
    app.time.offsetMs = 0
  }
})

test('a person without a sign-in, another person and a page of another site decide nothing', async () => {
  const { browser, signIn, ask, waiting, decision } = await visitor()
  const taskId = await ask()
  const [approval] = await waiting()
  const shown = await signIn(await browser.open(page()))
  const fields = fieldsOf(shown)
  const foreign = await browser.submit(shown, 'approve', fields, { origin: 'https://evil.example' })
  assert.equal(foreign.status, 403)
  assert.equal((await browser.submit(shown, 'approve', { ...fields, csrf: '0'.repeat(64) })).status, 403)
  assert.equal((await browser.submit(shown, 'approve', { intent_sha256: '' })).status, 422)

  const other = await visitor()
  await other.ask()
  const otherPage = await other.signIn(await other.browser.open(page()))
  assert.ok(!otherPage.html.includes(approval!.approval_id))
  const action = `${page()}/${approval!.approval_id}/approve`
  const stolen = await other.browser.open(action, {
    method: 'POST',
    body: new URLSearchParams({ ...fieldsOf(otherPage), intent_sha256: fields.intent_sha256! }),
    headers: { origin: app.base },
  })
  assert.match(stolen.html, /Nothing was changed/)

  const left = await browser.submit(shown, 'sign-out')
  assert.match(left.html, /You are signed out/)
  assert.equal((await browser.submit(shown, 'approve', fields)).status, 403)
  const again = await browser.open(page())
  assert.match(again.html, /type="password"/, 'the session of the browser has ended')
  assert.equal((await browser.open(`${page()}/return?code=x&state=y`)).status, 400)
  assert.equal(await decision(taskId), null)
})

test('who signs in to the browser of another person neither sees nor decides the requests of that person', async () => {
  const [one, two] = [await visitor(), await visitor()]
  const taskId = await one.ask()
  const shown = await one.signIn(await one.browser.open(page()))
  assert.match(shown.html, /1 request waits/)
  const asked = await one.browser.open(authorizeUrl(app, two.clientId, { prompt: 'login consent' }))
  await one.browser.submit(asked, 'sign-in', { email: two.email, password })
  const late = await one.browser.submit(shown, 'approve', fieldsOf(shown))
  assert.equal(await one.decision(taskId), null)
  assert.ok(!late.html.includes(one.email))
  const asksAgain = await one.browser.open(page())
  assert.match(asksAgain.html, /<h1>Sign in<\/h1>/, 'the sign-in was for another app')
  const other = await one.browser.submit(asksAgain, 'sign-in', { email: two.email, password })
  assert.match(other.html, /Nothing waits for you/)
  assert.ok(other.html.includes(two.email))
  await one.browser.submit(other, 'sign-out')
  const { value } = one.browser.cookies.get('/oauth/approvals portico_approvals')!
  assert.equal(value, 'portico_approvals=')
})
