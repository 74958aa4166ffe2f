/** A flood of provider events that are forged, changed, old or of the future costs little, and nobody else waits. */
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { Agent, request } from 'node:http'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { bearer, freshGateway, http, newAgent, type Agent as User } from '../harness/gateway.ts'
import { unlimitedRates } from './support/unlimited.ts'

const path = '/webhooks/stripe'
const floodMs = 3_000
const senders = 8
/** With its pauses the flood has some 400 requests a second, so that this process has time to measure. */
const pauseMs = 20
const bodyBytes = 200 * 1024
/** Below this a ratio depends more on the machine than on the gateway. */
const floorMs = 25

let gateway: Awaited<ReturnType<typeof freshGateway>>
let user: User
before(async () => {
  // Reads are unlimited, and forged signatures are counted as they are in production.
  gateway = await freshGateway({ ...unlimitedRates, RATE_REFUSED: '300' })
  user = await newAgent(gateway.url)
})
after(() => gateway?.[Symbol.asyncDispose]())

const p99 = (times: number[]): number => times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)]!
async function reads(msMax: number): Promise<number> {
  const times: number[] = []
  const until = performance.now() + msMax
  while (performance.now() < until) {
    const startedMs = performance.now()
    const { status } = await http(`${gateway.url}/v1/tasks?limit=1`, { headers: bearer(user) })
    assert.equal(status, 200)
    times.push(performance.now() - startedMs)
  }
  return p99(times)
}

const secret = 'whsec_portico_local_world'
const body = JSON.stringify({ id: 'evt_forged', padding: 'x'.repeat(bodyBytes) })
/** The signatures with which the body must be refused. */
function wrongSignatures(): string[] {
  const now = Math.floor(Date.now() / 1_000)
  const signed = (seconds: number, text: string) =>
    `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${text}`).digest('hex')}`
  const forged = `t=${now},v1=${'a'.repeat(64)}`
  return [forged, signed(now, '{}'), signed(now - 600, body), signed(now + 600, body)]
}

/** Posts such events of a fifth of a megabyte, as fast as they are refused. */
function flood(): { stop: () => Promise<number> } {
  const agent = new Agent({ keepAlive: true, maxSockets: senders })
  const signatures = wrongSignatures()
  let isOver = false
  let sent = 0
  let refused = 0
  const send = async (): Promise<void> => {
    while (!isOver)
      await new Promise<void>((resolve) => {
        const { hostname, port } = new URL(gateway.url)
        const headers = {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'stripe-signature': signatures[sent++ % signatures.length]!,
        }
        const asked = request({ hostname, port, path, method: 'POST', agent, headers }, (answer) => {
          assert.ok(answer.statusCode === 400 || answer.statusCode === 429)
          refused += 1
          answer.resume().once('end', resolve)
        })
        asked.once('error', () => resolve())
        asked.end(body)
      }).then(() => delay(pauseMs))
  }
  const sending = Promise.all(Array.from({ length: senders }, send))
  return {
    async stop() {
      isOver = true
      await sending
      agent.destroy()
      return refused
    },
  }
}

async function storedEvents(): Promise<number> {
  const client = new pg.Client({ connectionString: gateway.databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ count: string }>('select count(*) from plan_event')
    return Number(rows[0]!.count)
  } finally {
    await client.end()
  }
}

test('a flood of wrong events leaves the p99 of others within twice of what it was', async (t) => {
  await reads(500)
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 4 && best > 2; round += 1) {
    const calm = Math.max(await reads(floodMs), floorMs)
    const attack = flood()
    const under = await reads(floodMs)
    const refused = await attack.stop()
    best = Math.min(best, under / calm)
    assert.ok(refused > senders, `${refused} events were refused`)
    t.diagnostic(
      `${refused} wrong events; p99 ${calm.toFixed(1)} ms before, ${under.toFixed(1)} ms meanwhile`,
    )
  }
  assert.ok(best <= 2, `the p99 rose by ${best.toFixed(2)}`)
  assert.equal(await storedEvents(), 0)
})
