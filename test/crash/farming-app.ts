/** Live strategies of day trades in many zones, with the world whose time passes and the gateways that are killed. */
import assert from 'node:assert/strict'
import { authorityFields } from '../chat/schedule-fixture.ts'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { makeRealistic } from '../harness/venue-gateway.ts'
import { type FarmingDay, farmedAssets, farmingDay, quartersOfDay } from '../market/farming-day.ts'
import { dayMs, minuteMs, quarterMs } from '../market/strategy-walk.ts'
import { plantColumns } from '../venue/planted-candles.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { addFarmer, type Farmer } from './farmers.ts'
import type { Jump } from './farming-proof.ts'
import { createGatewayPool, type GatewayPool } from './gateway-pool.ts'
import { newTrader } from './venue-points.ts'
import { type VenueCall, venueOf } from './venue-record.ts'

const zones = ['America/New_York', 'UTC', 'Asia/Tokyo', 'Africa/Cairo', 'Australia/Lord_Howe', 'Asia/Kolkata']
const env = { FAUCET_URL: 'off', POLICY_DAY_USD_MAX: '100000000', DATABASE_POOL: '30' }
const atOnce = 10

export type FarmingApp = {
  app: CrashApp
  pool: GatewayPool
  venue: VenueCall
  days: ReadonlyMap<string, FarmingDay>
  farmers: readonly Farmer[]
  /** The advances of the venue's clock so far. */
  jumps: readonly Jump[]
  /** The close of a quarter of the day, counted from 1; the day begins with 0. */
  closeMs(quarter: number): number
  advanceTo(ms: number): Promise<void>
  setPrices(quarter: number): Promise<void>
  /** Those whose local day ends with the close of a quarter. */
  atMidnight(quarter: number): Farmer[]
  localMidnights(farmer: Farmer): number[]
  /** Resolves when no run is under way, and the slots until a time have their runs. */
  runsEnded(slotMs: number): Promise<unknown>
  /** Resolves when no account of the strategies has anything open in the database of the gateways. */
  isFlat(those: readonly Farmer[], msMax: number): Promise<unknown>
} & AsyncDisposable

/** The midnight of UTC with which the next day begins that daylight saving makes shorter in New York. */
function nextSpringDay(afterMs: number): number {
  const names = new Intl.DateTimeFormat('en', { timeZone: zones[0], timeZoneName: 'shortOffset' })
  const offset = (ms: number) => names.formatToParts(ms).find(({ type }) => type === 'timeZoneName')!.value
  for (let day = Math.ceil(afterMs / dayMs) * dayMs; ; day += dayMs)
    if (offset(day) === 'GMT-5' && offset(day + dayMs) === 'GMT-4') return day
}

const pick = <T>(from: readonly T[], n: number): T => from[n % from.length]!

/** A world in which the day is about to begin, and its gateways. */
async function openWorld(seed: number) {
  await using parts = new AsyncDisposableStack()
  const app = parts.use(await createCrashApp())
  const venue = venueOf(app.control)
  const jumps: Jump[] = []
  const startMs = nextSpringDay(Date.now()) + 8 * 3_600_000
  const days = new Map(
    farmedAssets.map((asset, n) => [asset as string, farmingDay(asset, { seed: seed + n, startMs })]),
  )
  const venueMs = async () => (await venue<{ nowMs: number }>('GET', '/effects?accounts=none')).nowMs
  const advanceTo = async (ms: number) => {
    const { body } = await http<{ now_ms: number }>(`${app.control}/time`)
    const advance_seconds = Math.ceil((ms - body.now_ms) / 1_000)
    if (advance_seconds <= 0) return
    const [beforeMs, startedAt] = [await venueMs(), performance.now()]
    await http(`${app.control}/time`, { method: 'POST', body: { advance_seconds } })
    jumps.push({ atMs: beforeMs, byMs: (await venueMs()) - beforeMs - (performance.now() - startedAt) })
  }
  const setPrices = async (quarter: number) => {
    for (const [coin, day] of days) await venue('POST', '/price', { coin, price: day.priceAt(quarter) })
  }
  await venue('POST', '/settings', { walking: false })
  await advanceTo(startMs - minuteMs)
  await setPrices(0)
  const pool = createGatewayPool(() => app.gateway({ ...env, WORLD_URL: app.control }))
  await pool.fillAll()
  parts.defer(() => pool.close())
  for (const [market, { columns }] of days) await plantColumns(app.admin, { market, span: '15m', columns })
  return { app, venue, jumps, startMs, days, advanceTo, setPrices, pool, parts: parts.move() }
}

type World = Awaited<ReturnType<typeof openWorld>>

async function addFarmers({ app, venue, pool, startMs }: World, count: number): Promise<Farmer[]> {
  const add = async (n: number): Promise<Farmer> => {
    const [gateway] = pool.ready()
    const customer = await newTrader(gateway!, venue)
    const { body } = await http<{ outcome: string }>(`${gateway!.url}/v1/perp/setup?wait=true&timeout=60`, {
      method: 'POST',
      body: {},
      headers: bearer(customer),
      timeoutMs: 90_000,
    })
    assert.equal(body.outcome, 'executed', JSON.stringify(body))
    return addFarmer(app.admin, {
      customer,
      authority: authorityFields(customer),
      zone: pick(zones, n),
      asset: pick(farmedAssets, Math.floor(n / 2)),
      leverage: 2 + (n % 4),
      isCross: n % 3 !== 0,
      isMarket: n % 5 !== 0,
      guards: { max_loss_usd: n % 10 === 3 ? '0.5' : '500' },
      firstSlotMs: startMs + quarterMs,
    })
  }
  const farmers: Farmer[] = []
  for (let n = 0; n < count; n += atOnce)
    farmers.push(
      ...(await Promise.all(Array.from({ length: Math.min(atOnce, count - n) }, (_, k) => add(n + k)))),
    )
  return farmers
}

export async function createFarmingApp({
  count,
  seed,
}: {
  count: number
  seed: number
}): Promise<FarmingApp> {
  const { parts, ...world } = await openWorld(seed)
  const { app, venue, startMs } = world
  const farmers = await addFarmers({ ...world, parts }, count)
  await makeRealistic(venue, 'farming days')
  // So many users trade at one moment that their requests need several addresses.
  await venue('POST', '/realism', { weightPerMinute: 0 })
  const closeMs = (quarter: number) => startMs + quarter * quarterMs
  const localMidnights = ({ zone }: Farmer) => {
    const clock = new Intl.DateTimeFormat('en-GB', { timeZone: zone, timeStyle: 'short', hourCycle: 'h23' })
    return Array.from({ length: quartersOfDay }, (_, n) => closeMs(n + 1)).filter(
      (ms) => clock.format(ms) === '00:00',
    )
  }
  return {
    ...world,
    farmers,
    closeMs,
    localMidnights,
    atMidnight: (quarter) => farmers.filter((farmer) => localMidnights(farmer).includes(closeMs(quarter))),
    runsEnded: (slotMs) =>
      eventually(
        async () => {
          const { rows } = await app.admin.query(
            `select id from strategy s where status = 'active' and (next_at <= $1 or exists (
               select from strategy_execution e where e.strategy_id = s.id and e.ended_at is null)) limit 1`,
            [new Date(slotMs)],
          )
          return rows.length === 0 || undefined
        },
        'the end of the runs',
        120_000,
      ),
    isFlat: (those, msMax) =>
      eventually(
        async () => {
          const { rows } = await app.admin.query(
            `select strategy_id from strategy_account
             where strategy_id = any($1::uuid[]) and state -> 'positions' <> '{}'::jsonb`,
            [those.map(({ strategyId }) => strategyId)],
          )
          return rows.length === 0 || undefined
        },
        `all is closed that ${those.length} strategies had open, such as one of ${those[0]?.zone}`,
        msMax,
      ),
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  }
}
