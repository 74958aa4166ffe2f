/** kill -9 at the boundaries of tasks at the prediction market: exactly one effect of each. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, type Gateway, http, newAgent } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import {
  cashOf,
  type Ended,
  executed,
  type Market,
  marketBy,
  micros,
  predictionVenue,
  sellable,
  setUp,
  statusOf,
  type VenueRecord,
} from '../journeys/predmkt-calls.ts'
import { type Person, personOf } from '../journeys/users.ts'
import { polygon, type World, worldOf } from '../journeys/world.ts'
import { bySize, isShort, proofSeed } from '../proof/support/seed.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { killAtSample } from './failpoints.ts'
import { randomOf } from './venue-traders.ts'

const pointPattern =
  /^(db:(task_accept|task_step|task_reserve|user_event_append|policy_lock|update nonce_sequence|select task|commit|select effect|select tx_attempt|insert prediction_\w+|with prediction_fill|update prediction_\w+|select prediction_\w+)|net:(polymarket|polygon))/
const passesOf = (name: string) => (/task_step|net:/.test(name) ? 3 : 1)
const pointsMax = bySize({ short: 1, full: 5, nightly: Number.POSITIVE_INFINITY })
const env = { FAUCET_URL: 'off', LEASE_MS: '500', POLICY_DAY_USD_MAX: '10000000', SPONSOR_USER_DAY: '5' }
/** A market of each protocol, whose prices stay where they are put. */
const slugs = ['ben-summer-wins-the-mayoral-race', 'beta-is-the-largest-company']
const price = 0.4
/** Each market is resolved once, so that a redemption has so many. */
const redeemedSlugs = [
  'fed-cuts-rates-in-december',
  'new-phone-before-march',
  'bitcoin-up-or-down-today',
  'alpha-is-the-largest-company',
  'bitcoin-reaches-250k-this-year',
  'recession-declared-next-year',
  'ada-winter-wins-the-mayoral-race',
]

let app: CrashApp
let survivor: Gateway
let world: World
let venue: ReturnType<typeof predictionVenue>
let person: Person
let wallet: string
let markets: Market[]
const launched = new Set<Gateway>()
let runs = 0

const launch = async (failpoint: Record<string, string>) => {
  const gateway = await app.gateway({ ...env, ...failpoint })
  launched.add(gateway)
  return gateway
}
before(async () => {
  app = await createCrashApp({ ownWorld: 'the markets of this one are resolved' })
  survivor = await app.gateway(env)
  world = await worldOf(app.control)
  venue = predictionVenue(app.control)
  person = await personOf(survivor.url, await newAgent(survivor.url))
  await setUp(person)
  wallet = (await statusOf(person)).safe_address
  await world.fund(polygon, person.evm, 'USDC', '2000')
  await executed(person, '/predmkt/fund-safe', { amount_usd: '500' })
  for (const slug of slugs) await venue('POST', '/price', { market: slug, price })
  markets = await Promise.all(slugs.map((slug) => marketBy(person, slug)))
})
after(async () => {
  await Promise.all([...launched].map((gateway) => gateway.kill()))
  await survivor?.stop()
  await app?.[Symbol.asyncDispose]()
})

/** What the chain shows of the user. */
async function held(outcomeId = '') {
  const { pusd, shares } = await venue<{ pusd: string; shares: Record<string, string> }>(
    'GET',
    `/balances?wallet=${wallet}&tokens=${outcomeId}`,
  )
  const usdc = await world.balance(polygon, person.evm, world.manifest.contracts[polygon]!.usdc)
  return { pusd: micros(pusd), shares: micros(shares[outcomeId] ?? '0'), usdc }
}
const ordersOf = async (side: string) =>
  (await venue<VenueRecord>('GET', `/effects?wallet=${wallet}`)).orders.filter((each) => each.side === side)

type Case = {
  title: string
  shortPoint: string
  needed: readonly RegExp[]
  pointsMax?: number
  /** Does the work at the gateway, and what it left at another one; then checks that it had one effect. */
  run(at: string, victim: Gateway, arm: () => void): Promise<unknown>
}

/** The answer to a key once its task has ended; any gateway gives it. */
async function completed(path: string, body: object, { key, who = person }: { key: string; who?: Person }) {
  const task = await eventually(async () => {
    const reply = await who.call<Ended>(`POST ${path}?wait=true&timeout=20`, { body, key })
    assert.ok(reply.status === 200 || reply.status === 202, JSON.stringify(reply.body))
    return reply.body.status === 'pending' || reply.body.status === 'running' ? undefined : reply.body
  }, `the end of ${path} ${key}`)
  assert.deepEqual([task.status, task.outcome], ['completed', 'executed'], `${key}: ${JSON.stringify(task)}`)
  return task
}

type Request = { path: string; body: object; at: string; victim: Gateway; arm: () => void; who?: Person }
/** Sends a request to a gateway that may die of it, and the same request to the other one. */
async function request({ path, body, at, victim, arm, who = person }: Request): Promise<Ended> {
  const key = `${runs++}-${at.replaceAll(' ', '-')}`
  arm()
  await who.call(`POST ${path}?wait=true&timeout=60`, { body, key, at: victim.url }).catch(() => undefined)
  return completed(path, body, { key, who })
}

const relayNonce = async (owner: string, type = 'WALLET'): Promise<string> => {
  const { relayer } = world.manifest.urls.polymarket
  return (await http<{ nonce: string }>(`${relayer}/nonce?address=${owner}&type=${type}`)).body.nonce
}
const countOf = async (sql: string, values: unknown[]): Promise<number> =>
  Number((await app.admin.query<{ count: string }>(sql, values)).rows[0]!.count)
const relayed = [/^db:task_step:before/, /^net:polymarket:after/]

const buyTerms = (market: Market, amount: string) => ({
  outcome_id: market.outcomes[0]!.outcome_id,
  side: 'BUY',
  order_type: 'FOK',
  amount_usd: amount,
})
/** The exit of a purchase once it is in a state. */
const exitIn = (orderId: string, states: readonly string[], at: string) =>
  eventually(
    async () => {
      const { rows } = await app.admin.query<{ id: string; state: string; order_id: string | null }>(
        'select id, state, order_id from prediction_exit where entry_order_id = $1 and state = any($2)',
        [orderId, states],
      )
      return rows[0]
    },
    `${at}: the exit is ${states.join(' or ')}`,
  )

const cases: readonly Case[] = [
  {
    title: 'setup',
    shortPoint: 'net:polymarket:after@3',
    needed: relayed,
    async run(at, victim, arm) {
      const who = await personOf(survivor.url, await newAgent(survivor.url))
      await who.call('POST /predmkt/disclaimer/acknowledge', { body: {} })
      await request({ path: '/predmkt/setup', body: {}, at, victim, arm, who })
      assert.equal((await statusOf(who)).setup_complete, true, at)
      assert.equal(await relayNonce(who.evm), '1', `${at}: one batch of approvals`)
      const keys = `select count(*) from prediction_key where lower(owner_address) = lower($1)`
      assert.equal(await countOf(keys, [who.evm]), 1, at)
    },
  },
  {
    title: 'move out of an older wallet',
    shortPoint: 'net:polymarket:after@2',
    needed: relayed,
    async run(at, victim, arm) {
      const who = await personOf(survivor.url, await newAgent(survivor.url))
      await setUp(who)
      const { safe } = await venue<{ safe: string }>('POST', '/safe', { owner: who.evm })
      await venue('POST', '/credit', { wallet: safe, amount: '7' })
      await request({ path: '/predmkt/setup/v2', body: {}, at, victim, arm, who })
      assert.equal(await cashOf(who), 7_000_000n, at)
      assert.equal(await relayNonce(who.evm, 'SAFE'), '1', `${at}: one batch of the older wallet`)
    },
  },
  {
    title: 'fund',
    shortPoint: 'db:task_step:before',
    needed: [/^db:task_step:before/, /^net:polygon:after/],
    async run(at, victim, arm) {
      const was = await held()
      await request({ path: '/predmkt/fund-safe', body: { amount_usd: '5' }, at, victim, arm })
      const is = await held()
      assert.deepEqual([is.pusd - was.pusd, was.usdc - is.usdc], [5_000_000n, 5_000_000n], at)
    },
  },
  {
    title: 'order',
    shortPoint: 'net:polymarket:after@3',
    needed: [...relayed, /^db:with prediction_fill:after/],
    async run(at, victim, arm) {
      const market = markets[runs % 2]!
      const outcomeId = market.outcomes[0]!.outcome_id
      const [was, orders] = await Promise.all([held(outcomeId), ordersOf('BUY')])
      const body = buyTerms(market, '2')
      const { result } = await request({ path: '/predmkt/order', body, at, victim, arm })
      const is = await held(outcomeId)
      assert.equal((await ordersOf('BUY')).length, orders.length + 1, `${at}: one order`)
      assert.equal(is.shares - was.shares, micros(result.settled_shares!), at)
      assert.equal(was.pusd - is.pusd, micros(result.total_usd!), at)
      const fills = 'select count(*) from prediction_fill where order_id = $1'
      assert.equal(await countOf(fills, [result.order_id]), 1, at)
    },
  },
  {
    title: 'take-profit that rests',
    shortPoint: 'db:insert prediction_order:after',
    needed: [...relayed, /^db:update prediction_exit:after/],
    async run(at, _victim, arm) {
      const market = markets[runs++ % 2]!
      const terms = { ...buyTerms(market, '4'), take_profit_price: '0.9' }
      const bought = await executed(person, '/predmkt/order', terms)
      const sales = await ordersOf('SELL')
      arm()
      const { order_id: id } = await exitIn(bought.result.order_id!, ['resting'], at)
      const made = (await ordersOf('SELL')).slice(sales.length)
      assert.deepEqual(
        made.map((each) => [each.id, each.status, micros(each.size)]),
        [[id, 'LIVE', sellable(bought.result.settled_shares!)]],
        `${at}: one sale rests`,
      )
      await completed('/predmkt/order/cancel', { order_id: id }, { key: `cancel-${runs}` })
    },
  },
  {
    title: 'take-profit that fires',
    shortPoint: 'db:insert prediction_order:after',
    needed: [...relayed, /^db:update prediction_exit:after/],
    async run(at, _victim, arm) {
      const slot = runs++ % 2
      const market = markets[slot]!
      const outcomeId = market.outcomes[0]!.outcome_id
      const was = await held(outcomeId)
      // Fewer shares than the market's smallest order are watched by the gateway.
      const terms = { ...buyTerms(market, '1.5'), take_profit_price: '0.45' }
      const bought = await executed(person, '/predmkt/order', terms)
      await exitIn(bought.result.order_id!, ['watched'], at)
      const sales = await ordersOf('SELL')
      arm()
      await venue('POST', '/price', { market: slugs[slot], price: 0.5 })
      await exitIn(bought.result.order_id!, ['filled'], at)
      await venue('POST', '/price', { market: slugs[slot], price })
      const made = (await ordersOf('SELL')).slice(sales.length)
      assert.deepEqual(
        made.map((each) => [each.status, micros(each.matched)]),
        [['MATCHED', sellable(bought.result.settled_shares!)]],
        `${at}: one sale`,
      )
      const rest = micros(bought.result.settled_shares!) - sellable(bought.result.settled_shares!)
      assert.equal((await held(outcomeId)).shares, was.shares + rest, at)
    },
  },
  {
    title: 'redeem',
    shortPoint: 'net:polymarket:after@3',
    needed: relayed,
    pointsMax: 4,
    async run(at, victim, arm) {
      const slug = redeemedSlugs.shift()
      assert.ok(slug, 'no market is left to resolve')
      await venue('POST', '/price', { market: slug, price })
      const market = await marketBy(person, slug)
      const bought = await executed(person, '/predmkt/order', buyTerms(market, '2'))
      await venue('POST', '/resolve', { market: slug, outcome: 'yes' })
      const was = await held()
      const nonce = BigInt(await relayNonce(person.evm))
      const body = { condition_id: market.condition_id }
      const { result } = await request({ path: '/predmkt/redeem', body, at, victim, arm })
      assert.equal(result.payout_usd, bought.result.settled_shares, at)
      assert.equal((await held()).pusd - was.pusd, micros(bought.result.settled_shares!), at)
      assert.equal(BigInt(await relayNonce(person.evm)), nonce + 1n, `${at}: one batch`)
      const rows = 'select count(*) from prediction_redemption where market_id = $1'
      assert.equal(await countOf(rows, [market.condition_id]), 1, at)
    },
  },
  {
    title: 'withdraw',
    shortPoint: 'net:polymarket:after@2',
    needed: [...relayed, /^net:polygon:after/],
    async run(at, victim, arm) {
      const was = await held()
      const nonce = BigInt(await relayNonce(person.evm))
      await request({ path: '/predmkt/withdraw', body: { amount_usdc: '2' }, at, victim, arm })
      const is = await held()
      assert.deepEqual([was.pusd - is.pusd, is.usdc - was.usdc], [2_000_000n, 2_000_000n], at)
      assert.equal(BigInt(await relayNonce(person.evm)), nonce + 1n, `${at}: one transfer`)
    },
  },
]

/** A short run kills a task of one of the cases, drawn by the seed. */
const chosen = isShort
  ? [cases[Math.floor(randomOf(proofSeed('case of the prediction market'))() * cases.length)]!]
  : cases

for (const { title, run, ...sample } of chosen)
  test(`killed at any point of a ${title}, it happens exactly once`, async (t) => {
    const reached = await killAtSample({
      suite: `points of a ${title} at the prediction market`,
      pattern: pointPattern,
      passesOf,
      launch,
      ...sample,
      max: Math.min(pointsMax, sample.pointsMax ?? pointsMax),
      async run(at, victim, arm) {
        await run(at, victim, arm)
        return victim.child.signalCode === 'SIGKILL'
      },
    })
    assert.equal(await ledgerDrift(app.admin), 0)
    assert.equal(
      await countOf('select count(*) from prediction_account where relayer_task_id is not null', []),
      0,
    )
    t.diagnostic(reached)
  })
