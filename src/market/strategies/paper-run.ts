import { toMicros } from '#kernel/money/money.ts'
import type { FundingRate } from '#market/trade-simulation.ts'
import { availableMicros, feeOf, fundingUnitsOf, worthMicros } from './account.ts'
import type { CandleColumns } from './candle-columns.ts'
import { candleMove } from './candle-price-path.ts'
import { takerPpm } from './entry.ts'
import { type Execute, type MatchedFill, unitsOfSize } from './matching.ts'
import { executeWithSlippage } from './simulation.ts'
import type { OrderIntent } from './strategy.ts'
import {
  applyFundingRate,
  applyGuards,
  applyPrices,
  equityOf,
  type RunConfig,
  type StrategyRun,
} from './strategy-run.ts'

/**
 * Brings an account on paper up to date: closed minutes since the cursor, funding, and the prices of now. Every price is
 * applied once, and none that is older than what waits for it.
 */

export type PaperCursor = {
  atMs: number
  /** The first minute of each asset that is not applied yet. An older one has prices from before something was placed. */
  minutesFromMs: Readonly<Record<string, number>>
  fundingToMs: number
}
export type PaperReading = {
  atMs: number
  /** Closed minutes by asset, and up to where they were read. */
  minutes: Readonly<Record<string, { columns: CandleColumns; toMs: number }>>
  funding: Readonly<Record<string, readonly FundingRate[]>>
  fundingToMs: number
  /** The price of each asset now. */
  marks: Readonly<Record<string, bigint>>
  /** The ends of the local days since the cursor, the earliest first. */
  dayEnds: readonly number[]
}
export type PaperMarket = {
  config: RunConfig
  /** Whether the orders of the last decision have arrived at the venue. */
  hasArrived: boolean
  /** Returns what fills orders at the book of an asset; undefined where no book was read. */
  executeAt(asset: string): Execute | undefined
}
export type PaperAccount = { run: StrategyRun; cursor: PaperCursor }
/** What came of a market order: how much of it was filled, or why it was rejected. */
export type OrderEnd = {
  order: OrderIntent
  filledUnits: bigint
  rejection?: 'insufficient_balance' | 'below_minimum'
}
export type Advanced = PaperAccount & { fills: readonly MatchedFill[]; ends: readonly OrderEnd[] }

export const minuteMs = 60_000
/** Orders that a closed minute has triggered are filled this much worse, because no book of that time is known. */
const pastSlippagePpm = 500n
const executePast = executeWithSlippage(pastSlippagePpm)

export const nextMinute = (atMs: number): number => Math.ceil(atMs / minuteMs) * minuteMs

/** The assets in which something is open or waits. */
export const assetsInUse = ({ account, pending, resting }: StrategyRun): string[] =>
  [...new Set([...account.positions.keys(), ...[...pending, ...resting].map(({ asset }) => asset)])].sort()

export function advancePaper(before: PaperAccount, reading: PaperReading, market: PaperMarket): Advanced {
  if (reading.atMs < before.cursor.atMs) return { ...before, fills: [], ends: [] }
  const context: Context = { reading, market }
  let now: Advanced = { ...before, run: { ...before.run, pending: [] }, fills: [], ends: [] }
  for (const step of stepsOf(before.cursor, reading)) now = step.run(now, context)
  now = { ...now, run: { ...now.run, pending: before.run.pending } }
  for (const [asset, mark] of Object.entries(reading.marks)) now = applyMark(now, context, { asset, mark })
  const { config } = market
  const run = applyGuards(now.run, reading.atMs, { config, dayEndsMs: dayEndOf(context, now, reading.atMs) })
  return { ...now, run, cursor: cursorAfter(now, run, reading) }
}

type Context = { reading: PaperReading; market: PaperMarket }
type Step = { atMs: number; run(now: Advanced, context: Context): Advanced }

const dayEndOf = ({ reading }: Context, { run }: PaperAccount, atMs: number): number =>
  reading.dayEnds.find((endMs) => endMs > atMs) ?? run.guards.dayEndsMs

/** The minutes and rates that are not applied yet, in the order in which they happened. */
function stepsOf(cursor: PaperCursor, { minutes, funding }: PaperReading): Step[] {
  const steps: Step[] = []
  for (const [asset, { columns, toMs }] of Object.entries(minutes)) {
    const fromMs = cursor.minutesFromMs[asset] ?? Number.POSITIVE_INFINITY
    for (const [at, startMs] of columns.startMs.entries())
      if (startMs >= fromMs && startMs + minuteMs <= toMs)
        steps.push({
          atMs: startMs + minuteMs,
          run: (now, context) => applyMinute(now, context, { asset, columns, at }),
        })
  }
  for (const [asset, rates] of Object.entries(funding))
    for (const { atMs, rate } of rates)
      if (atMs > cursor.fundingToMs)
        steps.push({
          atMs,
          run: (now, context) => applyRate(now, context, { asset, atMs, rate }),
        })
  // The sort is stable, so minutes come before the rate at their end.
  return steps.sort((a, b) => a.atMs - b.atMs)
}

type Rate = { asset: string; atMs: number; rate: number }

/** A position that was opened after the hour pays nothing for it. */
function applyRate(now: Advanced, { market }: Context, { asset, atMs, rate }: Rate): Advanced {
  const held = now.run.account.positions.get(asset)
  if (!held || held.openedMs >= atMs) return now
  const run = applyFundingRate(now.run, { asset, rateUnits: fundingUnitsOf(rate) }, market.config)
  return { ...now, run }
}

type Minute = { asset: string; columns: CandleColumns; at: number }

function applyMinute(now: Advanced, context: Context, minute: Minute): Advanced {
  if (!assetsInUse(now.run).includes(minute.asset)) return now
  const { config } = context.market
  const move = candleMove(now.run, { ...minute, execute: executePast })
  const dayEndsMs = dayEndOf(context, now, move.atMs)
  const { run, fills } = applyPrices(now.run, move, { config, dayEndsMs })
  return { ...now, run, fills: [...now.fills, ...fills] }
}

/** Applies the price of now. Without a book nothing is filled, and what is due is filled at the next reading. */
function applyMark(
  now: Advanced,
  context: Context,
  { asset, mark }: { asset: string; mark: bigint },
): Advanced {
  const { reading, market } = context
  const { config } = market
  const marked = { ...now, run: { ...now.run, marks: new Map(now.run.marks).set(asset, mark) } }
  const execute = market.executeAt(asset)
  if (!execute) return marked
  const isDue = (order: OrderIntent) => market.hasArrived && order.asset === asset
  const due = now.run.pending.filter(isDue)
  const waiting = now.run.pending.filter((order) => !isDue(order))
  const rejected: OrderEnd[] = []
  const accepted: OrderIntent[] = []
  for (const order of due) {
    const rejection = rejectionOf(order, marked.run, config)
    if (rejection) rejected.push({ order, filledUnits: 0n, rejection })
    else accepted.push(order)
  }
  const { atMs } = reading
  const move = { asset, atMs, path: [mark], isExact: true, execute }
  const dayEndsMs = dayEndOf(context, now, atMs)
  const moved = applyPrices({ ...marked.run, pending: accepted }, move, { config, dayEndsMs })
  const ends = accepted.map((order) => ({ order, filledUnits: filledOf(order, moved.fills) }))
  return {
    ...marked,
    run: { ...moved.run, pending: waiting },
    fills: [...now.fills, ...moved.fills],
    ends: [...now.ends, ...rejected, ...ends],
  }
}

/** Returns why the venue would reject an entry at the price of now. */
function rejectionOf(order: OrderIntent, run: StrategyRun, config: RunConfig): OrderEnd['rejection'] {
  const [mark, rules] = [run.marks.get(order.asset), config.decision.markets[order.asset]]
  if (order.reduce_only || mark === undefined || !rules) return undefined
  const worth = worthMicros(unitsOfSize(order.size, rules), mark, rules, 'up')
  if (worth < toMicros(rules.min_order_usd)) return 'below_minimum'
  const needed = worth / BigInt(order.leverage ?? 1) + feeOf(worth, takerPpm)
  return needed > availableMicros(run.account, equityOf(run, config)) ? 'insufficient_balance' : undefined
}

/** The reasons of fills of market orders; a stop, a target or a limit order has another. */
const filledOf = ({ asset, side, reduce_only }: OrderIntent, fills: readonly MatchedFill[]): bigint =>
  fills
    .filter((fill) => fill.asset === asset && fill.isBuy === (side === 'buy'))
    .filter(({ reason }) => reason === (reduce_only ? 'decision' : 'entry'))
    .reduce((sum, { sizeUnits }) => sum + sizeUnits, 0n)

function cursorAfter({ cursor, fills }: Advanced, run: StrategyRun, reading: PaperReading): PaperCursor {
  const minutesFromMs: Record<string, number> = {}
  const inUse = new Set([...run.account.positions.keys(), ...run.resting.map(({ asset }) => asset)])
  for (const asset of inUse) {
    const known = Math.max(cursor.minutesFromMs[asset] ?? 0, reading.minutes[asset]?.toMs ?? 0)
    const isNew = fills.some(
      (fill) => fill.asset === asset && fill.reason === 'entry' && fill.atMs === reading.atMs,
    )
    minutesFromMs[asset] = isNew || known === 0 ? nextMinute(reading.atMs) : known
  }
  return {
    atMs: reading.atMs,
    minutesFromMs,
    fundingToMs: Math.max(cursor.fundingToMs, reading.fundingToMs),
  }
}
