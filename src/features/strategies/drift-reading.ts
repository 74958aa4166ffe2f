import type { Backtests } from '#engines/backtests/backtests.ts'
import type { CandleStore } from '#engines/candles/candle-store.ts'
import type { FundingStore } from '#engines/candles/funding-store.ts'
import type { Clock } from '#kernel/clock.ts'
import { type CandleSpan, candleSpanMs, dayMs } from '#market/candle.ts'
import { assetsOf } from '#market/strategies/decide.ts'
import { type Drift, driftOf } from '#market/strategies/drift.ts'
import type { StrategyFill } from '#market/strategies/fill-trades.ts'
import type { AssetHistory, SimulationInput } from '#market/strategies/simulation.ts'
import type { Queryable } from '#store/query.ts'
import type { Calendars } from './backtest-plan.ts'
import type { StrategyTerms } from './mode-driver.ts'
import { comparedBefore, decisionTimes, storeDrift } from './report-store.ts'

/** Compares what a strategy did with a backtest of the same version, candles and times of decisions. */

export type DriftDeps = Pick<Calendars, 'dayEnds'> & {
  db: Queryable
  clock: Clock
  candles: Pick<CandleStore, 'fill' | 'columns'>
  funding: FundingStore
  backtests: Backtests
}
export type ComparedAccount = {
  terms: StrategyTerms
  openedAt: Date
  /** The newest fills, the oldest of them first. */
  fills: readonly StrategyFill[]
}

/** A backtest of a month of minutes takes seconds, so an account is compared once a day. */
const comparedEveryMs = dayMs
const comparedMsMax = 31 * dayMs
const historyCandles = 1_010
const durationMsMax = 20_000
/** As in a backtest by default. */
const slippagePpm = 500n
const seed = 1

/** Returns the comparison of today, or the one before where nothing can be compared now. */
export async function readDrift(deps: DriftDeps, compared: ComparedAccount): Promise<Drift | null> {
  const { strategyId, mode, version } = compared.terms
  const key = { strategyId, mode, version }
  const { versionAt, drift: before } = await comparedBefore(deps.db, key)
  const nowMs = deps.clock.now().getTime()
  if (before && nowMs - Date.parse(before.at) < comparedEveryMs) return before
  const beginMs = Math.max(compared.openedAt.getTime(), versionAt?.getTime() ?? 0, nowMs - comparedMsMax)
  const isComparable = compared.fills.some(({ isExit, atMs }) => !isExit && atMs >= beginMs)
  if (!isComparable) return before
  const drift = await compare(deps, compared, { beginMs, nowMs })
  if (!drift) return before
  await storeDrift(deps.db, key, drift)
  return drift
}

type Histories = {
  assets: Record<string, AssetHistory>
  executionSpan: CandleSpan
  fromMs: number
  toMs: number
}

async function compare(
  deps: DriftDeps,
  { terms, fills }: ComparedAccount,
  { beginMs, nowMs }: { beginMs: number; nowMs: number },
): Promise<Drift | undefined> {
  const read = await readHistories(deps, terms, { beginMs, nowMs })
  if (!read) return undefined
  const { assets, executionSpan, fromMs, toMs } = read
  const { type } = terms.config.decision.strategy
  const isTimed = type === 'dca' || type === 'rebalance'
  const input: SimulationInput = {
    config: terms.config,
    assets,
    fromMs,
    toMs,
    dayEnds: deps.dayEnds(terms.timezone, fromMs, toMs),
    ...(isTimed && { slots: await decisionTimes(deps.db, terms, { fromMs, toMs }) }),
    initialMicros: terms.initialMicros,
    slippagePpm,
  }
  const job = { input, seed, title: 'Comparison', subtitle: '' }
  const { report, entries } = await deps.backtests.run(terms.userId, job, AbortSignal.timeout(durationMsMax))
  return driftOf({
    fills,
    backtest: { entries, trades: report.trades, expectancy: report.expectancy },
    executionSpanMs: candleSpanMs[executionSpan],
    fromMs,
    // What was decided at the last close is filled after it.
    toMs: toMs - candleSpanMs[executionSpan],
    nowMs,
  })
}

/** Reads the candles and rates; undefined where there is less than one candle to compare, or too little before it. */
async function readHistories(
  { candles, funding, ...deps }: DriftDeps,
  { config, span, userId }: StrategyTerms,
  { beginMs, nowMs }: { beginMs: number; nowMs: number },
): Promise<Histories | undefined> {
  const markets = assetsOf(config.decision.strategy)
  const wanted: CandleSpan = markets.length === 1 ? '1m' : span
  const historyMs = historyCandles * candleSpanMs[span]
  for (const market of markets) {
    await candles.fill({ market, span }, beginMs - historyMs, userId)
    if (wanted !== span) await candles.fill({ market, span: wanted }, beginMs, userId)
    await funding.fill(market, { fromMs: beginMs, toMs: nowMs }, userId)
  }
  for (const executionSpan of new Set([wanted, span])) {
    const spanMs = candleSpanMs[executionSpan]
    const [fromMs, toMs] = [Math.ceil(beginMs / spanMs) * spanMs, Math.floor(nowMs / spanMs) * spanMs]
    if (toMs - fromMs < 2 * spanMs) continue
    const time = { fromMs, toMs }
    const read = await Promise.all(
      markets.map((market) =>
        readHistory({ candles, funding, ...deps }, { market, span, executionSpan, time }),
      ),
    )
    if (read.every((history) => history !== undefined))
      return {
        assets: Object.fromEntries(markets.map((market, at) => [market, read[at]!])),
        executionSpan,
        ...time,
      }
  }
  return undefined
}

type HistoryKey = {
  market: string
  span: CandleSpan
  executionSpan: CandleSpan
  time: { fromMs: number; toMs: number }
}

/** Returns undefined where candles are missing. */
async function readHistory(
  { candles, funding }: DriftDeps,
  { market, span, executionSpan, time }: HistoryKey,
): Promise<AssetHistory | undefined> {
  const historyMs = historyCandles * candleSpanMs[span]
  const signal = await candles.columns({ market, span }, { ...time, fromMs: time.fromMs - historyMs })
  const needed = time.fromMs - 1_000 * candleSpanMs[span]
  if ((signal.startMs[0] ?? Number.POSITIVE_INFINITY) > needed) return undefined
  const execution = await candles.columns({ market, span: executionSpan }, time)
  const expected = Math.floor((time.toMs - time.fromMs) / candleSpanMs[executionSpan])
  if (execution.startMs.length < expected) return undefined
  return { signal, execution, funding: await funding.read(market, time) }
}
