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
import { bearer, eventually, http } from '../harness/gateway.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import { replayDecisions } from '../harness/replayed-decisions.ts'
import { quartersOfDay } from '../market/farming-day.ts'
import { minuteMs } from '../market/strategy-walk.ts'
import { bySize, proofSeed } from '../proof/support/seed.ts'
import type { Farmer } from './farmers.ts'
import { createFarmingApp, type FarmingApp } from './farming-app.ts'
import { type Episode, episodesOf, heldAt, type OwnFill, ownRecord, realMs } from './farming-proof.ts'
import { frozenAccounts } from './venue-record.ts'
import { randomOf, submitUntilAnswered } from './venue-traders.ts'

const count = bySize({ short: 6, full: 12, nightly: 50 })
const killsMax = bySize({ short: 1, full: 4, nightly: 40 })
/** A position has a stop at the venue within this time, and is flat so long after its guard has tripped. */
const bareMsMax = 5_000
const flatMsMax = 60_000

const seed = proofSeed('farming days')
const random = randomOf(seed)
let farm: FarmingApp
before(async () => {
  farm = await createFarmingApp({ count, seed })
})
after(() => farm?.[Symbol.asyncDispose]())

/** Moves a price beyond the stop of an entry while its order is on the way, so that the venue rejects the stop. */
async function rejectStops(asset: string, quarter: number, pass: () => Promise<void>) {
  const { venue, days, farmers } = farm
  const { stop } = days.get(asset)!.signals.get(quarter)!
  const close = days.get(asset)!.priceAt(quarter)
  await venue('POST', '/faults', {
    endpoint: 'exchange',
    type: 'order',
    effect: 'latency',
    latencyMs: 1_200,
    count: farmers.filter((farmer) => farmer.asset === asset).length,
  })
  await pass()
  const isSent = async () => {
    const faults = await venue<{ fault: { type?: string }; struck: number }[]>('GET', '/faults')
    return faults.some(({ fault, struck }) => fault.type === 'order' && struck > 0) || undefined
  }
  const isOnItsWay = await eventually(isSent, 'an entry on its way', 15_000).catch(() => false)
  const beyond = close + (stop - close) * 1.2
  if (isOnItsWay) await venue('POST', '/price', { coin: asset, price: Number(beyond.toPrecision(5)) })
}

async function startFaults() {
  for (const fault of [
    { endpoint: 'exchange', effect: 'dropReply', rate: 0.03 },
    { endpoint: 'info', effect: 'reset', rate: 0.03 },
    { endpoint: 'info', effect: 'latency', latencyMs: 400, rate: 0.06 },
  ])
    await farm.venue('POST', '/faults', { ...fault, seed })
}

/** People who buy beside a strategy that holds something, or sell what they have bought. */
async function tradeByHand(quarter: number) {
  const { rows } = await farm.app.admin.query<{ strategy_id: string; is_long: boolean }>(
    `select strategy_id, (p.position ->> 'is_long')::boolean as is_long
     from strategy_account, jsonb_each(state -> 'positions') as p (asset, position)`,
  )
  const sides = new Map(rows.map(({ strategy_id, is_long }) => [strategy_id, is_long]))
  await Promise.all(
    farm.farmers.map(async (farmer, n) => {
      if (n % 2 === 1 || random() < 0.5) return
      await trade(farmer, sides.get(farmer.strategyId), `by-hand-${quarter}-${n}`)
    }),
  )
}

async function trade(farmer: Farmer, isLong: boolean | undefined, key: string) {
  const { asset, leverage, isCross: is_cross, manualSize: size, customer } = farmer
  if (farmer.manual === undefined && isLong === undefined) return
  const request =
    farmer.manual === undefined
      ? { path: '/v1/perp/open', body: { asset, side: isLong ? 'long' : 'short', size, leverage, is_cross } }
      : { path: '/v1/perp/close', body: { asset, size } }
  const trader = { ...customer, resting: [] }
  const done = await submitUntilAnswered(farm.pool.ready, trader, { key, request, pick: random })
  if (done?.outcome === 'executed') farmer.manual = farmer.manual === undefined ? isLong : undefined
}

/** The quarters at which something is to be decided, and those at which an entry has its stop rejected, with its market. */
function planDay() {
  const starts = [...farm.days].map(([asset, { signals }]) => ({
    asset,
    // Nothing is open from the signals before.
    first: [...signals.keys()].filter((at) => ![1, 2, 3].some((less) => signals.has(at - less))),
  }))
  const signalled = [...farm.days.values()].flatMap(({ signals }) =>
    [...signals.keys()].filter((at) => !signals.has(at - 3)),
  )
  const stops = Array.from({ length: quartersOfDay }, (_, n) => n + 1).filter(
    (quarter) => quarter % 12 === 0 || signalled.includes(quarter) || farm.atMidnight(quarter).length > 0,
  )
  const rejected = starts.flatMap(({ asset, first: [, second] }) =>
    second === undefined ? [] : [[second, asset] as const],
  )
  return { stops, rejected: new Map(rejected) }
}

async function passDay() {
  const { stops, rejected } = planDay()
  const { pool } = farm
  const killEvery = Math.max(1, Math.floor(stops.length / killsMax))
  for (let quarter = 1; quarter <= quartersOfDay; quarter++) {
    const ending = farm.atMidnight(quarter)
    if (ending.length > 0) {
      await farm.advanceTo(farm.closeMs(quarter) - 5 * minuteMs + 2_000)
      await farm.isFlat(ending, 2 * flatMsMax)
    }
    await farm.setPrices(quarter)
    const pass = () => farm.advanceTo(farm.closeMs(quarter) + 500)
    const asset = rejected.get(quarter)
    await (asset === undefined ? pass() : rejectStops(asset, quarter, pass))
    if (!stops.includes(quarter)) continue
    const isKill = stops.indexOf(quarter) % killEvery === 0 && pool.kills() < killsMax
    if (isKill && pool.ready().length === 2) {
      await delay(Math.floor(random() * 2_000))
      pool.killOne()
    }
    await farm.runsEnded(farm.closeMs(quarter))
    await tradeByHand(quarter)
  }
}

/** Ends what days that are not over have open, and what people have bought. */
async function endAll() {
  await farm.venue('DELETE', '/faults', {})
  await farm.venue('POST', '/realism', { preset: 'quiet' })
  const [gateway] = farm.pool.ready()
  for (const { customer, strategyId } of farm.farmers) {
    const { status, body } = await http(`${gateway!.url}/disable_schedule_chats`, {
      method: 'PUT',
      body: { schedule_id: strategyId, positions: 'flatten' },
      headers: bearer(customer),
    })
    assert.equal(status, 200, JSON.stringify(body))
  }
  await farm.isFlat(farm.farmers, 2 * flatMsMax)
  const bought = farm.farmers.filter(({ manual }) => manual !== undefined)
  await Promise.all(bought.map((farmer, n) => trade(farmer, undefined, `by-hand-end-${n}`)))
}

test(`${count} days of day trades end flat, and no position is without its stop`, async (t) => {
  await startFaults()
  await passDay()
  await endAll()
  const positions: Episode[] = []
  for (const farmer of farm.farmers) positions.push(...(await positionsOf(farmer)))
  const bareMs = positions.map((position) => position.bareMs).sort((a, b) => b - a)
  const { rows } = await farm.app.admin.query<{ runs: string; unprotected: string }>(
    `select count(*) as runs, (select count(*) from strategy_fill where reason = 'unprotected') as unprotected
     from strategy_execution`,
  )
  const { runs, unprotected } = rows[0]!
  t.diagnostic(
    `${count} days, ${runs} runs, ${positions.length} positions, ${unprotected} closed without a stop, ${farm.pool.kills()} kills; ` +
      `longest without a stop: ${bareMs.slice(0, 3).map(Math.round).join(', ')} ms`,
  )
  assert.ok(positions.length >= count, `${positions.length} positions`)
  assert.ok(bareMs[0]! <= bareMsMax, `without a stop for ${bareMs[0]} ms`)
  await assertReplayed()
  await eventually(async () => (await ledgerDrift(farm.app.admin)) === 0 || undefined, 'the ledger is even')
  assert.deepEqual(await frozenAccounts(farm.app.admin), [])
})

/** The positions of a strategy by the record of the venue: each has one exit, and none is open at a local midnight. */
async function positionsOf(farmer: Farmer): Promise<Episode[]> {
  const { app, jumps, localMidnights } = farm
  const { strategyId, customer, zone, asset } = farmer
  const name = `${zone} ${asset} ${strategyId}`
  const record = await ownRecord(app.admin, app.venueUrl, { strategyId, address: customer.address })
  const positions = episodesOf(record, jumps, name)
  for (const { exits, fromMs } of positions)
    assert.equal(
      exits.size,
      1,
      `${name}: the position of ${new Date(fromMs).toISOString()} has ${exits.size} exits`,
    )
  for (const midnight of localMidnights(farmer))
    assert.equal(heldAt(record.fills, midnight), 0n, `${name}: open at ${new Date(midnight).toISOString()}`)
  await assertGuards(strategyId, record.fills, name)
  return positions
}

/** Every guard that has tripped while something was open has closed it within a minute. */
async function assertGuards(strategyId: string, fills: readonly OwnFill[], name: string) {
  const { rows } = await farm.app.admin.query<{ at: string }>(
    `select body ->> 'at' as at from user_event where type = 'schedule.guard_tripped' and body ->> 'schedule_id' = $1`,
    [strategyId],
  )
  for (const { at } of rows) {
    const trippedMs = Date.parse(at)
    if (heldAt(fills, trippedMs) === 0n) continue
    const flat = fills.find((fill) => fill.atMs >= trippedMs && heldAt(fills, fill.atMs) === 0n)
    assert.ok(flat, `${name}: not flat after its guard`)
    const tookMs = realMs(flat.atMs, farm.jumps) - realMs(trippedMs, farm.jumps)
    assert.ok(tookMs <= flatMsMax, `${name}: flat ${tookMs} ms after its guard`)
  }
}

async function assertReplayed() {
  const { admin } = farm.app
  const noVenue = () => Promise.reject(new Error('only stored candles are read'))
  const candles = createCandleStore({
    db: admin,
    clock: systemClock,
    log: silentLog,
    venue: { candlePage: noVenue, book: noVenue },
    weightPerMinute: 0,
    isOnDuty: () => false,
  })
  let replayed = 0
  for (const { strategyId } of farm.farmers) replayed += await replayDecisions(admin, candles, strategyId)
  assert.ok(replayed >= count * 10, `${replayed} decisions`)
}
