/**
 * Seeded orders of many users on both protocols while the venue is at its worst and gateways are killed: no order twice,
 * each task reports what the venue has recorded, and shares and collateral on the chain equal the fills to the unit.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { lateArrivalMs } from '#features/predmkt/unknown-outcome.ts'
import { rpcAt } from '#world/evm/rpc.ts'
import type { Address } from '#world/polymarket/chain/chain-terms.ts'
import type { Effects } from '../../world/conformance/prediction/prediction-world.ts'
import {
  assertBalances,
  assertTradesAreSettlements,
  countTrades,
  openSettlementLog,
  readBalances,
  walletsOf,
} from '../../world/conformance/prediction/storm-audit.ts'
import { eventually } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { cashOf, type Ended, micros, predictionVenue } from '../journeys/predmkt-calls.ts'
import { worldOf } from '../journeys/world.ts'
import { bySize, isShort, proofSeed } from '../proof/support/seed.ts'
import {
  confirmedFills,
  expectedProfit,
  ledgerOf,
  shownFills,
  shownProfit,
  sum,
} from '../venue/prediction-ledger.ts'
import {
  chainOf,
  effectsOf,
  newTraders,
  type PredictionTrader,
  type Venue,
  type VenueMarket,
} from '../venue/prediction-traders.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { createGatewayPool, type GatewayPool } from './gateway-pool.ts'
import { randomOf } from './venue-traders.ts'

const size = bySize({
  short: { orders: 60, users: 6, kills: 1, inFlight: 3, spellEvery: 8 },
  full: { orders: 600, users: 20, kills: 6, inFlight: 4, spellEvery: 40 },
  nightly: { orders: 5_000, users: 50, kills: 40, inFlight: 4, spellEvery: 125 },
})
/** Times of the venue in thousandths of those of its worst preset. */
const pace = bySize({ short: 0.08, full: 0.5, nightly: 1 })
/** An order whose repetition is refused after a lost reply is looked up for a while before it ends. */
const settleMs = lateArrivalMs + bySize({ short: 60_000, full: 300_000, nightly: 900_000 })
/** Every fifth user has so little that orders compete for it. */
const cashOfUser = (number: number) => (number % 5 === 4 ? '30' : '600')

const lag = (rate: number, minMs: number, maxMs: number) => ({
  rate,
  minMs: Math.round(minMs * pace),
  maxMs: Math.round(maxMs * pace),
})
/** The rates of the preset `stormy` or more, so that a short run has each trouble too. */
const storm = {
  ...Object.fromEntries(
    ['orders', 'trades', 'balance', 'data', 'gamma', 'socket'].map((name) => [
      `${name}Lag`,
      lag(0.5, 0, 5_000),
    ]),
  ),
  settleDelay: lag(1, 500, 5_000),
  confirmDelay: lag(1, 500, 5_000),
  failRate: 0.2,
  retryRate: 0.2,
  unbroadcastRate: 0.3,
  phantomRate: 0.05,
  queue: lag(0.05, 500, 20_000),
  busyRate: 0.03,
  lostReplyRate: 0.05,
  lateReply: lag(0.05, 1_000, 15_000),
  htmlRate: 0.03,
  streamDropMs: Math.max(1_000, 15_000 * pace),
  negRiskContradictionRate: 0.02,
  versionMismatchRate: 0.02,
  versionContradictionRate: 0.02,
  ordersPerSecond: 40,
  cancelsPerSecond: 80,
  eoaMakers: 'refused',
  autoRedeem: { rate: 0, delayMs: 0 },
}

type Trader = PredictionTrader & { random: () => number; resting: string[] }
type Storm = {
  app: CrashApp
  venue: Venue
  pool: GatewayPool
  traders: Trader[]
  markets: VenueMarket[]
  random: () => number
  /** Orders that have a task, and requests for one that are not answered. */
  placed: number
  inFlight: number
  /** Ends every loop. */
  hasFailed: boolean
  refused: Record<string, number>
}

const tenThousand = 10_000
const inTicks = ({ tick }: VenueMarket): number => Number(micros(tick)) / 100
const fairOf = ({ fair }: VenueMarket, outcome: number): number => {
  const first = Number(micros(fair)) / 100
  return outcome === 0 ? first : tenThousand - first
}
const priceText = (price: number): string => String(price / tenThousand)
const pick = <T>(random: () => number, list: readonly T[]): T => list[Math.floor(random() * list.length)]!

type OrderBody = Record<string, string | number | boolean>
type Draft = { body: OrderBody; price: number; tick: number }

/** Around the price: half of the orders meet those of other users, some the quotes of the venue's own maker. */
function draftOf({ markets }: Storm, { random }: Trader): Draft {
  const market = pick(random, markets)
  const outcome = random() < 0.5 ? 0 : 1
  const [price, tick] = [fairOf(market, outcome), inTicks(market)]
  const body = { outcome_id: market.tokens[outcome]!, side: 'BUY' }
  return { body, price, tick }
}

/** Shares for 2 to 10 dollars, no fewer than the smallest order. */
const sharesFor = (random: () => number, price: number): string =>
  String(Math.max(6, Math.round(((2 + random() * 8) * tenThousand) / price)))

const kinds = ['fok', 'fak', 'rest', 'cross', 'till', 'post', 'sell', 'sell', 'offer', 'guarded'] as const

/** A sale of a part of what the wallet has; undefined where it has too little of everything. */
async function saleOf(
  { venue, markets }: Storm,
  { wallet, random }: Trader,
  isOffer: boolean,
): Promise<OrderBody | undefined> {
  const tokens = markets.flatMap((market) =>
    market.tokens.map((token, outcome) => ({ market, token, outcome })),
  )
  const { shares } = await chainOf(
    venue,
    wallet,
    tokens.map(({ token }) => token),
  )
  const held = tokens.filter(({ token }) => shares.get(token)! >= 6_000_000n)
  if (held.length === 0) return undefined
  const { market, token, outcome } = pick(random, held)
  const hundredths = Number(shares.get(token)! / 10_000n)
  const part = String(Math.max(500, Math.floor(hundredths * (0.3 + random() * 0.7))) / 100)
  const sale = { outcome_id: token, side: 'SELL' }
  if (!isOffer) return { ...sale, order_type: random() < 0.5 ? 'FOK' : 'FAK', amount_shares: part }
  return { ...sale, price: priceText(fairOf(market, outcome)), size: part }
}

async function orderOf(now: Storm, trader: Trader): Promise<OrderBody> {
  const { random } = trader
  const kind = pick(random, kinds)
  const sale = kind === 'sell' || kind === 'offer' ? await saleOf(now, trader, kind === 'offer') : undefined
  if (sale) return sale
  const { body, price, tick } = draftOf(now, trader)
  const amount = { amount_usd: (1.5 + random() * 8).toFixed(2) }
  const limit = (at: number) => ({ price: priceText(at), size: sharesFor(random, price) })
  switch (kind) {
    case 'rest':
      return { ...body, ...limit(price) }
    case 'cross':
      return { ...body, ...limit(price + 2 * tick) }
    case 'till':
      return { ...body, ...limit(price), order_type: 'GTD', expiration_seconds: 600 }
    case 'post':
      return { ...body, ...limit(price - tick), post_only: true }
    case 'guarded':
      return {
        ...body,
        order_type: 'FAK',
        amount_usd: String(Math.ceil((price * 12) / tenThousand) + 2),
        take_profit_price: priceText(price + 2 * tick),
        stop_loss_price: priceText(Math.max(tick, price - 10 * tick)),
      }
    case 'fok':
      return { ...body, order_type: 'FOK', ...amount }
    default:
      return { ...body, order_type: 'FAK', ...amount, worst_price: priceText(price + tick) }
  }
}

/** Expected refusals; there is no task then. */
const refusals = [
  'insufficient_balance',
  'insufficient_liquidity',
  'no_position',
  'shares_not_settled',
  'market_closed',
  'venue_restricted',
  'validation',
  'not_found',
]
const answerMsMax = 300_000
const refusedPauseMs = 200

/** Repeats the same key at any living gateway until it has an outcome; the refusal where there is no task. */
async function submit(
  { pool }: Storm,
  { person, random }: Trader,
  { path, body, key }: { path: string; body: object; key: string },
): Promise<Ended | string> {
  let last: unknown
  const untilMs = performance.now() + answerMsMax
  for (let waitMs = 20; performance.now() < untilMs; waitMs = Math.min(waitMs * 2, 1_000)) {
    const ready = pool.ready()
    const at = ready[Math.floor(random() * ready.length)]
    const answer =
      at &&
      (await person
        .call<Ended & { code?: string }>(`POST ${path}?wait=true&timeout=10`, { body, key, at: at.url })
        .catch((error: unknown) => {
          last = error
        }))
    if (answer?.status === 200 || answer?.status === 202) return answer.body
    if (answer && answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
      const code = answer.body.code ?? ''
      assert.ok(refusals.includes(code), `${key} ${JSON.stringify(body)}: ${JSON.stringify(answer.body)}`)
      return code
    }
    if (answer) last = answer.body
    await delay(waitMs)
  }
  throw new Error(`${key} was never answered: ${JSON.stringify(last)}`)
}

/** Places one order after the other, and cancels now and then; returns the tasks. */
async function trade(now: Storm, trader: Trader, series: string): Promise<string[]> {
  const { random } = trader
  const taken: string[] = []
  for (let n = 0; now.placed + now.inFlight < size.orders && !now.hasFailed; n++) {
    if (random() < 0.12 && trader.resting.length > 0) {
      const [id] = trader.resting.splice(Math.floor(random() * trader.resting.length), 1)
      const body = random() < 0.2 ? { cancel_all: true } : { order_id: id }
      await submit(now, trader, { path: '/predmkt/order/cancel', body, key: `${series}-${n}-cancel` })
    }
    now.inFlight += 1
    const body = await orderOf(now, trader)
    const reply = await submit(now, trader, { path: '/predmkt/order', body, key: `${series}-${n}` }).finally(
      () => {
        now.inFlight -= 1
      },
    )
    if (typeof reply === 'string') {
      now.refused[reply] = (now.refused[reply] ?? 0) + 1
      await delay(refusedPauseMs)
      continue
    }
    now.placed += 1
    taken.push(reply.task_id)
    if (reply.result?.order_status === 'live' && reply.result.order_id)
      trader.resting.push(reply.result.order_id)
  }
  return taken
}

/** Troubles that come and go, one after the other, each so many orders long. */
const spells: readonly {
  name: string
  begin: (now: Storm) => Promise<unknown>
  end: (now: Storm) => Promise<unknown>
}[] = [
  {
    name: 'engine restart that loses all orders',
    begin: ({ venue }) =>
      venue('POST', '/restart', { forMs: 9_000 * pace, nextMs: 6_000 * pace, wipe: true }),
    end: async () => {},
  },
  {
    name: 'balances that stay as they were known',
    begin: ({ venue }) => venue('POST', '/realism', { balanceReads: 'untilUpdate' }),
    end: ({ venue }) => venue('POST', '/realism', { balanceReads: 'lagging' }),
  },
  {
    name: 'other ticks',
    begin: ({ venue, markets }) => setTicks(venue, markets, (tick) => (tick === '0.01' ? 0.001 : 0.01)),
    end: ({ venue, markets }) => setTicks(venue, markets, Number),
  },
  {
    name: 'prices that move',
    begin: (now) => setPrices(now, 2),
    end: (now) => setPrices(now, 0),
  },
  {
    name: 'few orders a second',
    begin: ({ venue }) => venue('POST', '/realism', { ordersPerSecond: 2, cancelsPerSecond: 4 }),
    end: ({ venue }) => venue('POST', '/realism', { ordersPerSecond: 40, cancelsPerSecond: 80 }),
  },
  {
    name: 'cancels alone',
    begin: ({ venue }) => venue('POST', '/mode', { mode: 'cancelOnly', forMs: 9_000 * pace }),
    end: async () => {},
  },
  {
    name: 'connections that break',
    begin: async ({ venue }) => {
      await venue('POST', '/faults', { endpoint: 'clob', effect: 'dropReply', rate: 0.1 })
      await venue('POST', '/faults', { endpoint: 'clob', effect: 'reset', rate: 0.05 })
      await venue('POST', '/ws/drop')
    },
    end: ({ venue }) => venue('DELETE', '/faults'),
  },
]

const setTicks = async (venue: Venue, markets: readonly VenueMarket[], of: (tick: string) => number) => {
  // A finer tick is in the grid of a coarser one, which ends no order.
  for (const { slug, tick } of markets.filter((_, at) => at % 3 === 0))
    await venue('POST', '/tick-size', { market: slug, tick: of(tick) })
}

const setPrices = async ({ venue, markets, random }: Storm, ticksMax: number) => {
  for (const market of markets) {
    const away = Math.round((random() * 2 - 1) * ticksMax) * inTicks(market)
    await venue('POST', '/price', { market: market.slug, price: (fairOf(market, 0) + away) / tenThousand })
  }
}

/** By the count of orders, so that a slow machine has the same storm. */
async function blow(now: Storm, read: () => Promise<void>): Promise<string[]> {
  const { venue, pool, random } = now
  const names: string[] = []
  const reached = (orders: number) =>
    eventually(async () => now.placed >= orders || now.hasFailed, `order ${orders}`, answerMsMax * 2)
  const killAt = Array.from(
    { length: size.kills },
    (_, kill) => ((kill + 0.2 + random() * 0.6) * size.orders) / size.kills,
  )
  let current: (typeof spells)[number] | undefined
  for (let spell = 0; spell * size.spellEvery < size.orders; spell++) {
    const start = spell * size.spellEvery
    await reached(start)
    await current?.end(now)
    current = spells[spell % spells.length]!
    names.push(current.name)
    await current.begin(now)
    await read()
    for (const at of killAt.filter((each) => each >= start && each < start + size.spellEvery)) {
      await reached(Math.floor(at))
      pool.killOne()
    }
  }
  await reached(size.orders)
  await venue('POST', '/realism', { preset: 'quiet' })
  await venue('POST', '/mode', { mode: 'open' })
  await venue('DELETE', '/faults')
  return names
}

type TaskRow = {
  id: string
  kind: string
  status: string
  outcome: string | null
  result: Record<string, string> | null
  error: { code: string } | null
  orders: string[]
}
const orderTasks = async ({ admin }: CrashApp): Promise<TaskRow[]> =>
  (
    await admin.query<TaskRow>(
      `select t.id, t.kind, t.status, t.outcome, t.result, t.error,
         (select coalesce(json_agg(e.external_id), '[]') from effect e
           where e.task_id = t.id and e.kind = 'prediction_order') as orders
       from task t where t.kind in ('predmkt_order', 'predmkt_exit')`,
    )
  ).rows

/** Ends what rests, and waits until nothing is under way. */
async function calm(now: Storm): Promise<Effects> {
  const { app, venue, traders } = now
  let round = 0
  const noneRests = async () => {
    const { orders } = await effectsOf(venue)
    const open = new Set(
      orders.filter(({ status }) => status === 'LIVE' || status === 'DELAYED').map(({ wallet }) => wallet),
    )
    const { rows } = await app.admin.query<{ wallet: string }>(
      `select distinct lower(a.wallet_address) as wallet from prediction_account a join prediction_exit x using (user_id)
         where x.state in ('waiting', 'resting', 'watched', 'executing')`,
    )
    for (const { wallet } of rows) open.add(wallet)
    const busy = traders.filter(({ wallet }) => open.has(wallet))
    round += 1
    for (const trader of busy)
      await submit(now, trader, {
        path: '/predmkt/order/cancel',
        body: { cancel_all: true },
        key: `calm-${round}-${trader.wallet}`,
      })
    return busy.length === 0
  }
  const running = async () =>
    (
      await app.admin.query(
        `select id, kind, step, state, data from task where status in ('pending', 'running') limit 5`,
      )
    ).rows
  // A task that was running may have placed an order meanwhile, and an exit may have begun another task.
  const isCalm = async () => (await noneRests()) && (await running()).length === 0 && (await noneRests())
  await eventually(isCalm, 'nothing rests or runs', settleMs).catch(async (cause: unknown) => {
    throw new Error(`still open: ${JSON.stringify(await running())}`, { cause })
  })
  await eventually(async () => (await effectsOf(venue)).openTrades === 0 || undefined, 'trades end', settleMs)
  return effectsOf(venue)
}

/** Each order of the venue is that of one task, each task has one at most, and says what became of it. */
function compareTasks(rows: readonly TaskRow[], { orders, trades }: Effects): Record<string, number> {
  const counts: Record<string, number> = {}
  const count = (name: string) => {
    counts[name] = (counts[name] ?? 0) + 1
  }
  const records = new Map(orders.map((order) => [order.id, order]))
  const taskOf = new Map<string, string>()
  const legs = trades.flatMap((trade) => trade.legs.map((leg) => ({ ...leg, status: trade.status })))
  for (const row of rows) {
    const at = JSON.stringify(row)
    const placed = row.orders.filter((id) => records.has(id))
    assert.ok(placed.length <= 1, `placed twice: ${at}`)
    const [id] = placed
    if (id !== undefined) {
      assert.ok(!taskOf.has(id), `an order of two tasks: ${at}`)
      taskOf.set(id, row.id)
    }
    const order = id === undefined ? undefined : records.get(id)
    const own = legs.filter(({ orderId }) => orderId === id)
    const confirmed = own.filter(({ status }) => status === 'CONFIRMED')
    const total = (field: 'shares' | 'cash' | 'fee') => sum(confirmed.map((leg) => micros(leg[field])))
    const beside = `${at} beside ${JSON.stringify(order)} ${JSON.stringify(own)}`
    assert.ok(
      order === undefined || ['MATCHED', 'CANCELED', 'CANCELED_MARKET_RESOLVED'].includes(order.status),
      beside,
    )
    count(`${row.kind} ${row.status} ${row.outcome} ${row.error?.code ?? row.result?.order_status}`)
    if (row.status === 'failed') {
      assert.equal(row.outcome, 'not_executed', beside)
      assert.equal(confirmed.length, 0, `not executed and yet filled: ${beside}`)
      continue
    }
    assert.equal(row.status, 'completed', beside)
    const { order_id, order_status: shown, settled_shares, fee_usd, total_usd } = row.result!
    assert.equal(order_id, id, beside)
    const net = order!.side === 'BUY' ? total('cash') + total('fee') : total('cash') - total('fee')
    if (shown === 'live') {
      assert.ok(micros(settled_shares!) <= total('shares'), beside)
      continue
    }
    assert.deepEqual(
      [settled_shares, fee_usd, total_usd].map((each) => micros(each!)),
      [total('shares'), total('fee'), net],
      beside,
    )
    const isWhole = order!.status === 'MATCHED' && own.length === confirmed.length
    assert.equal(row.outcome, isWhole ? 'executed' : 'partial', beside)
  }
  for (const { id } of orders) assert.ok(taskOf.has(id), `an order without a task: ${id}`)
  return counts
}

/** What the user reads of fills, positions, profit and cash is what venue and chain have. */
async function compareUser({ venue, markets }: Storm, trader: Trader, effects: Effects, clob: string) {
  const expected = {
    cash: (await chainOf(venue, trader.wallet, [])).pusd,
    fills: confirmedFills(effects, trader, markets),
    profit: await expectedProfit(clob, ledgerOf(effects, trader, markets), new Map()),
  }
  const shown = async () => ({
    cash: await cashOf(trader.person),
    fills: await shownFills(trader),
    profit: await shownProfit(trader),
  })
  const isSame = async () => isDeepStrictEqual(await shown(), expected) || undefined
  await eventually(isSame, 'the record', 20_000).catch(async () => {
    assert.deepEqual(await shown(), expected, trader.wallet)
  })
}

test(`${size.orders} orders of ${size.users} users in a storm: each at most once, and reported as the venue has it`, async (t) => {
  const seed = proofSeed('storm of prediction markets')
  const app = await createCrashApp({ ownWorld: 'the venue of this one is at its worst' })
  const venue = predictionVenue(app.control)
  const pool = createGatewayPool(() =>
    app.gateway({
      FAUCET_URL: 'off',
      LEASE_MS: '1000',
      POLICY_DAY_USD_MAX: '100000000',
      DATABASE_POOL: '30',
    }),
  )
  t.after(async () => {
    await pool.close()
    await app[Symbol.asyncDispose]()
  })
  await pool.fillAll()
  const { polymarket, evm } = (await worldOf(app.control)).manifest.urls
  const rpc = rpcAt(Number(new URL(evm['137']).port))
  t.after(() => rpc.close())
  const opened = await newTraders(pool.ready()[0]!.url, venue, { count: size.users, usd: cashOfUser })
  const traders = opened.map((each, at): Trader => ({ ...each, random: randomOf(seed + at), resting: [] }))
  const markets = await venue<VenueMarket[]>('GET', '/markets')
  const now: Storm = {
    app,
    venue,
    pool,
    traders,
    markets,
    random: randomOf(seed - 1),
    placed: 0,
    inFlight: 0,
    hasFailed: false,
    refused: {},
  }
  await setPrices(now, 0)
  const accounts = traders.map(({ wallet }) => ({ address: wallet as Address, changes: new Map() }))
  const before = await readBalances({ rpc }, walletsOf(accounts))
  const log = openSettlementLog({ rpc })
  await venue('POST', '/realism', { ...storm, seed })

  const startedMs = performance.now()
  const trading = traders.flatMap((trader, number) =>
    Array.from({ length: size.inFlight }, (_, series) => trade(now, trader, `storm-${number}-${series}`)),
  )
  const [names, ...taken] = await Promise.all([blow(now, log.read), ...trading]).catch((error: unknown) => {
    now.hasFailed = true
    throw error
  })
  const seconds = (performance.now() - startedMs) / 1_000
  await pool.fillAll()
  const effects = await calm(now)
  await log.read()

  const ids = taken.flat()
  assert.equal(new Set(ids).size, ids.length, 'every key has a task of its own')
  const rows = await orderTasks(app)
  assert.deepEqual(
    new Set(rows.filter(({ kind }) => kind === 'predmkt_order').map(({ id }) => id)),
    new Set(ids),
    'no task beside those that were acknowledged',
  )
  const counts = compareTasks(rows, effects)
  assertTradesAreSettlements(effects.trades, log.byKey)
  const after = await readBalances({ rpc }, walletsOf(accounts))
  assertBalances({ before, after, traders: accounts }, effects.trades)
  assert.equal(
    (await venue<{ isWhole: boolean }>('GET', '/backing')).isWhole,
    true,
    'each pair has its dollar',
  )
  // A living gateway answers for its user, whose own one may be gone.
  const { url } = pool.ready()[0]!
  for (const trader of traders) {
    const { call } = trader.person
    const person = {
      ...trader.person,
      call: ((route, options) => call(route, { at: url, ...options })) as typeof call,
    }
    await compareUser(now, { ...trader, person }, effects, polymarket.clob)
  }
  assert.equal(await ledgerDrift(app.admin), 0)
  const { rows: holds } = await app.admin.query('select * from account where held <> 0')
  assert.deepEqual(holds, [], 'nothing is held any more')

  const seen = countTrades(effects.trades)
  t.diagnostic(
    `${ids.length} orders in ${seconds.toFixed(1)} s, ${rows.length - ids.length} exits, ${pool.kills()} kills; trades: ${JSON.stringify(seen)}; refused: ${JSON.stringify(now.refused)}; tasks: ${JSON.stringify(counts)}; spells: ${names.length}`,
  )
  assert.equal(pool.kills(), size.kills)
  // In a short run it is left to chance whether a buyer meets a seller.
  for (const name of ['minted', 'failed', 'confirmed', ...(isShort ? [] : ['swapped'])])
    assert.ok((seen[name] ?? 0) > 0, `no ${name}`)
  for (const protocol of ['v1', 'v2'])
    assert.ok((seen[protocol] ?? 0) + (seen[`${protocol}NegRisk`] ?? 0) > 0, `no ${protocol}`)
})
