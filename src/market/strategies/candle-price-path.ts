import { priceUnitsOf } from './account.ts'
import type { CandleColumns } from './candle-columns.ts'
import type { Execute, PriceMove } from './matching.ts'
import type { StrategyRun } from './strategy-run.ts'

type CandleOf = { asset: string; columns: CandleColumns; at: number; execute: Execute }

/** A candle does not say which of its ends came first, so the one that is worse for the position does. */
export function candleMove(run: StrategyRun, { asset, columns, at, execute }: CandleOf): PriceMove {
  const [open, high, low, close] = [
    columns.open[at]!,
    columns.high[at]!,
    columns.low[at]!,
    columns.close[at]!,
  ].map(priceUnitsOf) as [bigint, bigint, bigint, bigint]
  const held = run.account.positions.get(asset)
  const entering = [...run.pending, ...run.resting].find(
    (order) => order.asset === asset && !order.reduce_only,
  )
  const isLong = held ? held.isLong : entering?.side !== 'sell'
  const path = isLong ? [open, low, high, close] : [open, high, low, close]
  return { asset, atMs: columns.startMs[at]!, path, isExact: false, execute }
}
