import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import { meanOf } from '#market/averages.ts'
import { tradesMin, type Verdict } from '#market/backtest-result.ts'
import { decimalText } from '#market/decimal-text.ts'
import { bootstrapMean, type Interval, maxDrawdown, wilsonInterval } from '#market/statistics.ts'
import type { ClosedTrade } from './account.ts'
import { million } from './entry.ts'
import type { GuardName } from './guards.ts'
import type { SimulationInput, SimulationResult } from './simulation.ts'

/** The figures of a backtest as JSON: ratios and dollars are decimal text, and null where there is nothing to compute. */

export type BacktestReport = {
  trades: number
  win_rate: string | null
  win_rate_interval: IntervalText | null
  /** The mean result of a trade after all costs, as a share of its worth. */
  expectancy: string | null
  expectancy_interval: IntervalText | null
  total_return: string
  max_drawdown: string
  buy_and_hold: string | null
  fees_usd: string
  funding_usd: string
  exposure: string
  decisions: number
  holds: Readonly<Record<string, number>>
  guard_trips: { guard: GuardName; at: string }[]
  open_at_end: number
  gaps: number
  final_usd: string
  verdict: Verdict
  log_sha256: string
}
type IntervalText = { low: string; high: string }

const ratioText = (value: number): string => decimalText(Number(value.toFixed(8))) ?? '0'
const usdText = (micros: bigint): string => fromUnits(micros, usdDecimals)
const intervalText = (interval: Interval | undefined): IntervalText | null =>
  interval ? { low: ratioText(interval.low), high: ratioText(interval.high) } : null

const returnOf = ({ netMicros, costMicros }: ClosedTrade): number =>
  costMicros === 0n ? 0 : Number(netMicros) / Number(costMicros)

function verdictOf(count: number, expectancy: Interval | undefined): Verdict {
  if (count < tradesMin || !expectancy) return 'too_few'
  if (expectancy.low > 0) return 'positive'
  return expectancy.high < 0 ? 'negative' : 'no_edge'
}

/** Returns what the first asset would have returned from the first to the last price, after the costs of both orders. */
function buyAndHold({ assets, fromMs, toMs, slippagePpm }: SimulationInput): string | null {
  const [history] = Object.values(assets)
  if (!history) return null
  const { startMs, open, close, spanMs } = history.execution
  const first = startMs.findIndex((at) => at >= fromMs)
  const last = startMs.findLastIndex((at) => at + spanMs <= toMs)
  if (first < 0 || last < first) return null
  const costs = 0.000_45 + Number(slippagePpm) / Number(million)
  return ratioText(((close[last] ?? 0) / (open[first] ?? 1)) * (1 - costs) - 1 - costs)
}

export function reportOf(result: SimulationResult, input: SimulationInput, seed: number): BacktestReport {
  const { trades, equity, initialMicros, finalMicros } = result
  const returns = trades.map(returnOf)
  const wins = trades.filter(({ netMicros }) => netMicros > 0n).length
  const interval = bootstrapMean(returns, seed)
  const start = Number(initialMicros)
  const worth = [start / Number(million), ...equity.usd]
  return {
    trades: trades.length,
    win_rate: trades.length === 0 ? null : ratioText(wins / trades.length),
    win_rate_interval: intervalText(wilsonInterval(wins, trades.length)),
    expectancy: trades.length === 0 ? null : ratioText(meanOf(returns)),
    expectancy_interval: intervalText(interval),
    total_return: ratioText(Number(finalMicros) / start - 1),
    max_drawdown: ratioText(maxDrawdown(worth).fraction),
    buy_and_hold: buyAndHold(input),
    fees_usd: usdText(result.feesMicros),
    funding_usd: usdText(result.fundingMicros),
    exposure: ratioText(result.exposure),
    decisions: result.decided,
    holds: result.holds,
    guard_trips: result.guardTrips.map(({ guard, atMs }) => ({ guard, at: new Date(atMs).toISOString() })),
    open_at_end: result.openAtEnd,
    gaps: result.gaps,
    final_usd: usdText(finalMicros),
    verdict: verdictOf(trades.length, interval),
    log_sha256: result.logSha256,
  }
}

const tradeColumns = 'asset,side,opened_at,closed_at,worth_usd,net_usd,fees_usd,funding_usd,reason'

/** Writes one line for each trade; no field can contain a comma. */
export const tradesCsv = (trades: readonly ClosedTrade[]): string =>
  `${tradeColumns}\r\n${trades
    .map(({ asset, side, openedMs, closedMs, costMicros, netMicros, feesMicros, fundingMicros, reason }) =>
      [
        asset,
        side,
        new Date(openedMs).toISOString(),
        new Date(closedMs).toISOString(),
        usdText(costMicros),
        usdText(netMicros),
        usdText(feesMicros),
        usdText(fundingMicros),
        reason,
      ].join(','),
    )
    .map((line) => `${line}\r\n`)
    .join('')}`
