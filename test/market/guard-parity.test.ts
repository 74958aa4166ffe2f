/**
 * Guards are the same in every mode. Backtests of freqtrade leave them out by default (#12753, #6788), so that what is
 * tested there is another strategy than the one that trades.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { applyOwnFills } from '#features/strategies/live-account.ts'
import type { OwnFill } from '#features/strategies/live-records.ts'
import { fromUnits, usdDecimals, valueMicros } from '#kernel/money/money.ts'
import { feeOf, priceUnitsOf } from '#market/strategies/account.ts'
import { executeInBook, nothingTaken } from '#market/strategies/book-execution.ts'
import type { CandleColumns } from '#market/strategies/candle-columns.ts'
import { decisionText } from '#market/strategies/decision-record.ts'
import { takerPpm } from '#market/strategies/entry.ts'
import type { GuardConfig, GuardTrip } from '#market/strategies/guards.ts'
import { unitsOfSize } from '#market/strategies/matching.ts'
import { advancePaper } from '#market/strategies/paper-run.ts'
import { type SimulationResult, simulateStrategy } from '#market/strategies/simulation.ts'
import type { OrderIntent } from '#market/strategies/strategy.ts'
import {
  applyGuards,
  decideExitNow,
  openRun,
  type RunConfig,
  type StrategyRun,
} from '#market/strategies/strategy-run.ts'
import { bitcoin, configOf, dayMs, minuteMs, walkStartMs } from './strategy-walk.ts'

const [still, falling, lookMs] = [1_001, 60, 5_000]
const startPrice = 100_000
/** A market that rests, and then falls by 100 dollars a minute. */
const priceAt = (atMs: number): number =>
  startPrice - Math.max(0, ((atMs - walkStartMs) / minuteMs - still) * 100)
const column = (valueAt: (startMs: number) => number) =>
  Float64Array.from({ length: still + falling }, (_, at) => valueAt(walkStartMs + at * minuteMs))
const minutes: CandleColumns = {
  spanMs: minuteMs,
  startMs: column((startMs) => startMs),
  open: column(priceAt),
  high: column(priceAt),
  low: column((startMs) => priceAt(startMs + minuteMs)),
  close: column((startMs) => priceAt(startMs + minuteMs)),
  volume: column(() => 1),
}
const fromMs = walkStartMs + (still - 1) * minuteMs
const enteredMs = fromMs + minuteMs
const toMs = enteredMs + falling * minuteMs
const dayEnds = [walkStartMs + 2 * dayMs]
const initialMicros = 1_000_000_000n
const slippagePpm = 500n
/** What the slippage of the backtest makes of the price at which the fall begins. */
const entryPrice = 100_050

const configBy = (guards: GuardConfig): RunConfig => ({
  decision: configOf({ type: 'dca', asset: 'BTC', amount_usd: '500' }),
  guards,
  budgetMicros: null,
})
const backtestBy = (config: RunConfig): SimulationResult =>
  simulateStrategy({
    config,
    assets: { BTC: { signal: minutes, execution: minutes, funding: [] } },
    fromMs,
    toMs,
    dayEnds,
    slots: [fromMs],
    initialMicros,
    slippagePpm,
  })

type Watched = { trip: GuardTrip | null; exit: string | undefined }
/** Looks at an account every five seconds, as the watch does, until a guard trips. */
function watch(
  entered: StrategyRun,
  config: RunConfig,
  look: (run: StrategyRun, atMs: number) => StrategyRun,
): Watched {
  let run = entered
  for (let atMs = enteredMs + lookMs; atMs <= toMs; atMs += lookMs) {
    run = look(run, atMs)
    const trip = run.guards.tripped ?? run.guards.trippedToday
    if (!trip) continue
    const decided = decideExitNow(run, atMs, config)
    return { trip, exit: decided && decisionText(decided.decision) }
  }
  return { trip: null, exit: undefined }
}

function onPaper(order: OrderIntent, config: RunConfig): Watched {
  const book = {
    timeMs: 1,
    asks: [{ priceUnits: priceUnitsOf(entryPrice), sizeUnits: 1_000_000n }],
    bids: [{ priceUnits: priceUnitsOf(entryPrice - 100), sizeUnits: 1_000_000n }],
  }
  const market = {
    config,
    hasArrived: true,
    executeAt: () => executeInBook(book, nothingTaken(1), { slippageBps: 500n }),
  }
  const readingAt = (atMs: number) => ({
    atMs,
    minutes: { BTC: { columns: minutes, toMs: Math.floor(atMs / minuteMs) * minuteMs } },
    funding: {},
    fundingToMs: atMs,
    marks: { BTC: priceUnitsOf(priceAt(atMs)) },
    dayEnds,
  })
  const run = { ...openRun(initialMicros, dayEnds[0]!), pending: [order] }
  const cursor = { atMs: fromMs, minutesFromMs: {}, fundingToMs: fromMs }
  let account = advancePaper({ run, cursor }, readingAt(enteredMs), market)
  assert.equal(account.run.account.positions.size, 1)
  return watch(account.run, config, (_, atMs) => {
    account = advancePaper(account, readingAt(atMs), market)
    return account.run
  })
}

function live(order: OrderIntent, config: RunConfig): Watched {
  const worth = valueMicros(unitsOfSize(order.size, bitcoin), bitcoin.size_decimals, String(entryPrice), 'up')
  const fill: OwnFill = {
    fill_id: '1',
    execution_id: 'run',
    task_id: 'task',
    leg: 'entry',
    asset: 'BTC',
    is_buy: true,
    size: order.size,
    price: String(entryPrice),
    fee_usd: fromUnits(feeOf(worth, takerPpm), usdDecimals),
    at_ms: enteredMs,
    leverage: 1,
    is_cross: true,
    stop: null,
    target: null,
    reason: 'due',
  }
  const { run } = applyOwnFills(openRun(initialMicros, dayEnds[0]!), [fill], { config, counted: [] })
  return watch(run, config, (before, atMs) => {
    const marks = new Map([['BTC', priceUnitsOf(priceAt(atMs))]])
    return applyGuards({ ...before, marks }, atMs, { config, dayEndsMs: dayEnds[0]! })
  })
}

const candleOf = (trip: GuardTrip | null | undefined) =>
  trip && [trip.guard, new Date(Math.floor(trip.atMs / minuteMs) * minuteMs).toISOString()]

describe('a guard', () => {
  const bounds: Omit<GuardConfig, 'on_trip'>[] = [
    { max_loss_usd: '10' },
    { max_drawdown_bps: 130 },
    { daily_loss_usd: '7.5' },
  ]
  for (const bound of bounds)
    test(`of ${Object.keys(bound)[0]} trips in a backtest, on paper and live at the same candle`, () => {
      const config = configBy({ ...bound, on_trip: 'flatten' })
      const { guardTrips, decisions, openAtEnd } = backtestBy(config)
      const [entered, left] = decisions.map(({ decision }) => decision)
      const [order] = entered!.orders
      const paper = onPaper(order!, config)
      const atVenue = live(order!, config)
      assert.equal(guardTrips.length, 1)
      assert.ok(guardTrips[0]!.atMs > enteredMs)
      assert.deepEqual(candleOf(paper.trip), candleOf(guardTrips[0]))
      assert.deepEqual(candleOf(atVenue.trip), candleOf(guardTrips[0]))
      assert.deepEqual([paper.exit, atVenue.exit], [decisionText(left!), decisionText(left!)])
      assert.deepEqual([left?.reason, openAtEnd], [`guard_${guardTrips[0]!.guard}`, 0])
    })

  test('that only stops entries leaves what is open in each mode', () => {
    const config = configBy({ max_loss_usd: '10', on_trip: 'stop_entries' })
    const { guardTrips, decisions, openAtEnd } = backtestBy(config)
    const [order] = decisions[0]!.decision.orders
    assert.deepEqual([guardTrips.length, decisions.length, openAtEnd], [1, 1, 1])
    for (const { trip, exit } of [onPaper(order!, config), live(order!, config)])
      assert.deepEqual([candleOf(trip), exit], [candleOf(guardTrips[0]), undefined])
  })

  test('that a backtest reaches while nothing is open is reported as well', () => {
    const config = configBy({ until_ms: fromMs, on_trip: 'flatten' })
    const { guardTrips, decided, holds } = backtestBy(config)
    assert.deepEqual(
      [guardTrips.map(({ guard }) => guard), decided, holds],
      [['until'], 1, { guard_until: 1 }],
    )
  })
})
