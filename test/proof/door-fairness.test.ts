/** Accounts that use a door as fast as it lets them hardly delay another user. */
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { bearer, freshGateway, http, newAgent } from '../harness/gateway.ts'
import { eventsOf } from '../harness/stream.ts'
import { personWithApp, signInApp } from '../journeys/signed-in.ts'
import { type Person, personOf } from '../journeys/users.ts'
import { password } from '../oauth/oauth-app.ts'
import { authorizeUrl, register } from '../oauth/session.ts'
import { openReceiver } from '../webhooks/receiver.ts'
import type { Attack, Door } from './door-attack.ts'
import { bySize } from './support/seed.ts'

const accounts = 24
/** Below this a ratio depends more on the machine than on the gateway. */
const floorMs = 100

/**
 * `everyMs`: so rarely that the user has free requests left, and so has the address. `medianMsMax`: a median that is
 * short enough however much longer it is than the quiet one.
 */
type Measured = { name: string; everyMs?: number; medianMsMax?: number; once(): Promise<void> }

let gateway: Awaited<ReturnType<typeof freshGateway>>
let honest: Person
let tokens: string[]
let signedIn: Awaited<ReturnType<typeof personWithApp>>
const parts = new AsyncDisposableStack()
before(async () => {
  gateway = parts.use(await freshGateway())
  honest = await personOf(gateway.url, await newAgent(gateway.url))
  tokens = []
  while (tokens.length < accounts) tokens.push((await newAgent(gateway.url)).token)
  signedIn = await personWithApp(gateway)
})
after(() => parts.disposeAsync())

let acts = 0
const act = async () => {
  const body = { per_day_usd: String(90_000 - ++acts) }
  const { status } = await honest.call('PUT /v1/policy', { key: `act-${acts}`, body })
  assert.equal(status, 200)
}
const read = async () => {
  const { status } = await honest.call('GET /v1/policy')
  assert.equal(status, 200)
}
const ask = async () => {
  const body = { query: 'price of eth', stream: false }
  const { status, body: answer } = await honest.call('POST /v1/chat', { key: `ask-${++acts}`, body })
  assert.equal(status, 200, JSON.stringify(answer))
}
const list = async () => {
  const { status } = await http(`${gateway.url}/mcp`, {
    method: 'POST',
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    headers: {
      ...bearer(honest),
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-06-18',
    },
  })
  assert.equal(status, 200)
}
const signIn = async () => {
  const { browser } = signedIn.connecting
  const { email, connection } = signedIn
  const page = await browser.open(authorizeUrl(signInApp(gateway), connection.clientId, { prompt: 'login' }))
  const next = await browser.submit(page, 'sign-in', { email, password })
  assert.doesNotMatch(next.html, /role="alert"/)
}

/** An act of the user until its event has come by the stream. */
async function openStream() {
  const stop = new AbortController()
  const url = `${gateway.url}/v1/notifications/stream`
  const reply = await fetch(url, { headers: bearer(honest), signal: stop.signal })
  assert.equal(reply.status, 200)
  const events = eventsOf(reply)
  return {
    async once() {
      await act()
      const { done } = await events.next()
      assert.ok(!done)
    },
    [Symbol.dispose]: () => stop.abort(),
  }
}

async function openWebhook() {
  const receiver = await openReceiver()
  const created = await honest.call<{ webhook_id: string }>('POST /v1/webhooks', {
    key: `webhook-${++acts}`,
    body: { url: receiver.url() },
  })
  assert.equal(created.status, 200, JSON.stringify(created.body))
  let next = Promise.withResolvers<void>()
  receiver.answer(() => {
    next.resolve()
    return 200
  })
  return {
    async once() {
      next = Promise.withResolvers<void>()
      await act()
      await next.promise
    },
    async [Symbol.asyncDispose]() {
      await honest.call(`DELETE /v1/webhooks/${created.body.webhook_id}`, { key: `gone-${++acts}` })
      await receiver[Symbol.asyncDispose]()
    },
  }
}

/** Long enough for a median of the rarest operation. */
const measuredMs = bySize({ short: 24_000, full: 24_000, nightly: 40_000 })

/** The times of an operation that the user does again and again, in order. */
async function timesOf({ everyMs = 700, once }: Measured): Promise<number[]> {
  const times: number[] = []
  const untilMs = performance.now() + measuredMs
  while (performance.now() < untilMs) {
    await delay(everyMs)
    const startedMs = performance.now()
    await once()
    times.push(performance.now() - startedMs)
  }
  return times.sort((a, b) => a - b)
}
const atMs = (times: readonly number[], part: number) => times[Math.floor(times.length * part)]!

/** Disposed of, it has ended and its connections are closed. */
async function startAttack(door: Door): Promise<AsyncDisposable> {
  const { client_id: clientId } = await register(signInApp(gateway))
  const child = fork(fileURLToPath(new URL('door-attack.ts', import.meta.url)), { stdio: 'inherit' })
  const exited = new Promise((resolve) => child.once('exit', resolve))
  const attack: Attack = { url: gateway.url, door, tokens, clientId }
  child.send(attack)
  await Promise.race([new Promise((resolve) => child.once('message', resolve)), exited])
  assert.equal(child.exitCode, null)
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** What the user does at the door, and what it opens for that. */
const doors: Record<Door, (scope: AsyncDisposableStack) => Promise<Measured>> = {
  streams: async (scope) => ({ name: 'act to event', once: scope.use(await openStream()).once }),
  webhooks: async (scope) => ({ name: 'act to message', once: scope.use(await openWebhook()).once }),
  'sign-in': async () => ({ name: 'sign-in', everyMs: 2_000, once: signIn }),
  // Within their limits 24 accounts ask more than two cores can answer at once. A question needs some twenty turns of the
  // event loop, so it waits twenty times as long as a read.
  chat: async () => ({ name: 'question', medianMsMax: 1_000, once: ask }),
  lists: async () => ({ name: 'tools/list', once: list }),
}

for (const [door, open] of Object.entries(doors) as [Door, (typeof doors)[Door]][])
  test(`${accounts} accounts at the door of ${door} lock nobody out, and another user is answered soon`, async () => {
    await using scope = new AsyncDisposableStack()
    const all: Measured[] = [{ name: 'read', once: read }, await open(scope)]
    const measure = () => Promise.all(all.map(timesOf))
    const quiet = await measure()
    await using _attack = await startAttack(door)
    // Whose first requests are free ones.
    await delay(3_000)
    const busy = await measure()
    for (const [index, { name, medianMsMax = floorMs }] of all.entries()) {
      const figures = [0.5, 0.99].map(
        (part) => [atMs(quiet[index]!, part), atMs(busy[index]!, part)] as const,
      )
      const shown = figures.map(([before, beside]) => `${before.toFixed(1)} to ${beside.toFixed(1)} ms`)
      console.log(`${door}: ${name}, median ${shown[0]}, p99 ${shown[1]}`)
      const [before, beside] = figures[0]!
      assert.ok(beside <= Math.max(3 * before, medianMsMax), `${name}: ${shown[0]}`)
    }
  })
