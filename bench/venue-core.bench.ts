/**
 * P6a: the venue's matching core compared with nodejs-order-book, with the same flow of integers. P6b, P6c: signed
 * orders over HTTP, per second of the venue's own processor time: the capacity of one core, and the share of the
 * recovery of signers, which is unavoidable.
 */

import { OrderBook, Side } from 'nodejs-order-book'
import { recover, signRecoverable } from 'tiny-secp256k1'
import { Agent, request } from 'undici'
import { privateKeyToAddress } from 'viem/accounts'
import { canonicalAction } from '#world/hyperliquid/actions.ts'
import { l1Digest } from '#world/hyperliquid/recover.ts'
import { createBook } from '#world/venue-core/book.ts'
import { nextInteger, nextRandom } from '#world/venue-core/random.ts'
import { toHex } from '#world/venue-core/signature.ts'
import { keyOf, startVenue } from '../world/conformance/venue/venue.ts'
import { load, median, report } from './support/measure.ts'

const runs = 5
const coreSteps = 120_000
const httpOrders = 4_000
const connections = 32

type Step = { kind: 'limit' | 'cancel' | 'market'; buy: boolean; price: number; size: number; target: number }

/** 60 % limit, 30 % cancel, 10 % market; `spread` prices wide. */
const randomSteps = (seed: number, spread: number): Step[] => {
  const random = { at: seed }
  return Array.from({ length: coreSteps }, (_, i) => {
    const kind = nextRandom(random)
    const buy = nextRandom(random) < 0.5
    const away = nextInteger(random, spread)
    return {
      kind: kind < 0.6 ? 'limit' : kind < 0.9 ? 'cancel' : 'market',
      buy,
      price: buy ? 100_000 - away + Math.floor(spread / 8) : 100_000 + away - Math.floor(spread / 8),
      size: 1 + nextInteger(random, 50),
      target: Math.max(1, i - nextInteger(random, 400)),
    }
  })
}

const perSecond = (steps: readonly Step[], run: (step: Step, id: number) => void): number => {
  const from = performance.now()
  for (let i = 0; i < steps.length; i += 1) run(steps[i] as Step, i + 1)
  return (steps.length / (performance.now() - from)) * 1_000
}

const ours = (steps: readonly Step[]): number => {
  const book = createBook()
  return perSecond(steps, ({ kind, buy, price, size, target }, id) => {
    if (kind === 'cancel') book.cancel(target)
    else if (kind === 'limit') book.place({ id, owner: id, buy, price, size, timeInForce: 'gtc' })
    else book.place({ id, owner: id, buy, price: buy ? 1e12 : 1, size, timeInForce: 'ioc' })
  })
}

const theirs = (steps: readonly Step[]): number => {
  const book = new OrderBook()
  return perSecond(steps, ({ kind, buy, price, size, target }, id) => {
    const side = buy ? Side.BUY : Side.SELL
    if (kind === 'cancel') book.cancel(String(target))
    else if (kind === 'limit') book.limit({ id: String(id), side, size, price })
    else book.market({ side, size })
  })
}

const benchCore = (id: string, name: string, spread: number, goal: number): void => {
  const rates = { ours: [] as number[], theirs: [] as number[] }
  ours(randomSteps(0, spread))
  theirs(randomSteps(0, spread))
  for (let run = 1; run <= runs; run += 1) {
    const steps = randomSteps(run, spread)
    rates.ours.push(ours(steps))
    rates.theirs.push(theirs(steps))
  }
  report({
    id,
    name,
    goal: `>= ${goal}`,
    ratios: rates.ours.map((rate, run) => rate / rates.theirs[run]!),
    met: (value) => value >= goal,
    annex: { ours_per_second: median(rates.ours), theirs_per_second: median(rates.theirs) },
  })
}

benchCore('P6a', 'matching core to nodejs-order-book, 40 prices', 40, 10)
benchCore('P6a2', 'matching core to nodejs-order-book, 20,000 prices', 20_000, 5)

/** Several, because a signer whose requests overtake each other by a hundred is rejected. */
const signers = Array.from({ length: 16 }, (_, i) => keyOf(900 + i))

/** Signed in advance, so that the client's signatures are not measured. */
const signedOrder = (n: number, nonce: number): string => {
  const immediate = n % 3 === 0
  const action = canonicalAction({
    type: 'order',
    orders: [
      {
        a: 0,
        b: n % 2 === 0,
        p: immediate
          ? n % 2 === 0
            ? '101000'
            : '99000'
          : n % 2 === 0
            ? String(90_000 + (n % 900))
            : String(110_000 - (n % 900)),
        s: '0.001',
        r: false,
        t: { limit: { tif: immediate ? 'Ioc' : 'Gtc' } },
        c: `0x${nonce.toString(16).padStart(32, '0')}`,
      },
    ],
    grouping: 'na',
  })
  const secret = Buffer.from(signers[n % signers.length]!.slice(2), 'hex')
  const { signature, recoveryId } = signRecoverable(l1Digest({ action, nonce }), secret)
  const hex = toHex(signature)
  return JSON.stringify({
    action,
    nonce,
    signature: { r: `0x${hex.slice(0, 64)}`, s: `0x${hex.slice(64)}`, v: 27 + recoveryId },
  })
}

const venue = await startVenue()
await using _venue = { [Symbol.asyncDispose]: () => venue.close() }
await venue.control('POST', '/settings', { walking: false })
for (const signer of signers)
  await venue.control('POST', '/credit', {
    user: privateKeyToAddress(signer).toLowerCase(),
    amount: '1000000',
  })
await venue.control('POST', '/price', { coin: 'BTC', price: 100_000 })

const agent = new Agent({ connections, pipelining: 1 })
const send = async (body: string): Promise<void> => {
  const response = await request(`${venue.url}/exchange`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
    dispatcher: agent,
  })
  const text = await response.body.text()
  if (response.statusCode !== 200 || text.includes('error') || text.includes('"err"'))
    throw new Error(`${response.statusCode} ${text}`)
}

const cpuSeconds = async (): Promise<number> => {
  const { user: own, system } = await venue.control<{ user: number; system: number }>('GET', '/usage')
  return (own + system) / 1e6
}

let nonce = Date.now() - 3_600_000
const batch = (count: number): string[] => Array.from({ length: count }, (_, n) => signedOrder(n, ++nonce))

/** Recoveries by the library alone in the same minute, because the machine's speed drifts. */
const bareRecoveries = (): number => {
  const digest = new Uint8Array(32).fill(7)
  const { signature, recoveryId } = signRecoverable(digest, Buffer.from(signers[0]!.slice(2), 'hex'))
  const from = process.cpuUsage()
  for (let i = 0; i < 2_000; i += 1) recover(digest, signature, recoveryId, false)
  const { user: own, system } = process.cpuUsage(from)
  return 2_000 / ((own + system) / 1e6)
}

const warm = batch(1_000)
await load(warm.length, connections, (n) => send(warm[n]!))
const perCpu: number[] = []
const wall: number[] = []
const bare: number[] = []
for (let run = 0; run < runs; run += 1) {
  const orders = batch(httpOrders)
  bare.push(bareRecoveries())
  const before = await cpuSeconds()
  wall.push((await load(orders.length, connections, (n) => send(orders[n]!))).perSecond)
  perCpu.push(orders.length / ((await cpuSeconds()) - before))
}
await agent.close()
const annex = {
  per_core_second: median(perCpu),
  per_wall_second: median(wall),
  recoveries_per_core_second: median(bare),
}
report({
  id: 'P6b',
  name: 'signed orders over HTTP, per second of one core of the venue',
  goal: '>= 1,000',
  ratios: perCpu,
  unit: '/s',
  met: (value) => value >= 1_000,
  annex,
})
report({
  id: 'P6c',
  name: 'signed orders over HTTP, to bare recoveries of a signer on one core',
  goal: '>= 0.35',
  ratios: perCpu.map((rate, run) => rate / bare[run]!),
  met: (value) => value >= 0.35,
  annex,
})
