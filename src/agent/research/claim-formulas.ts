import { isDecimal } from '#kernel/money/money.ts'
import { meanOf } from '#market/averages.ts'
import { type BacktestResult, backtest } from '#market/backtest-result.ts'
import { type Candle, dayMs, periodsPerYear } from '#market/candle.ts'
import { decimalText } from '#market/decimal-text.ts'
import { indicatorAt, isIndicator } from '#market/indicator-list.ts'
import { levelsOf, pivotsOf } from '#market/levels.ts'
import { fundingIn, historyIn, lastCandles, type ReadHistory } from '#market/market-data.ts'
import { regimeAt } from '#market/regime.ts'
import * as statistics from '#market/statistics.ts'
import { type Market, venueCosts } from '#market/trade-simulation.ts'
import { exitsOf, rules } from '#market/trading-rules.ts'
import type { Formula } from './claim.ts'
import { bookFormulas } from './order-book-formulas.ts'
import { type CriterionId, criteria, weigh } from './verdict-criteria.ts'

const numberOf = (value: unknown): number | undefined => {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  return typeof value === 'string' && isDecimal(value) ? Number(value) : undefined
}

/** Makes a formula of numbers, which has a value only if all inputs are numbers. */
const ofNumbers =
  (compute: (numbers: readonly number[]) => number | undefined): Formula =>
  (inputs) => {
    const numbers = inputs.map(numberOf)
    return numbers.every((value) => value !== undefined) ? decimalText(compute(numbers)) : undefined
  }

const ofHistory =
  (compute: (history: ReadHistory, rest: readonly unknown[]) => string | undefined): Formula =>
  ([output, ...rest]) => {
    const history = historyIn(output)
    return history && history.candles.length > 0 ? compute(history, rest) : undefined
  }

const closesIn = (history: ReadHistory, count: unknown): number[] | undefined =>
  lastCandles(history, numberOf(count) ?? 0)?.map(({ close }) => close)

/** Makes a formula of the last `count` closes, the first of which is the base. */
const ofCloses = (compute: (closes: number[], history: ReadHistory) => number | undefined): Formula =>
  ofHistory((history, [count]) => {
    const closes = closesIn(history, count)
    return closes && closes.length > 1 ? decimalText(compute(closes, history)) : undefined
  })

const ofCandles = (compute: (candles: readonly Candle[]) => number | undefined): Formula =>
  ofHistory((history, [count]) => {
    const candles = lastCandles(history, numberOf(count) ?? 0)
    return candles && decimalText(compute(candles))
  })

const ofTwo =
  (compute: (own: number[], other: number[]) => number | undefined): Formula =>
  ([first, second, count]) => {
    const [own, other] = [historyIn(first), historyIn(second)]
    const wanted = numberOf(count) ?? 0
    if (!own || !other || own.timeframe !== other.timeframe) return undefined
    const pairs = statistics.alignedCloses(own.candles, other.candles).map((closes) => closes.slice(-wanted))
    const [a = [], b = []] = pairs
    return a.length === wanted && wanted > 2
      ? decimalText(compute(statistics.returnsOf(a), statistics.returnsOf(b)))
      : undefined
  }

const last = ({ candles }: ReadHistory): number => candles.length - 1
const iso = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString()

/** Builds the candle of the last full UTC day, from candles of any timeframe up to a day. */
function dayBefore({ candles }: ReadHistory): Candle | undefined {
  const end = candles.at(-1)?.endMs
  if (end === undefined) return undefined
  const dayEnd = Math.floor(end / dayMs) * dayMs
  const within = candles.filter(({ startMs, endMs }) => startMs >= dayEnd - dayMs && endMs <= dayEnd)
  const [first, final] = [within[0], within.at(-1)]
  if (!first || !final || first.startMs !== dayEnd - dayMs || final.endMs !== dayEnd) return undefined
  return {
    ...first,
    endMs: dayEnd,
    high: Math.max(...within.map(({ high }) => high)),
    low: Math.min(...within.map(({ low }) => low)),
    close: final.close,
  }
}

const backtestSeed = 1
const results = new WeakMap<ReadHistory, Map<string, BacktestResult>>()

/**
 * Runs the backtest of a rule once, so that all of its figures come from one run. Without funding rates the test
 * leaves funding out.
 */
export function backtestOf(
  history: ReadHistory,
  fundingOutput: unknown,
  ruleId: unknown,
): BacktestResult | undefined {
  const rule = ruleId === 'trend' || ruleId === 'range' ? rules[ruleId] : undefined
  if (!rule) return undefined
  const funding = fundingIn(fundingOutput) ?? []
  const key = `${rule.id} ${funding.length} ${funding.at(0)?.atMs} ${funding.at(-1)?.atMs}`
  const known = results.get(history) ?? new Map<string, BacktestResult>()
  results.set(history, known)
  const market: Market = { candles: history.candles, set: history.set, funding }
  const found = known.get(key) ?? backtest(rule, market, { costs: venueCosts, seed: backtestSeed })
  known.set(key, found)
  return found
}

function backtestFigure(result: BacktestResult, field: unknown): string | undefined {
  const { winRateInterval: rate, expectancyInterval: mean, fromMs, toMs } = result
  const figures: Record<string, number | undefined> = {
    trades: result.trades,
    wins: result.wins,
    win_rate: result.winRate,
    win_rate_low: rate?.low,
    win_rate_high: rate?.high,
    expectancy: result.expectancy,
    expectancy_low: mean?.low,
    expectancy_high: mean?.high,
    total_return: result.totalReturn,
    max_drawdown: result.maxDrawdown,
    buy_and_hold: result.buyAndHold,
    buy_and_hold_drawdown: result.buyAndHoldDrawdown,
    fees: result.fees,
    funding: result.funding,
    candles: result.candles,
  }
  if (field === 'from') return iso(fromMs)
  if (field === 'to') return iso(toMs)
  return field === 'verdict' ? result.verdict : decimalText(figures[String(field)])
}

const ofNumberFormulas: Record<string, Formula> = {
  sum: ofNumbers((numbers) => numbers.reduce((sum, value) => sum + value, 0)),
  difference: ofNumbers(([a, b]) => (a ?? Number.NaN) - (b ?? Number.NaN)),
  product: ofNumbers((numbers) => numbers.reduce((product, value) => product * value, 1)),
  ratio: ofNumbers(([a, b]) => (b === 0 ? undefined : (a ?? Number.NaN) / (b ?? Number.NaN))),
  change: ofNumbers(([now, before]) =>
    before === 0 ? undefined : (now ?? Number.NaN) / (before ?? Number.NaN) - 1,
  ),
  /** The size of a position that loses this share of the account at its stop, but no more than the account has. */
  risk_size: ofNumbers(([account, entry, stop, share]) => {
    const lost = Math.abs((entry ?? Number.NaN) - (stop ?? Number.NaN)) / (entry ?? Number.NaN)
    const size = ((account ?? Number.NaN) * (share ?? Number.NaN)) / lost
    return size > 0 ? Math.min(size, account ?? 0) : undefined
  }),
  /** The yearly rate of an hourly funding rate. */
  carry: ofNumbers(([hourly]) => statistics.carryOf(hourly ?? Number.NaN)),
}

const ofHistoryFormulas: Record<string, Formula> = {
  last_close: ofHistory((history) => decimalText(history.candles.at(-1)?.close)),
  closed_at: ofHistory((history) => iso(history.candles.at(-1)?.endMs)),
  candle_count: ofHistory((history) => String(history.candles.length)),
  missing_candles: ofHistory((history) => String(history.gaps)),
  period_return: ofCloses((closes) => (closes.at(-1) ?? Number.NaN) / (closes[0] ?? Number.NaN) - 1),
  volatility: ofCloses((closes, { timeframe }) =>
    statistics.annualisedVolatility(statistics.returnsOf(closes), periodsPerYear(timeframe)),
  ),
  max_drawdown: ofCloses((closes) => statistics.maxDrawdown(closes).fraction),
  highest: ofCandles((candles) => Math.max(...candles.map(({ high }) => high))),
  lowest: ofCandles((candles) => Math.min(...candles.map(({ low }) => low))),
  mean_volume: ofCandles((candles) => meanOf(candles.map(({ close, volume }) => close * volume))),
  indicator: ofHistory((history, [id]) =>
    typeof id === 'string' && isIndicator(id)
      ? decimalText(indicatorAt(history.set, id, last(history)))
      : undefined,
  ),
  regime: ofHistory((history) => regimeAt(history.set, last(history))),
  level: ofHistory((history, [kind, rank, field]) => {
    const atr = indicatorAt(history.set, 'atr_14', last(history))
    const found = levelsOf(history.candles, atr ?? Number.NaN).filter((level) => level.kind === kind)
    const level = found[numberOf(rank) ?? -1]
    return field === 'touches' ? decimalText(level?.touches) : decimalText(level?.price)
  }),
  pivot: ofHistory((history, [name]) => {
    const day = dayBefore(history)
    const pivots: Record<string, number> = day ? pivotsOf(day) : {}
    return decimalText(pivots[String(name)])
  }),
  atr_exit: ofHistory((history, [side, field]) => {
    const atr = indicatorAt(history.set, 'atr_14', last(history))
    const close = history.candles.at(-1)?.close
    if (atr === undefined || close === undefined || (side !== 'long' && side !== 'short')) return undefined
    const exits = exitsOf(side, close, atr)
    return decimalText(field === 'stop' ? exits.stop : exits.target)
  }),
  signal: ofHistory((history, [ruleId]) => {
    const rule = ruleId === 'trend' || ruleId === 'range' ? rules[ruleId] : undefined
    return rule && (rule.decide(history.candles, history.set, last(history)) ?? 'none')
  }),
  backtest: ofHistory((history, [fundingOutput, ruleId, field]) => {
    const result = backtestOf(history, fundingOutput, ruleId)
    return result && backtestFigure(result, field)
  }),
}

const ratesIn = (output: unknown, count: unknown): number[] | undefined => {
  const rates = fundingIn(output)?.slice(-(numberOf(count) ?? 0))
  return rates && rates.length > 0 && rates.length === numberOf(count)
    ? rates.map(({ rate }) => rate)
    : undefined
}

export const formulas: Readonly<Record<string, Formula>> = {
  value: ([input]) => {
    const number = numberOf(input)
    if (number !== undefined) return typeof input === 'string' ? input : decimalText(number)
    if (typeof input === 'boolean') return input ? 'yes' : 'no'
    return typeof input === 'string' && input !== '' ? input : undefined
  },
  count: ([input]) => (Array.isArray(input) ? String(input.length) : undefined),
  criterion: ([value, id]) =>
    typeof value === 'string' && typeof id === 'string' && Object.hasOwn(criteria, id)
      ? criteria[id as CriterionId](value)
      : undefined,
  weigh: (effects) => weigh(effects.map(String)),
  tally: ([effect, ...effects]) => String(effects.filter((each) => each === effect).length),
  ...ofNumberFormulas,
  ...ofHistoryFormulas,
  ...bookFormulas,
  beta: ofTwo(statistics.betaOf),
  correlation: ofTwo(statistics.correlationOf),
  mean_rate: ([output, count]) => {
    const rates = ratesIn(output, count)
    return rates && decimalText(meanOf(rates))
  },
  positive_share: ([output, count]) => {
    const rates = ratesIn(output, count)
    return rates && decimalText(rates.filter((rate) => rate > 0).length / rates.length)
  },
}
