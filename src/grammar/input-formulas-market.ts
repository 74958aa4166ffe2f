import { assetNamed } from './asset-and-chain-names.ts'
import { type Formula, type FormulaContext, stop } from './input-formula.ts'
import { periodOf, rangeOf } from './times.ts'

/** Fills the fields of reads of candles, so that these cover the time that the user said. */

const minuteMs = 60_000
/** The lengths of candles by how long a time each covers in few enough candles. */
const timeframes = [
  ['15m', 15 * minuteMs],
  ['1h', 60 * minuteMs],
  ['4h', 240 * minuteMs],
  ['1d', 1_440 * minuteMs],
] as const
const fewMax = 500
/** A read takes at most so many candles. */
const candlesMax = 1_000
const marketsMax = 3

function candlesOf({ slots, nowMs }: FormulaContext): { timeframe: string; count: number } {
  const fromMs = rangeOf(periodOf(slots), nowMs)?.fromMs ?? nowMs
  const counted = timeframes.map(([timeframe, lengthMs]) => ({
    timeframe,
    count: Math.max(1, Math.ceil((nowMs - fromMs) / lengthMs)),
  }))
  const found = counted.find(({ count }) => count <= fewMax) ?? counted.at(-1)!
  return { ...found, count: Math.min(found.count, candlesMax) }
}

const askedPerps: Formula = ({ slots, names }) => {
  const symbols = (slots.assets ?? '').split(',').filter((symbol) => assetNamed(symbol, names)?.perp)
  return symbols.length === 0
    ? stop('Only of perpetual markets it is known how prices moved: ask "list the perp markets".')
    : symbols.slice(0, marketsMax).map((asset) => ({ asset }))
}

export const marketFormulas = {
  asked_perps: askedPerps,
  row_asset: ({ row }) => row?.asset,
  candle_timeframe: (context) => candlesOf(context).timeframe,
  candle_count: (context) => candlesOf(context).count,
} satisfies Record<string, Formula>
export type MarketFormulaName = keyof typeof marketFormulas
