/** A flood of forged provider events costs little, and nobody else waits. */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Agent as User, bearer, freshGateway, http, newAgent } from '../harness/gateway.ts'
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

/** Posts forged events of a fifth of a megabyte, as fast as they are refused. */
function flood(): { stop: () => Promise<number> } {
  const agent = new Agent({ keepAlive: true, maxSockets: senders })
  const body = JSON.stringify({ id: 'evt_forged', padding: 'x'.repeat(bodyBytes) })
  let isOver = false
  let refused = 0
  const send = async (): Promise<void> => {
    while (!isOver)
      await new Promise<void>((resolve) => {
        const { hostname, port } = new URL(gateway.url)
        const headers = {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'stripe-signature': `t=${Math.floor(Date.now() / 1_000)},v1=${'a'.repeat(64)}`,
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

test('a flood of forged events leaves the p99 of others within twice of what it was', async (t) => {
  await reads(500)
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 4 && best > 2; round += 1) {
    const calm = Math.max(await reads(floodMs), floorMs)
    const attack = flood()
    const under = await reads(floodMs)
    const refused = await attack.stop()
    best = Math.min(best, under / calm)
    t.diagnostic(`${refused} forged events; p99 ${calm.toFixed(1)} ms before, ${under.toFixed(1)} ms meanwhile`)
  }
  assert.ok(best <= 2, `the p99 rose by ${best.toFixed(2)}`)
})
