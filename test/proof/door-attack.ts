/** A process that uses one door of a gateway as fast as it is let, with many accounts, until it is killed. */
import { Agent, createServer, type IncomingMessage, request as open } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setPriority } from 'node:os'

export type Door = 'streams' | 'webhooks' | 'sign-in' | 'chat' | 'lists'
export type Attack = { url: string; door: Door; tokens: readonly string[]; clientId: string }

type Sent = { body?: unknown; form?: Record<string, string>; headers?: Record<string, string> }
type Got = { status: number; headers: IncomingMessage['headers']; answer: IncomingMessage }
type Account = {
  address: string
  send(route: string, sent?: Sent): Promise<Got>
  read(route: string, sent?: Sent): Promise<Got>
}

const connectionsOfAccount = 32
const authorizeQuery =
  'redirect_uri=https%3A%2F%2Fapp.example.com%2Fcallback&response_type=code&scope=openid&prompt=login&state=s' +
  '&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256'

let keys = 0

/** From an address of the loopback network of its own. */
function account(url: string, token: string, number: number): Account {
  const address = `127.0.2.${number + 1}`
  const agent = new Agent({ keepAlive: true, maxSockets: connectionsOfAccount })
  const { hostname, port, origin } = new URL(url)
  const send = (route: string, { body, form, headers = {} }: Sent = {}) =>
    new Promise<Got>((resolve, reject) => {
      const [method = 'GET', path] = route.split(' ')
      const text = form ? `${new URLSearchParams(form)}` : body === undefined ? '' : JSON.stringify(body)
      const asked = open({
        hostname,
        port,
        method,
        path,
        agent,
        localAddress: address,
        headers: {
          ...(form ? { origin } : { authorization: `Bearer ${token}` }),
          ...(method !== 'GET' && !form && { 'idempotency-key': `attack-${address}-${++keys}` }),
          ...(text && {
            'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json',
            'content-length': Buffer.byteLength(text),
          }),
          ...headers,
        },
      })
      asked.once('error', reject)
      asked.once('response', (answer) =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, answer }),
      )
      asked.end(text)
    })
  const read = async (route: string, sent?: Sent) => {
    const got = await send(route, sent)
    for await (const _ of got.answer);
    return got
  }
  return { address, send, read }
}

/** A refused request costs a while, as it costs a client that wants to go on. */
const again = async (work: () => Promise<Got | undefined>): Promise<never> => {
  for (;;) {
    const got = await work().catch(() => undefined)
    if (!got || got.status >= 429) await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const times = (count: number, work: () => unknown) => {
  for (let turn = 0; turn < count; turn++) work()
}

const lowerLimit = ({ read }: Account) =>
  read('PUT /v1/policy', { body: { per_day_usd: `${50_000 - (keys % 40_000)}` } })

/** Streams that are never read, others that are opened again and again, and acts that fill them. */
function attackStreams(one: Account): void {
  times(8, () => one.send('GET /v1/notifications/stream').then(({ answer }) => answer.pause()))
  times(2, () =>
    again(async () => {
      const got = await one.send('GET /v1/notifications/stream')
      got.answer.destroy()
      return got
    }),
  )
  times(2, () => again(() => lowerLimit(one)))
}

/** Ten webhooks each, at a receiver that takes nine seconds for an answer. */
async function attackWebhooks(one: Account, receiver: string): Promise<void> {
  for (let turn = 0; turn < 10; turn++)
    await one.read('POST /v1/webhooks', { body: { url: `${receiver}/${one.address}/${turn}` } })
  times(2, () => again(() => lowerLimit(one)))
}

/** Guesses of passwords of people who do not exist. */
async function attackSignIn(one: Account, clientId: string): Promise<void> {
  const got = await one.read(`GET /oauth/authorize?client_id=${clientId}&${authorizeQuery}`)
  const path = `${got.headers.location}`.replace(/^https?:\/\/[^/]*/, '')
  const cookie = (got.headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ')
  const page = await one.send(`GET ${path}`, { headers: { cookie } })
  let html = ''
  for await (const chunk of page.answer) html += chunk
  const hidden = [...html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  const fields = Object.fromEntries(hidden.map(([, name, value]) => [name!, value!]))
  const shown = (page.headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ')
  const headers = { cookie: [cookie, shown].filter(Boolean).join('; ') }
  times(6, () =>
    again(() => {
      const email = `nobody${++keys}@example.com`
      return one.read(`POST ${path}/sign-in`, {
        form: { ...fields, email, password: 'x'.repeat(20) },
        headers,
      })
    }),
  )
}

const hostileTexts = ['1e'.repeat(2_000), '0x'.repeat(2_000), 'price of '.repeat(400), '('.repeat(4_000)]
function attackChat(one: Account): void {
  times(4, () =>
    again(() => {
      const query = hostileTexts[keys % hostileTexts.length]
      return one.read('POST /v1/chat', { body: { query, stream: false } })
    }),
  )
}

const listBody = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
const listHeaders = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' }
const attackLists = ({ read }: Account) =>
  times(4, () => again(() => read('POST /mcp', { body: listBody, headers: listHeaders })))

async function attack({ url, door, tokens, clientId }: Attack): Promise<void> {
  const accounts = tokens.map((token, number) => account(url, token, number))
  const slow = createServer((_request, response) => setTimeout(() => response.end('late'), 9_000))
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
  const receiver = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`
  for (const one of accounts) {
    if (door === 'streams') attackStreams(one)
    if (door === 'webhooks') await attackWebhooks(one, receiver)
    if (door === 'sign-in') await attackSignIn(one, clientId)
    if (door === 'chat') attackChat(one)
    if (door === 'lists') attackLists(one)
  }
  process.send?.('under way')
}

// It competes with the gateway for the processors of this machine, as clients elsewhere do not.
setPriority(19)
process.once('message', (message) => void attack(message as Attack))
