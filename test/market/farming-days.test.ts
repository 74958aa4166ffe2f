import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pastDayEnds } from '#features/schedules/recurrence/past-times.ts'
import { liveState } from '#features/strategies/live-state.ts'
import { mergedColumns } from '#market/strategies/candle-columns.ts'
import { decideExit } from '#market/strategies/decide.ts'
import { entriesPerDayMax, flatBeforeMs } from '#market/strategies/farming-rule.ts'
import { simulateStrategy } from '#market/strategies/simulation.ts'
import { applyGuards, openRun } from '#market/strategies/strategy-run.ts'
import { bySize } from '../proof/support/seed.ts'
import { columnWalk, configOf, dayMs, farming, midnights, minuteMs, quarterMs } from './strategy-walk.ts'

/** The days of a change of daylight saving, and the instant of 23:55 at their end. */
const oddDays = [
  { zone: 'America/New_York', day: '2026-03-08', flatAt: '2026-03-09T03:55:00.000Z' },
  { zone: 'America/New_York', day: '2026-11-01', flatAt: '2026-11-02T04:55:00.000Z' },
  { zone: 'Africa/Cairo', day: '2026-04-23', flatAt: '2026-04-23T21:55:00.000Z' },
  { zone: 'Africa/Cairo', day: '2026-10-29', flatAt: '2026-10-29T21:55:00.000Z' },
  { zone: 'Australia/Lord_Howe', day: '2026-04-05', flatAt: '2026-04-05T13:25:00.000Z' },
  { zone: 'Australia/Lord_Howe', day: '2026-10-04', flatAt: '2026-10-04T12:55:00.000Z' },
]

test('a live day trade ends five minutes before local midnight, also where a day has 23 or 25 hours', () => {
  const config = {
    decision: configOf({ ...farming, order_notional_usd: '300' }),
    guards: { max_loss_usd: '400', on_trip: 'flatten' as const },
    budgetMicros: null,
  }
  for (const { zone, day, flatAt } of oddDays) {
    const dayEndOf = (ms: number) => pastDayEnds(zone, ms, ms)[0]!
    // The account was opened on the day before, and has a position since the last minute of it.
    const beforeMs = Date.parse(`${day}T12:00:00Z`) - dayMs
    let run = openRun(1_000_000_000n, dayEndOf(beforeMs))
    const startMs = dayEndOf(beforeMs)
    const position = {
      isLong: true,
      sizeUnits: 300n,
      costMicros: 300_000_000n,
      leverage: 1,
      isCross: true,
      openedMs: startMs,
      targetFromMs: startMs,
      feesMicros: 0n,
      fundingMicros: 0n,
    }
    const marks = new Map([['BTC', 10_000_000_000_000n]])
    run = { ...run, marks, account: { ...run.account, positions: new Map([['BTC', position]]) } }
    const exits: string[] = []
    const endMs = dayEndOf(startMs)
    for (let ms = startMs; ms < endMs; ms += ms < endMs - quarterMs ? quarterMs : minuteMs) {
      run = applyGuards(run, ms, { config, dayEndsMs: dayEndOf(ms) })
      const state = liveState(run, { atMs: ms, config, facts: undefined, left: [] })
      if (decideExit(state, config.decision)) exits.push(new Date(ms).toISOString())
    }
    assert.deepEqual([exits[0], exits.length], [flatAt, 5], `${zone} ${day}`)
  }
})

/** Days of the market, minute by minute, on no clock but that of the candles. */
const daysPerWalk = 100
const walks = bySize({ short: 2, full: 10, nightly: 10 })
const warmUpDays = 11

test(`${walks * daysPerWalk} seeded days of day trades end flat, on one side at a time, and inside their limits`, () => {
  let [days, entries, ofDay, byStop, byTarget] = [0, 0, 0, 0, 0]
  for (let seed = 1; seed <= walks; seed++) {
    const minutes = columnWalk({
      seed: seed * 97,
      count: (daysPerWalk + warmUpDays) * 1_440,
      volatility: 0.0005,
    })
    const fromMs = minutes.startMs[warmUpDays * 1_440]!
    const toMs = minutes.startMs.at(-1)! + minuteMs
    const dayEnds = midnights(fromMs, daysPerWalk + 1)
    const result = simulateStrategy({
      config: {
        decision: configOf({ ...farming, order_notional_usd: '300', leverage: 5 }),
        guards: { max_loss_usd: '400', on_trip: 'flatten' },
        budgetMicros: null,
      },
      assets: { BTC: { signal: mergedColumns(minutes, quarterMs), execution: minutes, funding: [] } },
      fromMs,
      toMs,
      dayEnds,
      initialMicros: 1_000_000_000n,
      slippagePpm: 500n,
    })
    days += (toMs - fromMs) / dayMs
    const byDay = new Map<number, number>()
    for (const { atMs, decision } of result.decisions) {
      const dayEnd = dayEnds.find((end) => end > atMs)!
      if (decision.action === 'enter') {
        entries++
        assert.equal(atMs % quarterMs, 0, 'an entry is decided on a close')
        assert.ok(atMs < dayEnd - flatBeforeMs)
        const [order] = decision.orders
        assert.ok(order?.stop_loss && order.take_profit && !order.reduce_only)
        byDay.set(dayEnd, (byDay.get(dayEnd) ?? 0) + 1)
      }
      if (decision.reason === 'day_ends') {
        ofDay++
        assert.ok(atMs >= dayEnd - flatBeforeMs)
      }
    }
    assert.ok([...byDay.values()].every((count) => count <= entriesPerDayMax))
    let freeFromMs = 0
    for (const { openedMs, closedMs, reason } of result.trades) {
      assert.ok(openedMs >= freeFromMs, 'two positions at once')
      freeFromMs = closedMs
      const dayEnd = dayEnds.find((end) => end > openedMs)!
      assert.ok(closedMs <= dayEnd - flatBeforeMs, `open at ${new Date(closedMs).toISOString()}`)
      assert.notEqual(reason, 'liquidation')
      if (reason === 'stop') byStop++
      if (reason === 'target') byTarget++
    }
    assert.equal(result.openAtEnd, 0)
    assert.equal(
      result.trades.length,
      result.decisions.filter(({ decision }) => decision.action === 'enter').length,
    )
  }
  assert.equal(days, walks * daysPerWalk)
  assert.ok(entries > 30 * walks, `${entries} entries`)
  assert.ok(
    ofDay > walks / 2 && byStop > 5 * walks && byTarget > 2 * walks,
    `${ofDay} by the day, ${byStop} stops, ${byTarget} targets`,
  )
})
