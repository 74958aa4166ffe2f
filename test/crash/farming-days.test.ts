/**
 * Days of day trades on the whole: live strategies in many zones, one of them with a daylight-saving day, at a venue that
 * lags, drops streams and loses replies, while gateways are killed, stops are rejected and people trade by hand beside them.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createCandleStore } from '#engines/candles/candle-store.ts'
import { systemClock } from '#kernel/clock.ts'
import { silentLog } from '#kernel/log.ts'
import { authorityFields } from '../chat/schedule-fixture.ts'
import { bearer, eventually, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { replayDecisions } from '../harness/replayed-decisions.ts'
import { makeRealistic } from '../harness/venue-gateway.ts'
import { type FarmingDay, farmedAssets, farmingDay, quartersOfDay } from '../market/farming-day.ts'
import { dayMs, minuteMs, quarterMs } from '../market/strategy-walk.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import { plantColumns } from '../venue/planted-candles.ts'
import { addFarmer, type Farmer } from './farmers.ts'
import { type Episode, episodesOf, heldAt, type Jump, ownRecord, realMs } from './farming-proof.ts'
import { type CrashApp, createCrashApp } from './crash-app.ts'
import { createGatewayPool, type GatewayPool } from './gateway-pool.ts'
import { newTrader } from './venue-points.ts'
import { frozenAccounts, type VenueCall, venueOf } from './venue-record.ts'
import { randomOf, submitUntilAnswered } from './venue-traders.ts'

const farmersCount = bySize({ short: 6, full: 50, nightly: 50 })
const killsMax = bySize({ short: 1, full: 8, nightly: 40 })
/** A position has a stop at the venue within this time, and is flat this long after its guard has tripped. */
const bareMsMax = 5_000
const flatMsMax = 60_000
const zones = [
  'America/New_York',
  'UTC',
  'Asia/Tokyo',
  'Africa/Cairo',
  'Australia/Lord_Howe',
  'Asia/Kolkata',
]
const env = { FAUCET_URL: 'off', POLICY_DAY_USD_MAX: '100000000', DATABASE_POOL: '30' }

const seed = proofSeed('farming days')
const random = randomOf(seed)
const jumps: Jump[] = []
let app: CrashApp
let pool: GatewayPool
let venue: VenueCall
let venueUrl: string
let startMs: number
let days: Map<string, FarmingDay>
const farmers: Farmer[] = []

before(async () => {
  app = await createCrashApp()
  venue = venueOf(app.control)
  venueUrl = app.venueUrl
  await venue('POST', '/settings', { walking: false })
  startMs = nextSpringDay(Date.now()) + 8 * 3_600_000
  await advanceTo(startMs - minuteMs)
  days = new Map(
    farmedAssets.map((asset, n) => [asset, farmingDay(asset, { seed: seed + n, startMs })] as const),
  )
  await setPrices(0)
  pool = createGatewayPool(() => app.gateway({ ...env, WORLD_URL: app.control }))
  await pool.fillAll()
  for (const { asset, columns } of days.values())
    await plantColumns(app.admin, { market: asset, span: '15m', columns })
  await addFarmers()
  await makeRealistic(venue, 'farming days')
  await venue('POST', '/realism', { weightPerMinute: 0 })
})
after(async () => {
  await pool?.close()
  await app?.[Symbol.asyncDispose]()
})

/** The midnight of UTC with which the next day begins that daylight saving makes shorter in New York. */
function nextSpringDay(afterMs: number): number {
  const hourOf = new Intl.DateTimeFormat('en', { timeZone: 'America/New_York', timeZoneName: 'shortOffset' })
  const offset = (ms: number) => hourOf.formatToParts(ms).find(({ type }) => type === 'timeZoneName')!.value
  for (let day = Math.ceil(afterMs / dayMs) * dayMs; ; day += dayMs)
    if (offset(day) === 'GMT-5' && offset(day + dayMs) === 'GMT-4') return day
}

const pick = <T>(from: readonly T[], n: number): T => from[n % from.length]!

async function addFarmers() {
  for (let n = 0; n < farmersCount; n += 10)
    farmers.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(10, farmersCount - n) }, async (_, k) => {
          const [gateway] = pool.ready()
          const customer = await newTrader(gateway!, venue)
          const { body } = await http<{ outcome: string }>(
            `${gateway!.url}/v1/perp/setup?wait=true&timeout=60`,
            { method: 'POST', body: {}, headers: bearer(customer), timeoutMs: 90_000 },
          )
          assert.equal(body.outcome, 'executed', JSON.stringify(body))
          return addFarmer(app.admin, {
            customer,
            authority: authorityFields(customer),
            zone: pick(zones, n + k),
            asset: pick(farmedAssets, Math.floor((n + k) / 2)),
            leverage: 2 + ((n + k) % 4),
            isCross: (n + k) % 3 !== 0,
            isMarket: (n + k) % 5 !== 0,
            maxLossUsd: (n + k) % 10 === 3 ? '0.5' : '500',
            firstSlotMs: startMs + quarterMs,
          })
        }),
      )),
    )
}

async function venueMs(): Promise<number> {
  const { body } = await http<{ time: number }>(`${venueUrl}/info`, {
    method: 'POST',
    body: { type: 'exchangeStatus' },
  })
  return body.time
}

/** Advances the clock of the world, and notes how far this has moved the clock of the venue. */
async function advanceTo(ms: number) {
  const { body } = await http<{ now_ms: number }>(`${app.control}/time`)
  const advance_seconds = Math.ceil((ms - body.now_ms) / 1_000)
  if (advance_seconds <= 0) return
  const [beforeMs, startedAt] = [await venueMs(), performance.now()]
  await http(`${app.control}/time`, { method: 'POST', body: { advance_seconds } })
  const byMs = (await venueMs()) - beforeMs - (performance.now() - startedAt)
  jumps.push({ atMs: beforeMs, byMs })
}

async function setPrices(quarter: number) {
  for (const [asset, day] of days) await venue('POST', '/price', { coin: asset, price: day.priceAt(quarter) })
}

const farmersOf = (asset: string) => farmers.filter((farmer) => farmer.asset === asset)

/** The middle of the last minutes of a local day: what is open ends then. */
const isMidnight = (farmer: Farmer, quarter: number) =>
  localMidnights(farmer).includes(startMs + quarter * quarterMs)

/** The ends of the local days within the time. */
function localMidnights({ zone }: Farmer): number[] {
  const clock = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  return Array.from({ length: quartersOfDay }, (_, n) => startMs + (n + 1) * quarterMs).filter(
    (ms) => clock.format(ms) === '00:00',
  )
}

const runsUnderWay = async (slot?: Date): Promise<number> =>
  Number(
    (
      await app.admin.query<{ count: string }>(
        `select count(*) from strategy s where s.status = 'active' and (
           exists (select from strategy_execution e where e.strategy_id = s.id and e.ended_at is null)
           or s.next_at <= $1)`,
        [slot ?? new Date(0)],
      )
    ).rows[0]!.count,
  )

const runsEnded = (slot?: Date) =>
  eventually(async () => ((await runsUnderWay(slot)) === 0 ? true : undefined), 'the end of the runs', 120_000)

/** Moves a price beyond the stop of an entry while its order is on the way, so that the venue rejects the stop. */
async function rejectStops(asset: string, quarter: number, pass: () => Promise<void>) {
  const { stop } = days.get(asset)!.signals.get(quarter)!
  const close = days.get(asset)!.priceAt(quarter)
  await venue('POST', '/faults', {
    endpoint: 'exchange',
    type: 'order',
    effect: 'latency',
    latencyMs: 1_200,
    count: farmersOf(asset).length,
  })
  await pass()
  const isSent = async () =>
    (await venue<{ struck: number }[]>('GET', '/faults')).some(({ struck }) => struck > 0) || undefined
  const sent = await eventually(isSent, 'an entry on the way', 15_000).catch(() => undefined)
  const beyond = close + (stop - close) * 1.2
  if (sent) await venue('POST', '/price', { coin: asset, price: Number(beyond.toPrecision(5)) })
}

const faults = (rate: number) => [
  { endpoint: 'exchange', effect: 'dropReply', rate },
  { endpoint: 'info', effect: 'reset', rate },
  { endpoint: 'info', effect: 'latency', latencyMs: 400, rate: rate * 2 },
]

/** A person who buys beside a strategy that holds something, or sells what was bought by hand. */
async function tradeByHand(quarter: number) {
  const held = new Set(
    (
      await app.admin.query<{ strategy_id: string }>(
        `select strategy_id from strategy_account where state -> 'positions' <> '{}'::jsonb`,
      )
    ).rows.map(({ strategy_id }) => strategy_id),
  )
  const trades = farmers.flatMap((farmer, n) => {
    if (n % 2 === 1 || random() < 0.5) return []
    if (farmer.manual === undefined && !held.has(farmer.strategyId)) return []
    return [trade(farmer, `${quarter}-${n}`)]
  })
  await Promise.all(trades)
}

async function trade(farmer: Farmer, name: string) {
  const { asset, leverage, isCross: is_cross } = farmer
  const { rows } = await app.admin.query<{ is_long: boolean | null }>(
    `select (state -> 'positions' -> $2 ->> 'is_long')::boolean as is_long from strategy_account where strategy_id = $1`,
    [farmer.strategyId, asset],
  )
  const isLong = farmer.manual ?? rows[0]?.is_long
  if (isLong == null) return
  const size = farmer.manualSize
  const request =
    farmer.manual === undefined
      ? {
          path: '/v1/perp/open',
          body: { asset, side: isLong ? 'long' : 'short', size, leverage, is_cross },
        }
      : { path: '/v1/perp/close', body: { asset, size } }
  const done = await submitUntilAnswered(pool.ready, { ...farmer.customer, resting: [] }, {
    key: `by-hand-${name}`,
    request,
    pick: random,
  })
  if (done?.outcome === 'executed') farmer.manual = farmer.manual === undefined ? isLong : undefined
}

/** Passes the last minutes of a day of some strategies: all of them are flat before it is over. */
async function passMidnight(those: readonly Farmer[], quarter: number) {
  const midnight = startMs + quarter * quarterMs
  await advanceTo(midnight - 5 * minuteMs + 2_000)
  const isFlat = async () => {
    const { rows } = await app.admin.query(
      `select strategy_id from strategy_account
       where strategy_id = any($1::uuid[]) and state -> 'positions' <> '{}'::jsonb`,
      [those.map(({ strategyId }) => strategyId)],
    )
    return rows.length === 0 || undefined
  }
  await eventually(isFlat, `all that is open ends before the midnight of ${those[0]!.zone}`, flatMsMax * 2)
}

test(`${farmersCount} days of day trades end flat, and no position is without its stop`, async (t) => {
  const isStop = (quarter: number) =>
    quarter % 12 === 0 ||
    farmers.some((farmer) => isMidnight(farmer, quarter)) ||
    [...days.values()].some(({ signals }) => signals.has(quarter) && !signals.has(quarter - 3))
  const stops = Array.from({ length: quartersOfDay }, (_, n) => n + 1).filter(isStop)
  const rejected = new Map(
    farmedAssets.flatMap((asset) => {
      const { signals } = days.get(asset)!
      // Where nothing is open from the signals before.
      const first = [...signals.keys()].filter((at) => ![1, 2, 3].some((less) => signals.has(at - less)))
      return first[1] === undefined ? [] : [[first[1], asset] as const]
    }),
  )
  const killEvery = Math.max(1, Math.floor(stops.length / killsMax))
  for (const fault of faults(0.03)) await venue('POST', '/faults', { ...fault, seed })
  for (let quarter = 1; quarter <= quartersOfDay; quarter++) {
    const those = farmers.filter((farmer) => isMidnight(farmer, quarter))
    if (those.length > 0) await passMidnight(those, quarter)
    await setPrices(quarter)
    const pass = () => advanceTo(startMs + quarter * quarterMs + 500)
    if (!stops.includes(quarter)) {
      await pass()
      continue
    }
    const asset = rejected.get(quarter)
    if (asset === undefined) await pass()
    else await rejectStops(asset, quarter, pass)
    if (stops.indexOf(quarter) % killEvery === 0 && pool.kills() < killsMax && pool.ready().length === 2) {
      await delay(Math.floor(random() * 2_000))
      pool.killOne()
    }
    await runsEnded(new Date(startMs + quarter * quarterMs))
    await tradeByHand(quarter)
    console.error(`DEBUG ${quarter} ${(performance.now() / 1000).toFixed(0)} s, kills ${pool.kills()}`)
  }
  await venue('DELETE', '/faults', {})
  await venue('POST', '/realism', { preset: 'quiet' })
  await endAll()
  await assertDays(t.diagnostic.bind(t))
})

/** Ends what days that are not over have open, and what people have bought. */
async function endAll() {
  const [gateway] = pool.ready()
  for (const { customer, strategyId } of farmers) {
    const { status, body } = await http(`${gateway!.url}/disable_schedule_chats`, {
      method: 'PUT',
      body: { schedule_id: strategyId, positions: 'flatten' },
      headers: bearer(customer),
    })
    assert.equal(status, 200, JSON.stringify(body))
  }
  await eventually(
    async () => {
      const { rows } = await app.admin.query(
        `select strategy_id from strategy_account where state -> 'positions' <> '{}'::jsonb or watch_at is not null`,
      )
      return rows.length === 0 || undefined
    },
    'the end of every position',
    120_000,
  )
  await Promise.all(farmers.map((farmer, n) => farmer.manual !== undefined && trade(farmer, `end-${n}`)))
}

async function assertDays(say: (line: string) => void) {
  const all: Episode[] = []
  for (const farmer of farmers) {
    const name = `${farmer.zone} ${farmer.asset} ${farmer.strategyId}`
    const record = await ownRecord(app.admin, venueUrl, {
      strategyId: farmer.strategyId,
      address: farmer.customer.address,
    })
    const episodes = episodesOf(record, jumps, name)
    for (const { exits, fromMs } of episodes)
      assert.equal(exits.size, 1, `${name}: ${exits.size} exits of the position of ${new Date(fromMs).toISOString()}`)
    for (const midnight of localMidnights(farmer))
      assert.equal(heldAt(record.fills, midnight), 0n, `${name}: open at ${new Date(midnight).toISOString()}`)
    await assertGuards(farmer, record.fills, name)
    all.push(...episodes)
  }
  const bareMs = all.map((episode) => episode.bareMs).sort((a, b) => b - a)
  const { rows } = await app.admin.query<{ runs: string; entered: string; unprotected: string }>(
    `select count(*) as runs, count(*) filter (where outcome = 'executed' and decision ->> 'action' = 'enter') as entered,
       (select count(*) from strategy_fill where reason = 'unprotected') as unprotected from strategy_execution`,
  )
  say(
    `${farmers.length} days, ${rows[0]!.runs} runs, ${all.length} positions, ${rows[0]!.unprotected} closed without a stop, ` +
      `${pool.kills()} kills; longest without a stop ${bareMs.slice(0, 3).join(', ')} ms (seed ${seed})`,
  )
  assert.ok(bareMs[0]! <= bareMsMax, `without a stop for ${bareMs[0]} ms`)
  assert.ok(all.length >= farmers.length, `${all.length} positions`)
  await assertReplayed()
  await eventually(async () => (await ledgerDrift(app.admin)) === 0 || undefined, 'the ledger is even')
  assert.deepEqual(await frozenAccounts(app.admin), [])
}

/** Every guard that tripped while something was open has closed it within a minute. */
async function assertGuards(
  { strategyId }: Farmer,
  fills: Awaited<ReturnType<typeof ownRecord>>['fills'],
  name: string,
) {
  const { rows } = await app.admin.query<{ at: string }>(
    `select body ->> 'at' as at from user_event where type = 'schedule.guard_tripped' and body ->> 'schedule_id' = $1`,
    [strategyId],
  )
  for (const { at } of rows) {
    const trippedMs = Date.parse(at)
    if (heldAt(fills, trippedMs) === 0n) continue
    const flat = fills.find((fill) => fill.atMs >= trippedMs && heldAt(fills, fill.atMs) === 0n)
    assert.ok(flat, `${name}: not flat after its guard`)
    const tookMs = realMs(flat.atMs, jumps) - realMs(trippedMs, jumps)
    assert.ok(tookMs <= flatMsMax, `${name}: flat ${tookMs} ms after its guard`)
  }
}

async function assertReplayed() {
  const candles = createCandleStore({
    db: app.admin,
    clock: systemClock,
    log: silentLog,
    venue: { candlePage: () => Promise.reject(new Error()), book: () => Promise.reject(new Error()) },
    weightPerMinute: 0,
    isOnDuty: () => false,
  })
  let replayed = 0
  for (const { strategyId } of farmers) replayed += await replayDecisions(app.admin, candles, strategyId)
  assert.ok(replayed > farmers.length * 5, `${replayed} decisions`)
}
