/**
 * The product and its venue in one process on an injected clock, with live strategies of day trades. The clock stands still
 * while work is under way, moves a little with each request, and goes to the next time at which something is due.
 */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { authorityOf } from '#engines/stored-callers/stored-caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { query } from '#store/query.ts'
import type { OrderWire } from '#world/hyperliquid/place-order.ts'
import { addFarmer, type Farmer } from '../crash/farmers.ts'
import { addUser, openInstance, type TestUser } from '../harness/instance.ts'
import { ownDatabase } from '../harness/own-database.ts'
import { type FarmedAsset, farmedAssets } from '../market/farming-day.ts'
import { randomOf } from '../market/price-walk.ts'
import {
  openSimulatedVenue,
  type SimulatedClock,
  type SimulatedVenue,
  simulatedClock,
} from './simulated-venue.ts'

const zones = [
  'America/New_York',
  'Europe/London',
  'Australia/Lord_Howe',
  'Africa/Cairo',
  'America/Santiago',
  'Asia/Kolkata',
]
export type SimulatedFarmer = Omit<Farmer, 'customer'> & {
  customer: { agentId: string; address: string; user: TestUser }
  /** The tasks of the orders that the person has given by hand. */
  byHand: string[]
}
/** What the venue does to the next entry in a market that it has not received yet. */
export type Trap = 'stop_rejected' | 'book_thin'

const env = { POLICY_TX_USD_MAX: '50000', POLICY_DAY_USD_MAX: '100000000', DATABASE_POOL: '30' }
const requestMs = 3
const stepMsMax = 1_000
const quietMs = 6_000
const settledMsMax = 600_000
const lostReplies = 0.02
const atOnce = 10
const whale = '0x00000000000000000000000000000000000000aa'
/** Times of the product are compared by these intervals; only the pause of the machine between two rounds is shorter. */
const intervals = {
  tickMs: 20,
  settleMs: 10_000,
  idleMs: 300_000,
  tradingMs: 5_000,
  activeMs: 600_000,
  leaseMs: 10_000,
}

type Order = { a: number; b: boolean; p: string; r: boolean } & Pick<OrderWire, 't'>
type ExchangeBody = { action?: { type?: string; grouping?: string; orders?: Order[] } }

/** Lets the clock pass with each request, closes the trap of a market on its next entry, and loses some replies. */
function wrapNetWith(deps: { clock: SimulatedClock; venue: SimulatedVenue; seed: number }) {
  const { clock, venue } = deps
  const random = randomOf(deps.seed)
  const traps = new Map<number, Trap>()
  const closed: Record<Trap | 'reply_lost', number> = { stop_rejected: 0, book_thin: 0, reply_lost: 0 }

  function closeTrap(orders: readonly Order[]): void {
    const [entry] = orders
    const trap = entry && traps.get(entry.a)
    const stop = orders.find(({ t }) => 'trigger' in t && t.trigger.tpsl === 'sl')
    if (!trap || !stop || !('trigger' in stop.t)) return
    traps.delete(entry.a)
    closed[trap] += 1
    if (trap === 'stop_rejected') {
      const price = Number(stop.t.trigger.triggerPx) * (entry.b ? 0.999 : 1.001)
      venue.submit({ kind: 'price', coin: farmedAssets[entry.a]!, usd: price, pin: true })
    } else takeBook(entry)
  }

  /** Somebody else takes what the book has up to the limit of an entry, but for a third of what the entry is worth. */
  function takeBook({ a, b, p }: Order): void {
    const { book, third } = sizes[farmedAssets[a]!]
    const wire = { a, b, p, s: book, r: false, t: { limit: { tif: 'Ioc' as const } } }
    const rest = { ...wire, b: !b, s: third, t: { limit: { tif: 'Gtc' as const } } }
    venue.submit({ kind: 'foreignOrders', user: whale, orders: [wire] })
    venue.submit({ kind: 'foreignOrders', user: whale, orders: [rest] })
  }

  const wrapNet = (net: Net): Net => ({
    async fetch(request) {
      clock.advanceTo(clock.nowMs() + requestMs)
      if (!request.url.endsWith('/exchange')) return net.fetch(request)
      const { action } = JSON.parse(request.body ?? '{}') as ExchangeBody
      if (action?.type === 'order' && action.grouping === 'normalTpsl') closeTrap(action.orders ?? [])
      const reply = await net.fetch(request)
      if (action?.type !== 'order' || random() >= lostReplies) return reply
      closed.reply_lost += 1
      throw new Fault('upstream_timeout', 'The reply is lost')
    },
  })
  return { wrapNet, traps, closed }
}
/** More than the book has, and a third of an entry. */
const sizes: Readonly<Record<FarmedAsset, { book: string; third: string }>> = {
  BTC: { book: '60', third: '0.001' },
  ETH: { book: '2000', third: '0.033' },
  SOL: { book: '40000', third: '0.66' },
}

async function openProduct(startMs: number, seed: number) {
  await using parts = new AsyncDisposableStack()
  const clock = simulatedClock(startMs)
  const home = parts.use(await ownDatabase())
  const venue = parts.use(await openSimulatedVenue(clock, seed))
  const net = wrapNetWith({ clock, venue, seed })
  const app = parts.use(
    await openInstance({
      databaseUrl: home.url,
      // The chain of the bridge is configured, and nothing asks it.
      urls: { evm: { '42161': 'http://127.0.0.1:9' }, hyperliquid: venue.url },
      env: {
        ...env,
        HYPERLIQUID_WS_URL: venue.streamUrl,
        HYPERLIQUID_STREAMED_USERS: '0',
        HYPERLIQUID_WEIGHT_PER_MINUTE: '0',
      },
      overrides: {
        clock: { now: () => new Date(clock.nowMs()) },
        wrapNet: net.wrapNet,
        viewWeightPerMinute: 0,
        intervals,
      },
    }),
  )
  const { watch } = app.features.strategies!
  app.runtime.start()
  for (const start of app.joined.starters) if (start !== watch) parts.use(start((event) => event))
  for (const [asset, coin] of farmedAssets.entries())
    assert.equal(await marketAt(venue, asset), coin, 'the markets of the venue')
  return { clock, venue, net, app, db: home.database.pool, watch, parts: parts.move() }
}
type Product = Awaited<ReturnType<typeof openProduct>>

async function marketAt({ url }: SimulatedVenue, asset: number): Promise<string> {
  const reply = await fetch(`${url}/info`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'meta' }),
  })
  const { universe } = (await reply.json()) as { universe: { name: string }[] }
  return universe[asset]!.name
}

const dueSql = `select exists (select from task_queue where owner is not null or run_at <= $1)
    or exists (select from venue_account where next_at <= $1)
    or exists (select from strategy where status = 'active' and next_at <= $1) as "isBusy",
  (select count(*)::integer from task_queue) as tasks,
  (select least((select min(run_at) from task_queue), (select min(watch_at) from strategy_account),
    (select min(next_at) from venue_account))) as "nextAt"`
type Due = { isBusy: boolean; tasks: number; nextAt: Date | null }

function simulation({ clock, venue, app, db, watch }: Product) {
  const readDue = async (): Promise<Due> => (await query<Due>(db, dueSql, [new Date(clock.nowMs())]))[0]!

  /** Resolves when nothing is due and nothing is under way. */
  async function idle(): Promise<Due> {
    const endMs = performance.now() + 60_000
    for (;;) {
      const due = await readDue()
      if (!due.isBusy) return due
      if (performance.now() > endMs) {
        const queue = await query(
          db,
          'select q.*, t.step, t.error, t.data from task_queue q join task t on t.id = q.task_id limit 3',
        )
        throw new Error(`busy for a minute: ${JSON.stringify(queue)}`)
      }
      await delay(3)
    }
  }

  /** Does what is due now: orders, slots, comparisons, and one look of the watch. */
  async function work(): Promise<Due> {
    venue.submit({ kind: 'tick' })
    app.taskEngine.announceQueued()
    app.taskEngine.announceSlots()
    await idle()
    await watch()[Symbol.asyncDispose]()
    app.taskEngine.announceQueued()
    return idle()
  }

  async function step(): Promise<Due> {
    const { nextAt } = await readDue()
    const nowMs = clock.nowMs()
    const nextMs = nextAt?.getTime() ?? Number.POSITIVE_INFINITY
    clock.advanceTo(Math.min(nowMs + stepMsMax, Math.max(nextMs, nowMs + 20)))
    return work()
  }

  /** Lets time pass until no task has been open for some seconds. */
  async function settle(): Promise<void> {
    const startMs = clock.nowMs()
    for (let busyMs = startMs; clock.nowMs() - busyMs < quietMs; ) {
      assert.ok(clock.nowMs() - startMs < settledMsMax, 'tasks do not end')
      const { tasks } = await step()
      if (tasks > 0) busyMs = clock.nowMs()
    }
  }

  /** Lets time pass until a call has ended. */
  async function during<T>(call: Promise<T>): Promise<T> {
    let isOver = false
    const ended = call.finally(() => {
      isOver = true
    })
    ended.catch(() => undefined)
    while (!isOver) {
      await step()
      await delay(5)
    }
    return ended
  }

  async function goTo(ms: number): Promise<void> {
    clock.advanceTo(ms)
    await work()
  }
  return { settle, during, goTo, work }
}

const pick = <T>(from: readonly T[], n: number): T => from[n % from.length]!

async function addFarmers(
  product: Product,
  during: <T>(call: Promise<T>) => Promise<T>,
  firstSlotMs: number,
  count: number,
) {
  const { app, venue, db } = product
  const add = async (n: number): Promise<SimulatedFarmer> => {
    const user = await addUser(app)
    venue.submit({
      kind: 'credit',
      user: user.evm.toLowerCase(),
      coin: 'perp',
      units: 10_000n * 100_000_000n,
    })
    const done = await app.call<{ outcome: string }>('perp_setup', {}, user)
    assert.equal(done.outcome, 'executed', JSON.stringify(done))
    const [row] = await query<{ agent_id: string }>(db, 'select agent_id from app_user where id = $1', [
      user.id,
    ])
    const customer = { agentId: row!.agent_id, address: user.evm.toLowerCase(), user }
    const farmer = await addFarmer(db, {
      customer,
      authority: await authorityOf(db, { ...user.caller, agentId: customer.agentId }),
      zone: pick(zones, n),
      asset: pick(farmedAssets, Math.floor(n / 2)),
      leverage: 2 + (n % 4),
      isCross: n % 3 !== 0,
      isMarket: n % 5 !== 0,
      guards: { daily_loss_usd: n % 2 === 1 ? '0.2' : '500' },
      firstSlotMs,
      slotSeconds: 7_200,
    })
    return { ...farmer, byHand: [] }
  }
  const farmers: SimulatedFarmer[] = []
  for (let n = 0; n < count; n += atOnce) {
    const batch = Array.from({ length: Math.min(atOnce, count - n) }, (_, k) => add(n + k))
    farmers.push(...(await during(Promise.all(batch))))
  }
  return farmers
}

export async function createSimulatedFarm(
  count: number,
  { startMs, seed }: { startMs: number; seed: number },
) {
  const { parts, ...product } = await openProduct(startMs - 600_000, seed)
  try {
    const { venue, app, net } = product
    venue.submit({ kind: 'credit', user: whale, coin: 'perp', units: 10n ** 19n })
    const time = simulation({ ...product, parts })
    const farmers = await addFarmers({ ...product, parts }, time.during, startMs + 7_200_000, count)
    return {
      ...product,
      ...time,
      farmers,
      traps: net.traps,
      closed: net.closed,
      setPrice: (coin: FarmedAsset, usd: number) => venue.submit({ kind: 'price', coin, usd, pin: true }),
      /** Starts an order that a person gives by hand; it ends while time passes. */
      async order(farmer: SimulatedFarmer, name: 'perp_open' | 'perp_close', input: object): Promise<void> {
        const { task_id } = await app
          .call<{ task_id: string }>(name, input, farmer.customer.user, { wait: false })
          .catch((error: unknown) => {
            if (error instanceof Fault) return { task_id: undefined }
            throw error
          })
        if (task_id !== undefined) farmer.byHand.push(task_id)
      },
      [Symbol.asyncDispose]: () => parts.disposeAsync(),
    }
  } catch (error) {
    await parts.disposeAsync()
    throw error
  }
}
export type SimulatedFarm = Awaited<ReturnType<typeof createSimulatedFarm>>
