/**
 * P6: an order from the request to its completion on the user's event stream, compared with its floor: three commits,
 * one signature, two round trips to the venue. And the throughput of concurrent orders.
 */

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { signL1Action } from '@nktkas/hyperliquid/signing'
import pg from 'pg'
import { privateKeyToAccount } from 'viem/accounts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { type Agent, bearer, http, launch, newAgent } from '../test/harness/gateway.ts'
import { createEnvironment, unlimited } from './support/environment.ts'
import { load, median, percentile, report } from './support/measure.ts'

const runs = 5
const ordersPerRun = 60
const warmUp = 400
const users = 49
const width = 32
const burst = 600

await using environment = await createEnvironment()
const databaseUrl = await environment.newDatabase('orders')
const world = await environment.world()
const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 })
await using _closing = { [Symbol.asyncDispose]: () => pool.end() }
await pool.query('create table bare (id uuid primary key, body jsonb, at timestamptz)')

const venue = async (path: string, body: object): Promise<void> => {
  const url = `${environment.control()}/venues/hyperliquid${path}`
  const { status } = await http(url, { method: 'POST', body })
  if (status !== 200) throw new Error(`${path}: ${status}`)
}
await venue('/settings', { walking: false })
await venue('/price', { coin: 'BTC', price: 100_000 })
await using gateway = await launch({
  env: {
    ...world,
    ...unlimited,
    DATA_DIR: environment.newFolder('gateway'),
    DATABASE_URL: databaseUrl,
    FAUCET_URL: 'off',
    POLICY_DAY_USD_MAX: '100000000',
  },
  readyMsMax: 60_000,
})

const call = async <B>(agent: Agent, path: string, body: object): Promise<B> => {
  const reply = await http<B>(`${gateway.url}${path}`, { method: 'POST', headers: bearer(agent), body })
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

async function newTrader(): Promise<Agent> {
  const agent = await newAgent(gateway.url)
  const { body } = await http<{ wallets: { address: string; chain_type: string }[] }>(
    `${gateway.url}/v1/wallets`,
    { headers: bearer(agent) },
  )
  const user = body.wallets.find(({ chain_type }) => chain_type === 'evm')!.address
  await venue('/credit', { user, coin: 'perp', amount: '1000000' })
  await call(agent, '/v1/perp/setup?wait=true', {})
  return agent
}
const agents: Agent[] = [await newTrader()]

/** Ended tasks, read from the user's event stream. */
async function completions(agent: Agent): Promise<{ ended(id: string): Promise<void> } & Disposable> {
  const request = get(`${gateway.url}/v1/notifications/stream?after=0`, {
    headers: { ...bearer(agent), accept: 'text/event-stream' },
  })
  const [reply] = (await once(request, 'response')) as [IncomingMessage]
  const seen = new Set<string>()
  const waiting = new Map<string, () => void>()
  let text = ''
  reply.setEncoding('utf8').on('data', (chunk: string) => {
    const blocks = (text + chunk).split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      if (/^event: task\.failed$/m.test(block)) throw new Error(block)
      const id = /^event: task\.completed$/m.test(block) && /"task_id":"([0-9a-f-]{36})"/.exec(block)?.[1]
      if (!id) continue
      seen.add(id)
      waiting.get(id)?.()
    }
  })
  return {
    ended: (id) =>
      seen.has(id) ? Promise.resolve() : new Promise((resolve) => void waiting.set(id, resolve)),
    [Symbol.dispose]: () => void request.destroy(),
  }
}

const resting = { asset: 'BTC', side: 'long', size: '0.001', order_type: 'limit', limit_price: '90000' }
const market = (n: number) => ({ asset: 'BTC', side: n % 2 === 0 ? 'long' : 'short', size: '0.001' })
const [single] = agents as [Agent]
using stream = await completions(single)
const streamed = (body: (n: number) => object) => async (n: number) => {
  const { task_id } = await call<{ task_id: string }>(single, '/v1/perp/open', body(n))
  await stream.ended(task_id)
}
const waited = (body: (n: number) => object) => async (n: number) => {
  const agent = agents[n % users]!
  const task = await call<{ outcome: string }>(agent, '/v1/perp/open?wait=true', body(n))
  if (task.outcome !== 'executed') throw new Error(JSON.stringify(task))
}

const wallet = privateKeyToAccount(`0x${'1'.repeat(64)}`)
const action = {
  type: 'order',
  orders: [{ a: 0, b: true, p: '90000', s: '0.001', r: false, t: { limit: { tif: 'Gtc' } } }],
  grouping: 'na',
}
const parts = {
  sign: (n: number) => signL1Action({ wallet, action, nonce: 1_700_000_000_000 + n }),
  trip: () => http(`${world.HYPERLIQUID_URL}/info`, { method: 'POST', body: { type: 'allMids' } }),
  commit: () =>
    pool.query({
      name: 'bare',
      text: 'insert into bare values ($1, $2, now())',
      values: [uuidv7(new Date(), systemRandom), '{"a":"1"}'],
    }),
}
const kinds = { resting: streamed(() => resting), filled: streamed(market) }
type Part = keyof typeof parts | keyof typeof kinds
const steps = Object.entries({ ...kinds, ...parts }) as [Part, (n: number) => Promise<unknown>][]

type Times = Record<Part, number[]>
const noTimes = (): Times => ({ resting: [], filled: [], sign: [], trip: [], commit: [] })

/**
 * Orders and their floor alternate: each part then runs once and after other work, as in an order, and other load of
 * the machine affects both alike.
 */
async function measureInTurns(count: number): Promise<Times> {
  const ms = noTimes()
  for (let turn = 0; turn < count; turn++)
    for (const [name, run] of steps) ms[name].push(...(await load(1, 1, () => run(turn))).ms)
  return ms
}
/** The same, each in a loop of its own: the parts of the floor are then at their fastest, and orders nearly so. */
async function measureInLoops(count: number): Promise<Times> {
  const ms = noTimes()
  for (const [name, run] of steps) ms[name].push(...(await load(count, 1, run)).ms)
  return ms
}
const floorOf = ({ commit, sign, trip }: Times) => 3 * median(commit) + median(sign) + 2 * median(trip)

// A service is measured with its code compiled: the floor is as warm after as many repeats.
await measureInTurns(warmUp)

const found = { turns: [] as Times[], loops: [] as Times[] }
const perSecond: number[] = []
for (let run = 0; run < runs; run++) {
  found.turns.push(await measureInTurns(ordersPerRun))
  found.loops.push(await measureInLoops(ordersPerRun))
}
while (agents.length < users) agents.push(...(await Promise.all(Array.from({ length: 8 }, newTrader))))
await load(users * 3, width, waited(market))
for (let run = 0; run < runs; run++) perSecond.push((await load(burst, width, waited(market))).perSecond)

const words = {
  filled: 'an order that fills',
  resting: 'an order that rests',
  turns: 'alternating',
  loops: 'each in a loop of its own',
}
for (const [id, kind, way] of [
  ['P6', 'filled', 'turns'],
  ['P6d', 'resting', 'turns'],
  ['P6g', 'filled', 'loops'],
  ['P6h', 'resting', 'loops'],
] as const) {
  const valueFor = (part: Part) => median(found[way].flatMap((run) => run[part]))
  report({
    id,
    goal: '<= 3',
    met: (ratio) => ratio <= 3,
    name: `p50 of ${words[kind]}, request to event, to 3 commits + 1 signature + 2 round trips, ${words[way]}`,
    ratios: found[way].map((run) => median(run[kind]) / floorOf(run)),
    annex: {
      order_ms: valueFor(kind),
      commit_ms: valueFor('commit'),
      sign_ms: valueFor('sign'),
      round_trip_ms: valueFor('trip'),
    },
  })
}
const slowest = ({ resting, filled }: Times) => percentile([...resting, ...filled], 0.99)
report({
  id: 'P6e',
  name: 'p99 of the same orders',
  goal: '<= 50 ms',
  unit: 'ms',
  ratios: found.turns.map(slowest),
  met: (ms) => ms <= 50,
})
report({
  id: 'P6f',
  name: `orders per second, ${width} at once, the whole world on one machine`,
  goal: '>= 800',
  unit: '/s',
  ratios: perSecond,
  met: (rate) => rate >= 800,
})
