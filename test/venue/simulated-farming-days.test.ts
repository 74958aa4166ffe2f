/**
 * Many days of day trades in one process: live strategies in several zones at a venue on the same injected clock, with
 * stops that are rejected, entries that are filled in part, replies that are lost, guards that trip, kill switches, and
 * people who trade by hand beside them. What is checked is the record of the venue.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { clearSwitch } from '#features/policy/store.ts'
import { pastDayEnds } from '#features/schedules/recurrence/past-times.ts'
import { query } from '#store/query.ts'
import { episodesOf, heldAt, type OwnFill } from '../crash/farming-proof.ts'
import { cloidOf, frozenAccounts } from '../crash/venue-record.ts'
import { ledgerDrift } from '../harness/ledger.ts'
import {
  type FarmedAsset,
  type FarmingDay,
  farmedAssets,
  farmingDaysEvery,
  quartersOfDay,
} from '../market/farming-day.ts'
import { randomOf } from '../market/price-walk.ts'
import { dayMs, minuteMs, quarterMs } from '../market/strategy-walk.ts'
import { bySize, isNightly, isShort, proofSeed } from '../proof/support/seed.ts'
import { plantColumns } from './planted-candles.ts'
import { createSimulatedFarm, type SimulatedFarm, type SimulatedFarmer } from './simulated-farm.ts'

const size = bySize({
  short: { farmers: 6, days: 1 },
  full: { farmers: 20, days: 5 },
  nightly: { farmers: 40, days: 25 },
})
const count = size.farmers * size.days
const everyQuarters = 8
/** A position has a stop at the venue within this time, and is flat so long after its guard has tripped. */
const bareMsMax = 5_000
const flatMsMax = 60_000
/** A run that waits for the record of the venue decides again each second. */
const decisionsMax = 60
const manualSizes: Readonly<Record<FarmedAsset, string>> = { BTC: '0.0007', ETH: '0.021', SOL: '0.4' }

/** Days, each from 8:00 UTC on, whose local days begin or end with daylight saving in some zone, and those after them. */
const changes = ['2027-03-14', '2027-03-28', '2027-04-04', '2027-04-30'].map((day) =>
  Date.parse(`${day}T08:00:00Z`),
)
const startsMs = Array.from({ length: 14 }, (_, later) => changes.map((ms) => ms + later * dayMs))
  .flat()
  .filter((ms, n, all) => all.indexOf(ms) === n)
  .slice(0, size.days)
  .sort((a, b) => a - b)

const seed = proofSeed('simulated farming days')
const random = randomOf(seed)
let farm: SimulatedFarm
let days: Map<FarmedAsset, FarmingDay[]>
before(async () => {
  days = new Map(
    farmedAssets.map((asset, n) => [
      asset,
      farmingDaysEvery(asset, { seed: seed + n, startsMs, everyQuarters }),
    ]),
  )
  farm = await createSimulatedFarm(size.farmers, { startMs: startsMs[0]!, seed })
})
after(() => farm?.[Symbol.asyncDispose]())

const midnightsOf = ({ zone }: SimulatedFarmer, startMs: number): number[] =>
  pastDayEnds(zone, startMs, startMs + dayMs).filter((ms) => ms <= startMs + dayMs)

/** People buy beside a strategy that holds something, or sell what they have bought. */
async function tradeByHand() {
  const rows = await query<{ strategy_id: string; is_long: boolean }>(
    farm.db,
    `select strategy_id, (p.position ->> 'is_long')::boolean as is_long
     from strategy_account, jsonb_each(state -> 'positions') as p (asset, position)`,
  )
  const sides = new Map(rows.map(({ strategy_id, is_long }) => [strategy_id, is_long]))
  for (const [n, farmer] of farm.farmers.entries()) {
    if (n % 2 === 1 || random() < 0.5) continue
    await trade(farmer, sides.get(farmer.strategyId))
  }
  await farm.settle()
}

async function trade(farmer: SimulatedFarmer, isLong: boolean | undefined) {
  const { asset, leverage, isCross: is_cross, manualSize } = farmer
  if (farmer.manual !== undefined) {
    await farm.order(farmer, 'perp_close', { asset, size: manualSize })
    farmer.manual = undefined
  } else if (isLong !== undefined) {
    const side = isLong ? 'long' : 'short'
    await farm.order(farmer, 'perp_open', { asset, side, size: manualSize, leverage, is_cross })
    farmer.manual = isLong
  }
}

/** Some of those whose guard trips soon press their kill switch while something is open. */
let killed: SimulatedFarmer[] = []
const kills: { address: string; fromMs: number; toMs: number }[] = []
async function switchKills() {
  await releaseKills()
  killed = farm.farmers.filter((_, n) => n % 4 === 3 && random() < 0.5)
  for (const { customer } of killed) {
    await farm.during(farm.app.call('policy_kill', { on: true }, customer.user))
    kills.push({ address: customer.address, fromMs: farm.clock.nowMs(), toMs: Number.POSITIVE_INFINITY })
  }
}

async function releaseKills() {
  for (const { customer } of killed) {
    kills.findLast(({ address }) => address === customer.address)!.toMs = farm.clock.nowMs()
    // A person lifts it with a fresh sign-in, which this test leaves out.
    await clearSwitch(farm.db, { scope: 'user', userId: customer.user.id })
  }
  killed = []
}

async function passDay(startMs: number, n: number) {
  const ends = new Set(farm.farmers.flatMap((farmer) => midnightsOf(farmer, startMs)))
  for (const [asset, each] of days)
    await plantColumns(farm.db, { market: asset, span: '15m', columns: each[n]!.columns })
  const setPrices = (quarter: number) => {
    for (const [asset, each] of days) farm.setPrice(asset, each[n]!.priceAt(quarter))
  }
  const slots = Array.from({ length: quartersOfDay / everyQuarters }, (_, at) => (at + 1) * everyQuarters)
  const events = [
    ...slots.map((quarter) => ({ atMs: startMs + quarter * quarterMs, quarter })),
    ...[...ends].map((ms) => ({ atMs: ms - 5 * minuteMs, quarter: undefined })),
  ].sort((a, b) => a.atMs - b.atMs)
  for (const { atMs, quarter } of events) {
    await farm.goTo(atMs - 20_000)
    await farm.settle()
    if (quarter === undefined) {
      await farm.goTo(atMs + 500)
      await farm.settle()
      continue
    }
    setTraps(quarter, n)
    setPrices(quarter)
    await farm.goTo(atMs + 300)
    await farm.settle()
    farm.traps.clear()
    await tradeByHand()
    await switchKills()
  }
}

function setTraps(quarter: number, n: number) {
  for (const [at, asset] of farmedAssets.entries()) {
    if (!days.get(asset)![n]!.signals.has(quarter)) continue
    const drawn = random()
    if (drawn < 0.6) farm.traps.set(at, drawn < 0.3 ? 'stop_rejected' : 'book_thin')
  }
}

async function endAll() {
  await releaseKills()
  for (const { customer, strategyId } of farm.farmers)
    await farm.during(
      farm.app.call('schedules_disable', { schedule_id: strategyId, positions: 'flatten' }, customer.user),
    )
  await farm.settle()
  for (const farmer of farm.farmers) if (farmer.manual !== undefined) await trade(farmer, undefined)
  await farm.settle()
}

const handLegs = ['entry', 'tp', 'sl', 'close', ...Array.from({ length: 6 }, (_, n) => `close${n}`)]

/** Returns what the venue has on record of a strategy: all orders of the account but those of the person. */
function recordOf({ customer, byHand }: SimulatedFarmer) {
  const ofPerson = new Set(byHand.flatMap((id) => handLegs.map((leg) => cloidOf(id, leg))))
  const orders = farm.venue
    .ordersOf(customer.address)
    .filter(({ cloid }) => cloid !== null && !ofPerson.has(cloid))
  const own = new Map(orders.map((order) => [order.oid, order]))
  const fills: OwnFill[] = (farm.venue.accountOf(customer.address)?.fills ?? [])
    .filter(({ oid }) => own.has(oid))
    .map(({ oid, timeMs, buy, size: lots }) => ({ oid, atMs: timeMs, units: BigInt(buy ? lots : -lots) }))
  const stops = orders
    .filter(({ trigger }) => trigger?.tpsl === 'sl')
    .map(({ placedMs, phase, statusMs, size: lots }) => ({
      fromMs: placedMs,
      toMs: phase === 'done' ? statusMs : Number.POSITIVE_INFINITY,
      units: BigInt(lots),
    }))
  return { own, fills, stops }
}

const total = { positions: 0, midnights: 0, bareMs: [] as number[] }
const seen = { partial: 0, beside: 0, guards: 0, underKill: 0 }

async function checkFarmer(farmer: SimulatedFarmer) {
  const name = `${farmer.zone} ${farmer.asset} ${farmer.strategyId}`
  const { own, fills, stops } = recordOf(farmer)
  const positions = episodesOf({ fills, stops }, [], name)
  for (const { exits, fromMs, bareMs } of positions) {
    total.bareMs.push(bareMs)
    const at = new Date(fromMs).toISOString()
    // One exit; a further one only closes what an earlier one has left.
    const whole = [...exits].filter((oid) => own.get(oid)!.left === 0)
    assert.equal(whole.length, 1, `${name}: the position of ${at} has ${whole.length} whole exits`)
    assert.ok(bareMs <= bareMsMax, `${name}: the position of ${at} is without a stop for ${bareMs} ms`)
  }
  for (const startMs of startsMs)
    for (const midnight of midnightsOf(farmer, startMs)) {
      total.midnights += 1
      assert.equal(heldAt(fills, midnight), 0n, `${name}: open at ${new Date(midnight).toISOString()}`)
    }
  total.positions += positions.length
  seen.partial += [...own.values()].filter(
    ({ reduceOnly, left, size: lots, phase }) => !reduceOnly && phase === 'done' && left > 0 && left < lots,
  ).length
  seen.beside += farmer.byHand.length
  await checkGuards(farmer, fills, name)
}

async function checkGuards(
  { strategyId, customer }: SimulatedFarmer,
  fills: readonly OwnFill[],
  name: string,
) {
  const events = await query<{ at: string }>(
    farm.db,
    `select body ->> 'at' as at from user_event where type = 'schedule.guard_tripped' and body ->> 'schedule_id' = $1`,
    [strategyId],
  )
  for (const { at } of events) {
    const trippedMs = Date.parse(at)
    if (heldAt(fills, trippedMs) === 0n) continue
    seen.guards += 1
    if (
      kills.some(
        ({ address, fromMs, toMs }) =>
          address === customer.address && fromMs <= trippedMs && trippedMs <= toMs,
      )
    )
      seen.underKill += 1
    const flat = fills.find((fill) => fill.atMs >= trippedMs && heldAt(fills, fill.atMs) === 0n)
    assert.ok(flat, `${name}: not flat after its guard`)
    assert.ok(flat.atMs - trippedMs <= flatMsMax, `${name}: flat ${flat.atMs - trippedMs} ms after its guard`)
  }
}

test(`${count} days of day trades in one process end flat, and no position is without its stop`, async (t) => {
  const cpu = process.cpuUsage()
  for (const [n, startMs] of startsMs.entries()) await passDay(startMs, n)
  await endAll()
  for (const farmer of farm.farmers) await checkFarmer(farmer)
  const { user, system } = process.cpuUsage(cpu)
  const longest = total.bareMs.sort((a, b) => b - a).slice(0, 3)
  const { stop_rejected, book_thin, reply_lost } = farm.closed
  t.diagnostic(
    `${count} days, ${total.positions} positions, ${stop_rejected} stops rejected, ${book_thin} thin books, ${seen.partial} entries in part, ` +
      `${reply_lost} replies lost, ${seen.guards} guards, ${seen.underKill} of them under a kill switch, ${seen.beside} orders by hand; ` +
      `longest without a stop: ${longest.join(', ')} ms; ${((user + system) / 1e6).toFixed(0)} CPU s of this process`,
  )
  assert.equal(total.midnights, count)
  assert.ok(total.positions >= count / 2, `${total.positions} positions`)
  if (!isShort)
    for (const [what, times] of Object.entries({ ...farm.closed, ...seen }))
      assert.ok(times > 0 || (what === 'underKill' && !isNightly), `${what} was not met`)
  const [most] = await query<{ seq: number }>(
    farm.db,
    'select max(seq)::integer as seq from strategy_decision',
  )
  assert.ok(most!.seq <= decisionsMax, `${most!.seq} decisions of one run`)
  assert.equal(await ledgerDrift(farm.db), 0)
  assert.deepEqual(await frozenAccounts(farm.db), [])
})
