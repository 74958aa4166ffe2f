import { meanOf } from './averages.ts'
import { bootstrapMean, type Interval, maxDrawdown, wilsonInterval } from './statistics.ts'
import { type Costs, type Market, type Simulation, simulate } from './trade-simulation.ts'
import type { Rule } from './trading-rules.ts'

export const tradesMin = 30

export type Verdict =
  | 'too_few'
  /** The verdict if the whole interval of the expectancy is above zero. */
  | 'positive'
  | 'negative'
  /** The verdict if the interval of the expectancy contains zero. */
  | 'no_edge'

export type BacktestResult = {
  trades: number
  wins: number
  winRate?: number
  winRateInterval?: Interval
  /** The mean result of a trade after costs, as a fraction of the position. */
  expectancy?: number
  expectancyInterval?: Interval
  totalReturn: number
  maxDrawdown: number
  buyAndHold: number
  buyAndHoldDrawdown: number
  fees: number
  funding: number
  candles: number
  fromMs?: number
  toMs?: number
  verdict: Verdict
}

function verdictOf(trades: number, expectancy: Interval | undefined): Verdict {
  if (trades < tradesMin || !expectancy) return 'too_few'
  if (expectancy.low > 0) return 'positive'
  return expectancy.high < 0 ? 'negative' : 'no_edge'
}

const last = (values: readonly number[]): number => values.at(-1) ?? 1

/**
 * Computes the benchmark: the worth of one dollar at each close if the market is bought at the first open of the test
 * and sold at its last close, with the fees of both trades.
 */
function buyAndHold(
  { candles }: Market,
  { firstAt, lastAt }: Simulation,
  { taker, slippage }: Costs,
): number[] {
  const entry = (candles[firstAt]?.open ?? Number.NaN) * (1 + slippage)
  const held = candles.slice(firstAt, lastAt + 1).map(({ close }) => close / entry - taker)
  const end = held.at(-1)
  if (end !== undefined) held[held.length - 1] = end - (taker + slippage) * (end + taker)
  return held
}

export function backtest(
  rule: Rule,
  market: Market,
  { costs, seed }: { costs: Costs; seed: number },
): BacktestResult {
  const simulation = simulate(rule, market, costs)
  const { trades, equity, firstAt, lastAt } = simulation
  const nets = trades.map(({ net }) => net)
  const wins = nets.filter((net) => net > 0).length
  const held = buyAndHold(market, simulation, costs)
  const expectancyInterval = bootstrapMean(nets, seed)
  const winRateInterval = wilsonInterval(wins, nets.length)
  const [from, to] = [market.candles[firstAt]?.startMs, market.candles[lastAt]?.endMs]
  return {
    trades: nets.length,
    wins,
    ...(nets.length > 0 && { winRate: wins / nets.length, expectancy: meanOf(nets) }),
    ...(winRateInterval && { winRateInterval }),
    ...(expectancyInterval && { expectancyInterval }),
    totalReturn: last(equity) - 1,
    maxDrawdown: maxDrawdown([1, ...equity]).fraction,
    buyAndHold: last(held) - 1,
    buyAndHoldDrawdown: maxDrawdown([1, ...held]).fraction,
    fees: trades.reduce((sum, { fees }) => sum + fees, 0),
    funding: trades.reduce((sum, { funding }) => sum + funding, 0),
    candles: equity.length,
    ...(equity.length > 0 && from !== undefined && to !== undefined && { fromMs: from, toMs: to }),
    verdict: verdictOf(nets.length, expectancyInterval),
  }
}
