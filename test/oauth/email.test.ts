/** Codes reach people over a service that fails at times. */
import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, test } from 'node:test'
import { createBrowser, createOAuthApp, type OAuthApp, type Page, password } from './oauth-app.ts'
import { authorizeUrl, register } from './session.ts'

type Delivery = { headers: IncomingHttpHeaders; body: { to: string; subject: string; text: string } }

let app: OAuthApp
let clientId: string
/** What the service answers to the next requests; then it accepts. */
let statuses: number[] = []
let deliveries: Delivery[] = []
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const status = statuses.shift() ?? 202
  if (status === 0) return request.socket.destroy()
  deliveries.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) })
  response.writeHead(status).end()
})
before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/send`
  app = await createOAuthApp({ env: { EMAIL_URL: url, EMAIL_TOKEN: 'secret of the service' } })
  clientId = (await register(app)).client_id
})
after(async () => {
  await app?.[Symbol.asyncDispose]()
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  statuses = []
  deliveries = []
})

const alertOf = ({ html }: Page) => /role="alert">([^<]*)/.exec(html)?.[1] ?? ''
async function signUpForm() {
  const browser = createBrowser()
  const page = await browser.open(authorizeUrl(app, clientId))
  const form = await browser.open(`${page.url}?view=sign-up`)
  return { browser, send: (email: string) => browser.submit(form, 'sign-up', { email, password }) }
}

test('a message is delivered with the token, and its code signs up', async () => {
  const { browser, send } = await signUpForm()
  const sent = await send('one@example.com')
  const [{ headers, body }] = deliveries as [Delivery]
  assert.equal(headers.authorization, 'Bearer secret of the service')
  assert.equal(body.to, 'one@example.com')
  const code = /\d{8}/.exec(body.text)![0]
  assert.match(body.subject, new RegExp(code))
  assert.match((await browser.submit(sent, 'code', { code })).html, /Connect Attack\?/)
  assert.deepEqual(app.emails, [], 'nothing is printed')
})

test('a service that fails is asked again with the same key', async () => {
  statuses = [503, 0]
  const { send } = await signUpForm()
  assert.equal((await send('two@example.com')).status, 200)
  assert.equal(deliveries.length, 2)
  const [first, second] = deliveries.map(({ headers }) => headers['idempotency-key'])
  assert.ok(first)
  assert.equal(first, second)
})

test('a message that cannot be sent is said to be unsent, costs no attempt, and can be asked for again', async () => {
  const { browser, send } = await signUpForm()
  for (let turn = 0; turn < 6; turn++) {
    statuses = [400]
    const failed = await send('three@example.com')
    assert.deepEqual(
      [failed.status, alertOf(failed)],
      [503, 'The message could not be sent. Try again in a moment.'],
    )
  }
  assert.equal(deliveries.length, 6, 'a refusal is final')
  const sent = await send('three@example.com')
  const code = /\d{8}/.exec(deliveries.at(-1)!.body.text)![0]
  assert.match((await browser.submit(sent, 'code', { code })).html, /Connect Attack\?/)
})
