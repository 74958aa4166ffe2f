/**
 * One account, then 24, use all that a door gives them: each its ten unread streams, its ten slow webhooks, its guesses,
 * or the whole budget of a minute for chats and lists, evenly. The 99th percentile of an honest user there is at most
 * twice that of a quiet gateway, and no request of the honest user is refused.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { bearer, freshGateway, type Gateway } from '../harness/gateway.ts'
import { type SentEvent, sentEvents } from '../harness/stream.ts'
import { signInApp } from '../journeys/signed-in.ts'
import { createFundedPerson, type Person } from '../journeys/users.ts'
import { createBrowser, password } from '../oauth/oauth-app.ts'
import { authorizeUrl, connectingPerson, register } from '../oauth/session.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'
import { type Attacker, startFlood } from './support/flood.ts'
import { createHttpClient, type HttpRequest } from './support/http-client.ts'

const attackersMax = 24
/** A ratio of smaller durations depends on the machine more than on the gateway. */
const floorMs = 25
/** A machine that was busy in one round is measured again. */
const roundsMax = 3

let gateway: Gateway
let attackers: Person[]
let receiver: Receiver
let clientId: string
/** Answers each webhook a second before its time is over. */
const slow = createServer((request, response) => {
  request.resume()
  setTimeout(() => response.end('noted'), 9_000).unref()
})
before(async () => {
  gateway = await freshGateway({
    TRUST_PROXY: '127.0.0.1',
    SIGNUP_GRANTS_PER_DAY: '1000',
    RATE_AUTH: '0',
  })
  attackers = await Promise.all(Array.from({ length: attackersMax }, () => createFundedPerson(gateway.url)))
  clientId = (await register(signInApp(gateway))).client_id
  receiver = await openReceiver()
  await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve))
})
after(async () => {
  slow.closeAllConnections()
  slow.close()
  await receiver?.[Symbol.asyncDispose]()
  await gateway?.[Symbol.asyncDispose]()
})

type Door = {
  door: string
  samples: number
  /** A user who comes for the first time; the function is one act, and the answer its duration. */
  honest(): Promise<() => Promise<number>>
  attacker(person: Person, n: number): Promise<Attacker>
}

const json = { 'content-type': 'application/json' }
const asked = (
  token: string,
  route: string,
  body?: object,
  more: Record<string, string> = {},
): HttpRequest => {
  const [method = '', path = ''] = route.split(' ')
  const headers = { authorization: `Bearer ${token}`, ...more, ...(body && json) }
  return { method, path, headers, ...(body && { body: JSON.stringify(body) }) }
}
const ok = async (person: Person, route: string, body: object) => {
  const answer = await person.call(route, { body })
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}
/** Each request is an event in the log of its user; two a second of each account, whose budget is ten times that. */
const acting = (token: string) => ({
  request: asked(token, 'PUT /v1/policy', { per_day_usd: '{n}' }),
  inFlight: 1,
  everyMs: 500,
})
/** One request after the other over one connection. */
const byRequests = (requestOf: (person: Person) => HttpRequest) => async () => {
  const person = await createFundedPerson(gateway.url)
  const client = createHttpClient(gateway.url, { sockets: 1, msMax: 100_000 })
  return async () => {
    const { status, text, ms } = await client.send(requestOf(person))
    assert.equal(status, 200, text)
    return ms
  }
}

const question = { query: 'credits left?', stream: false }
const longQuestion = { query: '1e'.repeat(4_000), stream: false }
const list = (token: string) =>
  asked(
    token,
    'POST /mcp',
    { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' },
  )

const doors: readonly Door[] = [
  {
    door: 'streams',
    samples: 100,
    async honest() {
      const person = await createFundedPerson(gateway.url)
      const events = sentEvents(
        `${gateway.url}/v1/notifications/stream`,
        bearer(person),
        new AbortController().signal,
      )
      let limit = 90_000
      return async () => {
        limit -= 1
        const startedMs = performance.now()
        const acted = ok(person, 'PUT /v1/policy', { per_day_usd: String(limit) })
        await untilEvent(events, 'policy.changed')
        const ms = performance.now() - startedMs
        await acted
        return ms
      }
    },
    attacker: async ({ token }) => ({
      ...acting(token),
      unread: [
        ...Array.from({ length: 7 }, () =>
          asked(token, 'GET /v1/notifications/stream', undefined, { 'last-event-id': '0' }),
        ),
        ...Array.from({ length: 3 }, () =>
          asked(token, 'GET /mcp/sse', undefined, { accept: 'text/event-stream' }),
        ),
      ],
    }),
  },
  {
    door: 'webhooks',
    samples: 100,
    async honest() {
      const person = await createFundedPerson(gateway.url)
      const path = `/${person.agentId}`
      await ok(person, 'POST /v1/webhooks', { url: receiver.url(path), types: ['policy.changed'] })
      let limit = 90_000
      let count = 0
      return async () => {
        limit -= 1
        count += 1
        const startedMs = performance.now()
        const acted = ok(person, 'PUT /v1/policy', { per_day_usd: String(limit) })
        await received(path, count)
        const ms = performance.now() - startedMs
        await acted
        return ms
      }
    },
    async attacker(person, n) {
      const { port } = slow.address() as AddressInfo
      for (let at = 0; at < 10; at++)
        await person.call('POST /v1/webhooks', { body: { url: `http://127.0.0.1:${port}/${n}/${at}` } })
      return acting(person.token)
    },
  },
  {
    door: 'sign-in',
    samples: 100,
    async honest() {
      const app = signInApp(gateway)
      const person = connectingPerson(app)
      await person.connect({ clientId })
      return async () => {
        const page = await person.browser.open(authorizeUrl(app, clientId, { prompt: 'login consent' }))
        const startedMs = performance.now()
        const consent = await person.browser.submit(page, 'sign-in', { email: person.email, password })
        const ms = performance.now() - startedMs
        assert.match(consent.html, /Connect Attack\?/)
        return ms
      }
    },
    async attacker(_person, n) {
      const app = signInApp(gateway)
      const address = { 'x-forwarded-for': `198.51.100.${n + 1}` }
      const browser = createBrowser()
      const page = await browser.open(authorizeUrl(app, clientId), { headers: address })
      const action = /action="([^"]*\/sign-in)"/.exec(page.html)![1]!
      const cookie = [...browser.cookies.values()].map(({ value }) => value).join('; ')
      const form = new URLSearchParams({ password: 'x'.repeat(20) })
      const guess = {
        method: 'POST',
        path: new URL(action, page.url).pathname,
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          ...address,
          origin: gateway.url,
          cookie,
        },
        body: `${form}&email=nobody{n}@example.com`,
      }
      return { request: guess, inFlight: 6, everyMs: 1_000 }
    },
  },
  {
    door: 'chat',
    samples: 100,
    honest: byRequests(({ token }) => asked(token, 'POST /v1/chat', question)),
    attacker: async ({ token }) => ({
      request: asked(token, 'POST /v1/chat', longQuestion),
      inFlight: 4,
      everyMs: 2_000,
    }),
  },
  {
    door: 'MCP lists',
    samples: 100,
    honest: byRequests(({ token }) => list(token)),
    attacker: async ({ token }) => ({ request: list(token), inFlight: 4, everyMs: 800 }),
  },
]

async function untilEvent(events: AsyncGenerator<SentEvent>, type: string): Promise<void> {
  for (;;) {
    const { done, value } = await events.next()
    assert.ok(!done, 'the stream of the honest user goes on')
    if (value.event === type) return
  }
}

/** Until so many messages came; the receiver notes each as it arrives. */
async function received(path: string, count: number): Promise<void> {
  const until = performance.now() + 60_000
  while (receiver.at(path).length < count) {
    assert.ok(performance.now() < until, 'the message of the honest user has arrived')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const p99 = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1]!
const shown = (ms: number) => ms.toFixed(1)

for (const { door, samples, honest, attacker } of doors)
  test(`an honest user at ${door} waits at most twice as long while 1 account, and then 24, attack`, async () => {
    const measure = async (count: number) => {
      const floods = await Promise.all(attackers.slice(0, count).map(attacker))
      const act = await honest()
      const times: number[] = []
      const flood = await startFlood({ url: gateway.url, attackers: floods })
      try {
        for (let turn = 0; turn < samples; turn++) times.push(await act())
      } finally {
        console.log(`fairness: ${door}, ${count} attackers: ${JSON.stringify(await flood.end())}`)
      }
      return p99(times)
    }
    for (let round = 1; ; round++) {
      const quietMs = await measure(0)
      const attackedMs = [await measure(1), await measure(attackersMax)]
      const figures = `p99 ${shown(quietMs)} ms quiet, ${attackedMs.map(shown).join(' and ')} ms`
      console.log(`fairness: ${door}: ${figures} with 1 and ${attackersMax} attackers`)
      if (attackedMs.every((ms) => ms <= Math.max(2 * quietMs, floorMs))) break
      assert.ok(round < roundsMax, figures)
    }
  })
