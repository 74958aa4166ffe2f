/**
 * Seeded orders of many accounts while reads lag, replies are lost, connections cut, and gateways killed. `PROOF_SEED`
 * seeds the orders, the failures and the answers of the venue.
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { bearer, eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { creditAtVenue } from '../harness/venue-gateway.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { createGatewayPool } from './gateway-pool.ts'
import {
  markets,
  randomOf,
  randomOrderRequest,
  submitUntilAnswered,
  type TaskReply,
  type Trader,
} from './venue-traders.ts'

const accounts = bySize({ short: 20, full: 50, nightly: 50 })
const orders = bySize({ short: 300, full: 1_000, nightly: 10_000 })
/** A start takes seconds on a small machine; while one gateway starts, the other one is not killed. */
const killEveryMs = bySize({ short: 1_500, full: 10_000, nightly: 10_000 })
const killsMin = bySize({ short: 3, full: 1, nightly: 3 })
const settleMs = 90_000

type VenueOrder = { oid: number; cloid?: string; status: string; phase: string; user: string }
type VenueState = {
  conservation: { perp: string; spot: Record<string, string>; open: Record<string, number> }
  accounts: { address: string; orders: VenueOrder[]; fills: { oid: number; sz: string }[] }[]
}
type Row = {
  id: string
  execution: string
  kind: string
  status: string
  outcome: string | null
  result: TaskReply['result']
  data: { order_id?: number }
}

const cloidOf = (executionId: string) =>
  `0x${createHash('sha256').update(`${executionId}:entry`).digest('hex').slice(0, 32)}`
const units = (text: string): bigint => {
  const [whole = '0', fraction = ''] = text.split('.')
  return BigInt(`${whole}${fraction.padEnd(8, '0')}`)
}

const venueOf =
  (app: CrashApp) =>
  async <B>(method: string, path: string, body?: object): Promise<B> => {
    const reply = await http<B>(`${app.control}/venues/hyperliquid${path}`, {
      method,
      ...(body && { body }),
    })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }
type Venue = ReturnType<typeof venueOf>

async function newTrader({ url }: Gateway, venue: Venue): Promise<Trader> {
  const agent = await newAgent(url)
  const headers = bearer(agent)
  const { wallets } = (
    await http<{ wallets: { address: string; chain_type: string }[] }>(`${url}/v1/wallets`, { headers })
  ).body
  const address = wallets.find(({ chain_type }) => chain_type === 'evm')!.address
  await creditAtVenue(venue, { evm: address, amount: '100000' })
  // Old funds that every read shows.
  await venue('POST', '/realism/catch-up')
  const setup = await http<TaskReply>(`${url}/v1/perp/setup?wait=true`, {
    method: 'POST',
    headers: { ...headers, 'idempotency-key': `setup-${address}` },
    body: {},
  })
  assert.equal(setup.body.outcome, 'executed', JSON.stringify(setup.body))
  return { ...agent, address, resting: [] }
}

const faults = [
  { endpoint: 'exchange', effect: 'dropReply', rate: 0.03 },
  { endpoint: 'exchange', effect: 'reset', rate: 0.02 },
  { endpoint: 'exchange', effect: 'status', status: 429, rate: 0.03 },
  { endpoint: 'info', effect: 'reset', rate: 0.005 },
  { endpoint: 'info', effect: 'status', status: 429, rate: 0.005 },
]

/** Each account places one order after the other, so that it closes and cancels only its own. */
async function trade(ready: () => Gateway[], trader: Trader, seed: number, count: number): Promise<string[]> {
  const random = randomOf(seed)
  const taken: string[] = []
  for (let n = 0; taken.length < count; n++) {
    const reply = await submitUntilAnswered(ready, trader, {
      key: `chaos-${seed}-${n}`,
      request: randomOrderRequest(random, trader),
      pick: random,
    })
    if (!reply) continue
    taken.push(reply.task_id)
    if (reply.result?.order_status === 'resting' && reply.result.order_id)
      trader.resting.push(reply.result.order_id)
  }
  return taken
}

/** Compares every task with the venue's record, and every order of the venue with a task. */
function compare(rows: Row[], { accounts: all }: VenueState): { filled: number; orders: number } {
  const byCloid = new Map<string, { order: VenueOrder; filled: bigint }[]>()
  for (const { orders: own, fills } of all)
    for (const order of own) {
      const filled = fills.filter(({ oid }) => oid === order.oid).reduce((sum, { sz }) => sum + units(sz), 0n)
      const cloid = order.cloid ?? `none-${order.oid}`
      byCloid.set(cloid, [...(byCloid.get(cloid) ?? []), { order, filled }])
    }
  let filled = 0
  const known = new Set<string>()
  for (const row of rows) {
    if (row.kind !== 'perp_open' && row.kind !== 'perp_close') continue
    const cloid = cloidOf(row.execution)
    known.add(cloid)
    const found = byCloid.get(cloid) ?? []
    const reply = `${row.kind} ${JSON.stringify(row)} beside ${found.length} of ${JSON.stringify(found[0]?.order)}`
    assert.ok(found.length <= 1, `placed twice: ${reply}`)
    const done = found[0]?.filled ?? 0n
    if (done > 0n) filled++
    if (row.status === 'completed') {
      assert.equal(found.length, 1, `completed without an order: ${reply}`)
      const venueOrder = units(row.result?.filled_size ?? '0')
      // An order that rested when the task ended may have filled since.
      assert.ok(
        row.result?.order_status === 'resting' ? done >= venueOrder : done === venueOrder,
        `${done}: ${reply}`,
      )
    } else {
      assert.deepEqual([row.status, row.outcome], ['failed', 'not_executed'], reply)
      assert.equal(done, 0n, `failed and yet filled: ${reply}`)
      assert.notEqual(found[0]?.order.status, 'open', `failed and yet in the book: ${reply}`)
    }
  }
  compareCancels(
    rows,
    all.flatMap(({ orders }) => orders),
  )
  for (const cloid of byCloid.keys()) assert.ok(known.has(cloid), `an order without a task: ${cloid}`)
  return { filled, orders: byCloid.size }
}

function compareCancels(rows: Row[], orders: VenueOrder[]): void {
  const byId = new Map(orders.map((order) => [order.oid, order]))
  for (const row of rows.filter(({ kind }) => kind === 'perp_cancel')) {
    const order = byId.get(Number(row.result?.order_id ?? row.data.order_id))
    const reply = `${JSON.stringify(row)} beside ${JSON.stringify(order)}`
    assert.ok(order, `cancelled nothing: ${reply}`)
    if (row.status === 'completed') assert.match(order.status, /canceled$/i, reply)
    else assert.notEqual(order.status, 'open', `not cancelled and yet in the book: ${reply}`)
  }
}

/** How many accounts were reconciled, and how many matched. */
async function countReconciled({ admin }: CrashApp): Promise<number> {
  const startedAt = new Date()
  await admin.query('update venue_account set next_at = $1', [startedAt])
  const mismatched = async () =>
    (
      await admin.query(
        `select account, state, reason, mismatch from venue_account
         where state <> 'active' or mismatch is not null or checked_at is null or checked_at < $1`,
        [startedAt],
      )
    ).rows
  await eventually(
    async () => ((await mismatched()).length === 0 ? true : undefined),
    'every account agrees with the venue',
    settleMs,
  ).catch(async (error: unknown) => {
    throw new Error(`mismatch: ${JSON.stringify(await mismatched())}`, { cause: error })
  })
  const { rows } = await admin.query(`select count(*)::integer as n from venue_account`)
  const flags = await admin.query(`select body from user_event where type = 'security.flagged'`)
  assert.deepEqual(flags.rows, [], 'no false alarm')
  return rows[0].n
}

test(`${orders} orders of ${accounts} accounts: each at most once, and reported truthfully`, async (t) => {
  const seed = proofSeed('venue chaos')
  const app = await createCrashApp()
  const venue = venueOf(app)
  const gatewayPool = createGatewayPool(() =>
    app.gateway({ FAUCET_URL: 'off', POLICY_DAY_USD_MAX: '100000000', DATABASE_POOL: '30' }),
  )
  t.after(async () => {
    await gatewayPool.close()
    await app[Symbol.asyncDispose]()
  })
  // No weight is counted: a gateway that counts is silent for a second after each of the injected 429s.
  await venue('POST', '/realism', { preset: 'realistic', seed, weightPerMinute: 0 })
  await venue('POST', '/settings', { walking: false })
  for (const [coin, price] of Object.entries(markets)) await venue('POST', '/price', { coin, price })
  await gatewayPool.fillAll()
  const [first] = gatewayPool.ready()
  const traders: Trader[] = []
  for (let at = 0; at < accounts; at += 10)
    traders.push(...(await Promise.all(Array.from({ length: 10 }, () => newTrader(first!, venue)))))
  for (const [at, fault] of faults.entries()) await venue('POST', '/faults', { ...fault, seed: seed + at })

  const startedMs = performance.now()
  let trading = true
  const storm = (async () => {
    while (trading) {
      await delay(killEveryMs)
      if (trading && gatewayPool.ready().length === 2) gatewayPool.killOne()
    }
  })()
  const taken = await Promise.all(
    traders.map((trader, at) => trade(gatewayPool.ready, trader, seed + at, orders / accounts)),
  ).finally(() => {
    trading = false
  })
  const seconds = (performance.now() - startedMs) / 1_000
  await storm
  await gatewayPool.fillAll()
  const struck = (await venue<{ struck: number }[]>('GET', '/faults')).map((each) => each.struck)
  await venue('DELETE', '/faults', {})
  const open = async () =>
    (await app.admin.query(`select id, kind, step, state from task where status in ('pending', 'running')`))
      .rows
  await eventually(
    async () => ((await open()).length === 0 ? true : undefined),
    'every task has ended',
    settleMs,
  ).catch(async (error: unknown) => {
    throw new Error(`still open: ${JSON.stringify(await open())}`, { cause: error })
  })

  const ids = taken.flat()
  assert.equal(new Set(ids).size, orders, 'every key has a task of its own')
  const { rows } = await app.admin.query<Row>(
    `select id, coalesce(execution_id, id) as execution, kind, status, outcome, result, data from task where kind like 'perp_%' and kind <> 'perp_setup'`,
  )
  assert.deepEqual(
    new Set(rows.map(({ id }) => id)),
    new Set(ids),
    'no task beside those that were acknowledged',
  )
  const truth = await venue<VenueState>('GET', '/effects')
  const placedOrders = new Set(traders.map(({ address }) => address.toLowerCase()))
  truth.accounts = truth.accounts.filter(({ address }) => placedOrders.has(address.toLowerCase()))
  const { filled, orders: placed } = compare(rows, truth)
  assert.equal(truth.conservation.perp, '0.0')
  assert.deepEqual([...new Set(Object.values(truth.conservation.open))], [0])
  assert.equal(await ledgerDrift(app.admin), 0)
  assert.equal(await countReconciled(app), accounts)
  const ends = Object.entries(Object.groupBy(rows, ({ status }) => status)).map(
    ([status, list]) => `${list?.length} ${status}`,
  )
  t.diagnostic(
    `${orders} orders in ${seconds.toFixed(1)} s (${(orders / seconds).toFixed(0)} a second): ${ends.join(', ')}; ` +
      `${placed} orders at the venue, ${filled} filled; ${gatewayPool.kills()} kills, injected failures ${struck.join(', ')}`,
  )
  assert.ok(
    gatewayPool.kills() >= killsMin && struck.every((count) => count > 0),
    'the injected failures applied',
  )
})
