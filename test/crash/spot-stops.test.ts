/** Stops held by the gateways, while prices fall, replies are lost and the gateways are killed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { bearer, eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { creditAtVenue } from '../harness/venue-gateway.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { type Customer, createCrashApp } from './crash-app.ts'
import { createGatewayPool } from './gateway-pool.ts'

const holders = bySize({ short: 8, full: 24, nightly: 200 })
/** A starting gateway takes over the lease of a market first, so one must run for a while to sell at all. */
const killEveryMs = 4_000
const settleMs = 240_000

type TaskReply = { outcome: string | null; result: { sl_oids: string[]; tp_oids: string[] } }
type VenueState = {
  conservation: { spot: Record<string, string> }
  accounts: {
    address: string
    spot: Record<string, { total: string; hold: string }>
    orders: { oid: number; cloid?: string; side: string; status: string }[]
    fills: { oid: number; side: string }[]
  }[]
}

test(`the stops of ${holders} holders sell once each, whichever gateway dies`, async (t) => {
  const seed = proofSeed('spot stops')
  const app = await createCrashApp()
  const gatewayPool = createGatewayPool(() => app.gateway({ FAUCET_URL: 'off', DATABASE_POOL: '30' }))
  t.after(async () => {
    await gatewayPool.close()
    await app[Symbol.asyncDispose]()
  })
  const venue = async <B>(method: string, path: string, body?: object): Promise<B> => {
    const reply = await http<B>(`${app.control}/venues/hyperliquid${path}`, {
      method,
      ...(body && { body }),
    })
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }
  const price = (usd: number) => venue('POST', '/price', { coin: '@1', price: usd })
  const post = async (at: Gateway, who: Customer, path: string, body: object): Promise<TaskReply> => {
    const headers = { ...bearer(who), 'idempotency-key': `${path}-${who.address}` }
    const answer = await http<TaskReply>(`${at.url}/v1/${path}?wait=true`, { method: 'POST', headers, body })
    assert.equal(answer.body.outcome, 'executed', JSON.stringify(answer.body))
    return answer.body
  }
  const newHolder = async (at: Gateway, n: number): Promise<Customer> => {
    const agent = await newAgent(at.url)
    const { body } = await http<{ wallets: { address: string; chain_type: string }[] }>(
      `${at.url}/v1/wallets`,
      { headers: bearer(agent) },
    )
    const address = body.wallets.find(({ chain_type }) => chain_type === 'evm')!.address
    const who = { ...agent, address }
    await creditAtVenue(venue, { evm: address, amount: '500' })
    await post(at, who, 'perp/setup', {})
    const sl_price = String(39 - (n % 8))
    await post(at, who, 'spot_venue/buy', { asset: 'HYPE', size: 2, tp_price: 60, sl_price })
    return who
  }

  await venue('POST', '/settings', { walking: false })
  await price(40)
  await gatewayPool.fillAll()
  const [first] = gatewayPool.ready()
  const people: Customer[] = []
  for (let at = 0; at < holders; at += 8)
    people.push(...(await Promise.all(Array.from({ length: 8 }, (_, n) => newHolder(first!, at + n)))))

  const faults = [
    { endpoint: 'exchange', effect: 'dropReply', rate: 0.2 },
    { endpoint: 'exchange', effect: 'reset', rate: 0.1 },
    { endpoint: 'info', effect: 'status', status: 429, rate: 0.02 },
  ]
  for (const [at, fault] of faults.entries()) await venue('POST', '/faults', { ...fault, seed: seed + at })
  let falling = true
  const storm = (async () => {
    while (falling) {
      gatewayPool.killOne()
      await delay(killEveryMs)
    }
  })()
  const startedAt = performance.now()
  for (let usd = 39; usd >= 31; usd -= 1) {
    await price(usd)
    await delay(700)
  }
  const statuses = async () =>
    (
      await app.admin.query<{ status: string; leg: string; n: number }>(
        `select status, input->>'leg' as leg, count(*)::integer as n from trigger_order group by 1, 2 order by 1, 2`,
      )
    ).rows
  const open = async () =>
    (await app.admin.query(`select kind, step, state from task where status in ('pending', 'running')`)).rows
  await eventually(
    async () => {
      const armed = (await statuses()).some(({ status }) => status === 'armed')
      return armed || (await open()).length > 0 ? undefined : true
    },
    'every stop has fired and every sale has ended',
    settleMs,
  ).catch(async (error: unknown) => {
    throw new Error(JSON.stringify([await statuses(), await open()]), { cause: error })
  })
  falling = false
  const seconds = (performance.now() - startedAt) / 1_000
  await storm
  await venue('DELETE', '/faults', {})

  const { rows: sales } = await app.admin.query<{ user_id: string; outcome: string }>(
    `select user_id, outcome, error, data -> 'since_ms' as since_ms, input from task where kind = 'spot_trigger'`,
  )
  const executed = sales.filter(({ outcome }) => outcome === 'executed')
  const others = sales.filter(({ outcome }) => outcome !== 'executed')
  assert.equal(executed.length, holders, JSON.stringify(others))
  assert.equal(new Set(executed.map(({ user_id }) => user_id)).size, holders)
  const truth = await venue<VenueState>('GET', '/effects')
  for (const { address } of people) {
    const account = truth.accounts.find((each) => each.address === address.toLowerCase())!
    const reply = JSON.stringify(account)
    // A stop that found no buyer, because prices fell past its limit, is armed again.
    const taken = account.orders.filter(({ status }) => status !== 'iocCancelRejected')
    assert.deepEqual(taken.map(({ side }) => side).sort(), ['A', 'B'], reply)
    assert.equal(new Set(account.fills.map(({ oid }) => oid)).size, 2, reply)
    assert.ok(Number(account.spot[2]?.total) < 0.01 && Number(account.spot[2]?.hold) === 0, reply)
  }
  const ends = await statuses()
  assert.deepEqual(
    ends.filter(({ leg }) => leg === 'tp').map(({ status, n }) => [status, n]),
    [['cancelled', holders]],
  )
  for (const left of Object.values(truth.conservation.spot)) assert.equal(Number(left), 0)
  assert.equal(await ledgerDrift(app.admin), 0)
  t.diagnostic(
    `${holders} stops in ${seconds.toFixed(1)} s, ${sales.length} sales begun, ${gatewayPool.kills()} kills`,
  )
  assert.ok(gatewayPool.kills() > 1, 'the injected failures applied')
})
