import { createHash } from 'node:crypto'
import { mulDiv, usdDecimals } from '#kernel/money/money.ts'
import type { FundingRate } from '#market/trade-simulation.ts'
import {
  type Account,
  type ClosedTrade,
  feeOf,
  fundingUnitsOf,
  priceDecimals,
  worthMicros,
} from './account.ts'
import { type CandleColumns, type CandleWindow, type Windows, windowAt } from './candle-columns.ts'
import { candleMove } from './candle-price-path.ts'
import { assetsOf } from './decide.ts'
import { decisionText, inputsSha256 } from './decision-record.ts'
import { million, takerPpm } from './entry.ts'
import type { GuardTrip } from './guards.ts'
import type { Execute } from './matching.ts'
import type { Decision } from './strategy.ts'
import {
  applyFundingRate,
  applyGuards,
  applyPrices,
  decideExitNow,
  decideOnClose,
  equityOf,
  openRun,
  type RunConfig,
  type StrategyRun,
} from './strategy-run.ts'

/**
 * Runs a strategy over candles of the past. Decisions come from closes of the longer candles, and the shorter ones say
 * when the orders were filled: a decision on a close is filled at the next open.
 */

export type AssetHistory = {
  /** The candles of which 1,000 make a decision. */
  signal: CandleColumns
  /** The candles that fill orders; they may be the same. */
  execution: CandleColumns
  /** The oldest first. */
  funding: readonly FundingRate[]
}
export type SimulationInput = {
  config: RunConfig
  assets: Readonly<Record<string, AssetHistory>>
  fromMs: number
  toMs: number
  /** The ends of the local days from `fromMs` on, the earliest first. */
  dayEnds: readonly number[]
  /** The times of the decisions; left out: each close of the signal candles. */
  slots?: readonly number[]
  initialMicros: bigint
  /** What orders that take liquidity pay beyond the price, in parts per million. */
  slippagePpm: bigint
}
export type RecordedDecision = { atMs: number; decision: Decision; inputsSha256: string }
/** What opened or increased a position, with the mean price of that candle's fills. */
export type SimulatedEntry = { asset: string; isBuy: boolean; atMs: number; priceUnits: bigint }
export type SimulationResult = {
  trades: readonly ClosedTrade[]
  entries: readonly SimulatedEntry[]
  /** The decisions that did something. */
  decisions: readonly RecordedDecision[]
  /** How often a decision held, by its reason. */
  holds: Readonly<Record<string, number>>
  decided: number
  /** The SHA-256 of the bytes of all decisions in their order. */
  logSha256: string
  guardTrips: readonly GuardTrip[]
  /** The worth at each close of the shorter candles, and the times of these. */
  equity: { atMs: Float64Array; usd: Float64Array }
  initialMicros: bigint
  /** The worth at the end, had everything open been sold by then. */
  finalMicros: bigint
  feesMicros: bigint
  fundingMicros: bigint
  /** The part of the time in which something was open. */
  exposure: number
  openAtEnd: number
  /** Candles that are missing within the time. */
  gaps: number
}

/** Fills a whole order at its price, worse by the slippage where it takes liquidity. */
export const executeWithSlippage =
  (slippagePpm: bigint): Execute =>
  ({ isBuy, sizeUnits, priceUnits, isTaker }, rules) => {
    const share = isTaker ? (isBuy ? million + slippagePpm : million - slippagePpm) : million
    const price = mulDiv(priceUnits, share, million, isBuy ? 'up' : 'down')
    return { sizeUnits, valueMicros: worthMicros(sizeUnits, price, rules, isBuy ? 'up' : 'down') }
  }

/** The times of decisions, read in their order. */
type Cursor = { signalAt: number; executionAt: number; fundingAt: number }
type Progress = {
  input: SimulationInput
  assets: readonly (readonly [string, AssetHistory])[]
  cursors: Map<string, Cursor>
  execute: Execute
  run: StrategyRun
  dayAt: number
  slotAt: number
  hash: ReturnType<typeof createHash>
  trades: ClosedTrade[]
  entries: SimulatedEntry[]
  decisions: RecordedDecision[]
  holds: Record<string, number>
  trips: GuardTrip[]
  decided: number
  gaps: number
}

export function simulateStrategy(input: SimulationInput): SimulationResult {
  const progress = openProgress(input)
  const spanMs = Math.min(...progress.assets.map(([, { execution }]) => execution.spanMs))
  const steps = Math.max(0, Math.floor((input.toMs - input.fromMs) / spanMs))
  const equity = { atMs: new Float64Array(steps), usd: new Float64Array(steps) }
  let exposed = 0
  for (let step = 0; step < steps; step++) {
    const startMs = input.fromMs + step * spanMs
    advance(progress, startMs, startMs + spanMs)
    const { run } = progress
    equity.atMs[step] = startMs + spanMs
    equity.usd[step] = Number(equityOf(run, input.config)) / Number(million)
    if (run.account.positions.size > 0) exposed++
  }
  return resultOf(progress, equity, steps === 0 ? 0 : exposed / steps)
}

function openProgress(input: SimulationInput): Progress {
  const assets = assetsOf(input.config.decision.strategy).flatMap((asset) => {
    const history = input.assets[asset]
    return history ? [[asset, history] as const] : []
  })
  const cursors = new Map(
    assets.map(([asset, { signal, execution, funding }]) => [
      asset,
      {
        signalAt:
          firstAt(signal.startMs.length, (at) => signal.startMs[at]! + signal.spanMs > input.fromMs) - 1,
        executionAt: firstAt(execution.startMs.length, (at) => execution.startMs[at]! >= input.fromMs),
        fundingAt: firstAt(funding.length, (at) => funding[at]!.atMs > input.fromMs),
      },
    ]),
  )
  return {
    input,
    assets,
    cursors,
    execute: executeWithSlippage(input.slippagePpm),
    run: openRun(input.initialMicros, input.dayEnds[0] ?? Number.POSITIVE_INFINITY),
    dayAt: 0,
    slotAt: 0,
    hash: createHash('sha256'),
    trades: [],
    entries: [],
    decisions: [],
    holds: {},
    trips: [],
    decided: 0,
    gaps: 0,
  }
}

function firstAt(length: number, isReached: (at: number) => boolean): number {
  let at = 0
  while (at < length && !isReached(at)) at++
  return at
}

function advance(progress: Progress, startMs: number, endMs: number): void {
  const { input } = progress
  while ((input.dayEnds[progress.dayAt] ?? Number.POSITIVE_INFINITY) <= startMs) progress.dayAt++
  let isClose = false
  for (const [asset, history] of progress.assets) {
    const cursor = progress.cursors.get(asset)!
    fillCandle(progress, { asset, history, cursor, startMs })
    payFunding(progress, { asset, history, cursor, endMs })
    const { signal } = history
    while (
      cursor.signalAt + 1 < signal.startMs.length &&
      signal.startMs[cursor.signalAt + 1]! + signal.spanMs <= endMs
    ) {
      cursor.signalAt++
      if (signal.startMs[cursor.signalAt]! + signal.spanMs === endMs) isClose = true
    }
  }
  if (isDue(progress, { endMs, isClose })) decideAt(progress, endMs)
  else {
    const urgent = decideExitNow(progress.run, endMs, input.config)
    if (urgent) record(progress, { ...urgent, atMs: endMs, windows: undefined })
  }
}

type AssetStep = { asset: string; history: AssetHistory; cursor: Cursor }

function fillCandle(
  progress: Progress,
  { asset, history, cursor, startMs }: AssetStep & { startMs: number },
) {
  const { execution } = history
  const at = cursor.executionAt
  if (execution.startMs[at] !== startMs) {
    progress.gaps++
    return
  }
  cursor.executionAt++
  const { run, input } = progress
  const isIdle = run.pending.length === 0 && run.resting.length === 0 && run.account.positions.size === 0
  const dayEndsMs = input.dayEnds[progress.dayAt] ?? Number.POSITIVE_INFINITY
  if (isIdle) {
    progress.run = applyGuards(run, startMs, { config: input.config, dayEndsMs })
    countTrips(progress, run)
    return
  }
  const move = candleMove(run, { asset, columns: execution, at, execute: progress.execute })
  const moved = applyPrices(run, move, { config: input.config, dayEndsMs })
  progress.run = moved.run
  progress.trades.push(...moved.trades)
  const entry = entryBetween(run.account, moved.run.account, { asset, atMs: startMs, config: input.config })
  if (entry) progress.entries.push(entry)
  countTrips(progress, run)
}

type Entered = { asset: string; atMs: number; config: RunConfig }

/** Returns what was added to the position in an asset, or undefined where nothing was. */
function entryBetween(
  before: Account,
  after: Account,
  { asset, atMs, config }: Entered,
): SimulatedEntry | undefined {
  const [held, now] = [before.positions.get(asset), after.positions.get(asset)]
  const rules = config.decision.markets[asset]
  if (!now || !rules) return undefined
  const isSame = held?.isLong === now.isLong && held.openedMs === now.openedMs
  const added = now.sizeUnits - (isSame ? held.sizeUnits : 0n)
  const cost = now.costMicros - (isSame ? held.costMicros : 0n)
  if (added <= 0n) return undefined
  const scale = 10n ** BigInt(rules.size_decimals + priceDecimals - usdDecimals)
  return { asset, isBuy: now.isLong, atMs, priceUnits: mulDiv(cost * scale, 1n, added) }
}

function countTrips(progress: Progress, { guards: before }: StrategyRun): void {
  const { guards } = progress.run
  if (guards.tripped && !before.tripped) progress.trips.push(guards.tripped)
  if (guards.trippedToday && guards.trippedToday !== before.trippedToday)
    progress.trips.push(guards.trippedToday)
}

function payFunding(progress: Progress, { asset, history, cursor, endMs }: AssetStep & { endMs: number }) {
  for (;;) {
    const next = history.funding[cursor.fundingAt]
    if (!next || next.atMs > endMs) return
    cursor.fundingAt++
    const rateUnits = fundingUnitsOf(next.rate)
    progress.run = applyFundingRate(progress.run, { asset, rateUnits }, progress.input.config)
  }
}

function isDue(progress: Progress, { endMs, isClose }: { endMs: number; isClose: boolean }): boolean {
  const { slots } = progress.input
  if (!slots) return isClose
  let isSlot = false
  for (
    let slot = slots[progress.slotAt];
    slot !== undefined && slot <= endMs;
    slot = slots[progress.slotAt]
  ) {
    progress.slotAt++
    isSlot = true
  }
  return isSlot
}

/** The newest windows that have closed by a time; undefined while one of them is not whole. */
function windowsAt({ assets, cursors }: Progress): Windows | undefined {
  const windows: Record<string, CandleWindow> = {}
  for (const [asset, { signal }] of assets) {
    const window = windowAt(signal, cursors.get(asset)!.signalAt)
    if (!window) return undefined
    windows[asset] = window
  }
  return windows
}

function decideAt(progress: Progress, nowMs: number): void {
  const windows = windowsAt(progress)
  const decided = decideOnClose(progress.run, { windows, nowMs }, progress.input.config)
  record(progress, { ...decided, atMs: nowMs, windows })
}

type Recording = ReturnType<typeof decideOnClose> & { atMs: number; windows: Windows | undefined }

function record(progress: Progress, { run, decision, state, atMs, windows }: Recording): void {
  progress.run = run
  progress.decided++
  progress.hash.update(`${atMs} ${decisionText(decision)}\n`)
  if (decision.action === 'hold') {
    progress.holds[decision.reason] = (progress.holds[decision.reason] ?? 0) + 1
    return
  }
  const sha = inputsSha256(windows, state, progress.input.config.decision)
  progress.decisions.push({ atMs, decision, inputsSha256: sha })
}

function resultOf(
  progress: Progress,
  equity: SimulationResult['equity'],
  exposure: number,
): SimulationResult {
  const { run, input } = progress
  return {
    trades: progress.trades,
    entries: progress.entries,
    decisions: progress.decisions,
    holds: progress.holds,
    decided: progress.decided,
    logSha256: progress.hash.digest('hex'),
    guardTrips: progress.trips,
    equity,
    initialMicros: input.initialMicros,
    finalMicros: equityOf(run, input.config) - closingCosts(progress),
    feesMicros: run.account.feesMicros,
    fundingMicros: run.account.fundingMicros,
    exposure,
    openAtEnd: run.account.positions.size,
    gaps: progress.gaps,
  }
}

/** What it would cost to sell what is open at the end: slippage and fees. */
function closingCosts({ run, input }: Progress): bigint {
  let costs = 0n
  for (const [asset, { sizeUnits }] of run.account.positions) {
    const [mark, rules] = [run.marks.get(asset), input.config.decision.markets[asset]]
    if (mark === undefined || !rules) continue
    const worth = worthMicros(sizeUnits, mark, rules, 'up')
    costs += feeOf(worth, takerPpm) + feeOf(worth, input.slippagePpm)
  }
  return costs
}
