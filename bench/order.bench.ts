/**
 * P6: an order from the request to its completion on the user's event stream, beside what nobody can spare: three
 * commits, one signature, two round trips to the venue. And how many of them go through at once.
 */
import { signL1Action } from '@nktkas/hyperliquid/signing'
import pg from 'pg'
import { privateKeyToAccount } from 'viem/accounts'
import { systemRandom, uuidv7 } from '#kernel/id.ts'
import { type Agent, bearer, http, launch, newAgent } from '../test/harness/gateway.ts'
import { load, median, percentile, report } from './support/measure.ts'
import { stage, unlimited } from './support/stage.ts'

const runs = 5
const ordersPerRun = 60
const users = 48
const width = 32
const burst = 600

await using ground = await stage()
const databaseUrl = await ground.database('orders')
const world = await ground.world()
const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 })
await using _closing = { [Symbol.asyncDispose]: () => pool.end() }
await pool.query('create table bare (id uuid primary key, body jsonb, at timestamptz)')

const venue = async (path: string, body: object): Promise<void> => {
  const url = `${ground.control()}/venues/hyperliquid${path}`
  const { status } = await http(url, { method: 'POST', body })
  if (status !== 200) throw new Error(`${path}: ${status}`)
}
await venue('/settings', { walking: false })
await venue('/price', { coin: 'BTC', price: 100_000 })
await using gateway = await launch({
  env: {
    ...{ ...world, ...unlimited, DATA_DIR: ground.fresh('gateway'), DATABASE_URL: databaseUrl },
    ...{ FAUCET_URL: 'off', POLICY_DAY_USD_MAX: '100000000' },
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
const agents: Agent[] = []
for (let at = 0; at < users; at += 8)
  agents.push(...(await Promise.all(Array.from({ length: 8 }, newTrader))))

/** Which tasks have ended, as the user's own stream tells it. */
async function completions(agent: Agent): Promise<{ ended(id: string): Promise<void> } & Disposable> {
  const cut = new AbortController()
  const reply = await fetch(`${gateway.url}/v1/notifications/stream?after=0`, {
    headers: { ...bearer(agent), accept: 'text/event-stream' },
    signal: cut.signal,
  })
  const seen = new Set<string>()
  const waiting = new Map<string, () => void>()
  const read = async () => {
    let text = ''
    for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) {
      const blocks = (text + chunk).split('\n\n')
      text = blocks.pop() ?? ''
      if (blocks.some((each) => /^event: task\.failed$/m.test(each))) throw new Error(text)
      for (const block of blocks.filter((each) => /^event: task\.completed$/m.test(each)))
        for (const [, id = ''] of block.matchAll(/"task_id":"([0-9a-f-]{36})"/g)) {
          seen.add(id)
          waiting.get(id)?.()
        }
    }
  }
  void read().catch((error: unknown) => {
    if (!cut.signal.aborted) throw error
  })
  return {
    ended: (id) =>
      seen.has(id) ? Promise.resolve() : new Promise((resolve) => void waiting.set(id, resolve)),
    [Symbol.dispose]: () => cut.abort(),
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
  const told = await call<{ outcome: string }>(agent, '/v1/perp/open?wait=true', body(n))
  if (told.outcome !== 'executed') throw new Error(JSON.stringify(told))
}

const wallet = privateKeyToAccount(`0x${'1'.repeat(64)}`)
const action = {
  type: 'order',
  orders: [{ a: 0, b: true, p: '90000', s: '0.001', r: false, t: { limit: { tif: 'Gtc' } } }],
  grouping: 'na',
}
const parts = {
  commit: () =>
    pool.query({
      ...{ name: 'bare', text: 'insert into bare values ($1, $2, now())' },
      values: [uuidv7(new Date(), systemRandom), '{"a":"1"}'],
    }),
  sign: (n: number) => signL1Action({ wallet, action, nonce: 1_700_000_000_000 + n }),
  trip: () => http(`${world.HYPERLIQUID_URL}/info`, { method: 'POST', body: { type: 'allMids' } }),
}
const p50 = async (count: number, run: (n: number) => Promise<unknown>) =>
  median((await load(count, 1, run)).ms)
const floor = async () => {
  const [commit, sign, trip] = [
    await p50(200, parts.commit),
    await p50(100, parts.sign),
    await p50(100, parts.trip),
  ]
  return { commit, sign, trip, sum: 3 * commit + sign + 2 * trip }
}

await load(
  40,
  1,
  streamed(() => resting),
)
await load(users * 3, width, waited(market))
await floor()

const kinds = { resting: streamed(() => resting), filled: streamed(market) }
const found = {
  resting: [] as number[],
  filled: [] as number[],
  p99: [] as number[],
  floor: [] as Awaited<ReturnType<typeof floor>>[],
  perSecond: [] as number[],
}
for (let run = 0; run < runs; run++) {
  const all: number[] = []
  for (const kind of ['resting', 'filled'] as const) {
    const { ms } = await load(ordersPerRun, 1, kinds[kind])
    found[kind].push(median(ms))
    all.push(...ms)
  }
  found.p99.push(percentile(all, 0.99))
  found.floor.push(await floor())
  found.perSecond.push((await load(burst, width, waited(market))).perSecond)
}

const beside = (mine: number[]) => mine.map((ms, run) => ms / found.floor[run]!.sum)
const of = (name: 'commit' | 'sign' | 'trip') => median(found.floor.map((each) => each[name]))
const annex = { commit_ms: of('commit'), sign_ms: of('sign'), round_trip_ms: of('trip') }
for (const [id, kind] of [
  ['P6', 'filled'],
  ['P6d', 'resting'],
] as const)
  report({
    ...{ id, goal: '<= 3', ratios: beside(found[kind]), met: (ratio) => ratio <= 3 },
    name: `p50 of an order that ${kind === 'filled' ? 'fills' : 'rests'}, request to event, to 3 commits + 1 signature + 2 round trips`,
    annex: { order_ms: median(found[kind]), ...annex },
  })
report({
  ...{ id: 'P6e', name: 'p99 of the same orders', goal: '<= 50 ms', unit: 'ms', ratios: found.p99 },
  met: (ms) => ms <= 50,
})
report({
  ...{
    id: 'P6f',
    name: `orders per second, ${width} at once, the whole world on one machine`,
    goal: '>= 800',
    unit: '/s',
  },
  ...{ ratios: found.perSecond, met: (rate) => rate >= 800 },
})
