import { isRecord, type Json } from '#kernel/wire/json.ts'
import { type Candle, type CandleRow, type History, historyOf, isTimeframe } from './candle.ts'
import { computeIndicators, type IndicatorSet } from './indicators.ts'
import type { FundingRate } from './trade-simulation.ts'

/**
 * This module parses the outputs of `market_candles` and `market_funding`. Each output of candles is parsed once.
 */

export type ReadHistory = History & { set: IndicatorSet }

const histories = new WeakMap<object, ReadHistory | undefined>()
const isRow = (value: unknown): value is CandleRow =>
  isRecord(value) &&
  ['start', 'open', 'high', 'low', 'close', 'volume'].every((field) => typeof value[field] === 'string')

function readHistory(output: Record<string, unknown>): ReadHistory | undefined {
  const { timeframe, as_of, candles } = output
  if (typeof timeframe !== 'string' || !isTimeframe(timeframe) || !Array.isArray(candles)) return undefined
  const nowMs = Date.parse(String(as_of))
  if (Number.isNaN(nowMs)) return undefined
  const history = historyOf(candles.filter(isRow), timeframe, nowMs)
  return { ...history, set: computeIndicators(history.candles) }
}

export function historyIn(output: unknown): ReadHistory | undefined {
  if (!isRecord(output)) return undefined
  if (!histories.has(output)) histories.set(output, readHistory(output))
  return histories.get(output)
}

export function fundingIn(output: unknown): FundingRate[] | undefined {
  if (!isRecord(output) || !Array.isArray(output.rates)) return undefined
  const rates = output.rates.flatMap((row: Json) => {
    if (!isRecord(row)) return []
    const [atMs, rate] = [Date.parse(String(row.at)), Number(row.rate)]
    return Number.isFinite(atMs) && Number.isFinite(rate) ? [{ atMs, rate }] : []
  })
  return rates.sort((a, b) => a.atMs - b.atMs)
}

export const lastCandles = ({ candles }: History, count: number): readonly Candle[] | undefined =>
  Number.isInteger(count) && count > 0 && candles.length >= count ? candles.slice(-count) : undefined
