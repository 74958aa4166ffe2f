import { fixedPointDecimals, mulDiv, rescale, toFixedPoint } from '#kernel/money/money.ts'
import { meanOf } from '#market/averages.ts'
import { decimalText } from '#market/decimal-text.ts'
import { priceDecimals } from './account.ts'
import { type StrategyFill, tradesOf } from './fill-trades.ts'
import type { SimulatedEntry } from './simulation.ts'

/** How the fills of a strategy differ from what a backtest of the same time has: prices of entries, and results. */

export type Drift = {
  /** When it was computed, and the time that it is about. */
  at: string
  from: string
  to: string
  /** Entries that both have, and those that one of them has alone. */
  entries: number
  entries_only_here: number
  entries_only_in_backtest: number
  /** The mean of how much worse the prices of entries were, in hundredths of a percent; below zero, better. */
  entry_price_bps: string | null
  trades: number
  backtest_trades: number
  /** The mean result of a trade after all costs, as a fraction of its worth. */
  trade_result: string | null
  backtest_trade_result: string | null
}
export type DriftInput = {
  /** The oldest first. */
  fills: readonly StrategyFill[]
  backtest: { entries: readonly SimulatedEntry[]; trades: number; expectancy: string | null }
  /** The candles that fill the orders of the backtest. */
  executionSpanMs: number
  fromMs: number
  toMs: number
  nowMs: number
}

type Entry = { asset: string; isBuy: boolean; atMs: number; size: bigint; value: bigint }

/** Fills come some time after the candle that fills the order of a backtest began. */
const latenessMsMax = 300_000

/** The fills of one run in an asset are one entry, at their mean price. */
function entriesOf(fills: readonly StrategyFill[]): Entry[] {
  const entries = new Map<string, Entry>()
  for (const { asset, isBuy, size, price, isExit, executionId, atMs } of fills) {
    if (isExit) continue
    const key = `${executionId ?? atMs} ${asset}`
    const units = toFixedPoint(size)
    const value = units * rescale(toFixedPoint(price), fixedPointDecimals, priceDecimals)
    const known = entries.get(key)
    if (known) {
      known.size += units
      known.value += value
    } else entries.set(key, { asset, isBuy, atMs, size: units, value })
  }
  return [...entries.values()]
}

const fullBps = 10_000n
const bpsPlaces = 100n

/** How much more was paid, or less received, in ten-thousandths of a percent of the price of the backtest. */
const worseBy = ({ isBuy, size, value }: Entry, { priceUnits }: SimulatedEntry): number => {
  const price = value / size
  const worse = isBuy ? price - priceUnits : priceUnits - price
  return Number(mulDiv(worse, fullBps * bpsPlaces, priceUnits)) / Number(bpsPlaces)
}

const fractionText = (value: number): string => decimalText(Number(value.toFixed(8))) ?? '0'

export function driftOf({ fills, backtest, executionSpanMs, fromMs, toMs, nowMs }: DriftInput): Drift {
  const isWithin = (atMs: number) => atMs >= fromMs && atMs < toMs
  const entries = entriesOf(fills).filter(({ atMs }) => isWithin(atMs))
  const left = new Set(backtest.entries.filter(({ atMs }) => isWithin(atMs)))
  const worse: number[] = []
  for (const entry of entries) {
    const same = nearest(entry, left, executionSpanMs + latenessMsMax)
    if (!same) continue
    left.delete(same)
    worse.push(worseBy(entry, same))
  }
  const trades = tradesOf(fills).filter(({ openedMs }) => isWithin(openedMs))
  const results = trades.map(({ netMicros, costMicros }) =>
    costMicros === 0n ? 0 : Number(netMicros) / Number(costMicros),
  )
  const iso = (ms: number) => new Date(ms).toISOString()
  return {
    at: iso(nowMs),
    from: iso(fromMs),
    to: iso(toMs),
    entries: worse.length,
    entries_only_here: entries.length - worse.length,
    entries_only_in_backtest: left.size,
    entry_price_bps: worse.length === 0 ? null : (decimalText(Number(meanOf(worse).toFixed(2))) ?? null),
    trades: trades.length,
    backtest_trades: backtest.trades,
    trade_result: results.length === 0 ? null : fractionText(meanOf(results)),
    backtest_trade_result: backtest.expectancy,
  }
}

function nearest(
  { asset, isBuy, atMs }: Entry,
  candidates: ReadonlySet<SimulatedEntry>,
  distanceMsMax: number,
): SimulatedEntry | undefined {
  let found: SimulatedEntry | undefined
  let shortest = distanceMsMax
  for (const candidate of candidates) {
    if (candidate.asset !== asset || candidate.isBuy !== isBuy) continue
    const distance = Math.abs(candidate.atMs - atMs)
    if (distance > shortest || (found && distance === shortest)) continue
    found = candidate
    shortest = distance
  }
  return found
}
