import type { BacktestJob } from '#engines/backtests/backtest-message.ts'
import { guardsOf } from '#engines/strategy-terms/guard-config.ts'
import { invalid } from '#kernel/contract/fault.ts'
import { toMicros } from '#kernel/money/money.ts'
import { type CandleSpan, candleSpanMs, dayMs } from '#market/candle.ts'
import { assetsOf } from '#market/strategies/decide.ts'
import type { GuardConfig } from '#market/strategies/guards.ts'
import type { AssetHistory } from '#market/strategies/simulation.ts'
import type { MarketRules, StrategyConfig } from '#market/strategies/strategy.ts'
import type { PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type BacktestInput, backtestDaysMax } from './contract.ts'
import { assertMargin, signalSpanOf, strategyOf } from './strategy-input.ts'
import { rulesOf } from './terms.ts'

/** A backtest as it is stored with its task: JSON alone. */
export type BacktestPlan = {
  strategy: StrategyConfig
  markets: Record<string, MarketRules>
  guards: GuardConfig
  fromMs: number
  toMs: number
  timezone: string
  /** The words of the times at which `dca` and `rebalance` act. */
  schedule: string | null
  initialUsd: string
  budgetUsd: string | null
  slippageBps: number
  seed: number
  signalSpan: CandleSpan
  /** The shorter candles that fill the orders, where all of them are there. */
  executionSpan: CandleSpan
}

/** What schedules know of local time. */
export type Calendars = {
  /** Returns the end of each local day from the first time until after the second; throws if there is no such zone. */
  dayEnds(timezone: string, fromMs: number, toMs: number): number[]
  /** Returns the times of a schedule in words; throws if the words are none. */
  slotsOf(words: string, time: { timezone: string; fromMs: number; toMs: number }): number[]
}
type PlanDeps = Calendars & {
  marketOf: (asset: string) => PerpMarket
  minOrderUsd: string
  nowMs: number
}

/** Minutes are read for at most this time: they are 14 pages of the venue. */
const minutesMsMax = 31 * dayMs
const badTime = (field: string, msg: string) => invalid(field, 'value_error', `Value error: ${msg}`)

type TimeRules = { signalSpan: CandleSpan; nowMs: number; assets: number }

function timeOf({ from, to }: BacktestInput, { signalSpan, nowMs, assets }: TimeRules) {
  const spanMs = candleSpanMs[signalSpan]
  const onGrid = (ms: number) => Math.floor(ms / spanMs) * spanMs
  const fromMs = onGrid(Date.parse(from))
  const toMs = onGrid(Math.min(nowMs, to === undefined ? nowMs : Date.parse(to)))
  if (fromMs >= toMs) throw badTime('from', '`from` is before `to`, and before the newest close')
  const daysMax = Math.floor(backtestDaysMax / assets)
  if (toMs - fromMs > daysMax * dayMs)
    throw badTime('from', `at most ${daysMax} days: those of all assets together are ${backtestDaysMax}`)
  return { fromMs, toMs }
}

export function planOf(input: BacktestInput, deps: PlanDeps): BacktestPlan {
  const { strategy: wanted, guards = {}, schedule, timezone = 'UTC' } = input
  const strategy = strategyOf(wanted, 'strategy', deps.marketOf)
  assertMargin(wanted, 'strategy', strategy)
  const signalSpan = signalSpanOf(wanted)
  const { length: assets } = assetsOf(strategy)
  const { fromMs, toMs } = timeOf(input, { signalSpan, nowMs: deps.nowMs, assets })
  const isTimed = strategy.type === 'dca' || strategy.type === 'rebalance'
  if (isTimed && schedule === undefined)
    throw invalid(
      'schedule',
      'missing',
      `Field required: a strategy of the type ${strategy.type} needs \`schedule\``,
    )
  if (!isTimed && schedule !== undefined)
    throw invalid('schedule', 'extra_forbidden', `A strategy of the type ${strategy.type} acts on closes`)
  // Words that are no schedule, and zones that are none, are refused here rather than by the task.
  if (schedule !== undefined) deps.slotsOf(schedule, { timezone, fromMs, toMs: fromMs + dayMs })
  deps.dayEnds(timezone, fromMs, fromMs + dayMs)
  const hasMinutes = assets === 1 && toMs - fromMs <= minutesMsMax
  return {
    strategy,
    markets: Object.fromEntries(
      assetsOf(strategy).map((asset) => [asset, rulesOf(deps.marketOf(asset), deps.minOrderUsd)]),
    ),
    guards: guardsOf(guards),
    fromMs,
    toMs,
    timezone,
    schedule: schedule ?? null,
    initialUsd: input.initial_usd ?? '1000',
    budgetUsd: input.budget_usd ?? null,
    slippageBps: input.slippage_bps ?? 5,
    seed: input.seed ?? 1,
    signalSpan,
    executionSpan: hasMinutes ? '1m' : signalSpan,
  }
}

export function jobOf(
  plan: BacktestPlan,
  assets: Record<string, AssetHistory>,
  { dayEnds, slotsOf }: Calendars,
): BacktestJob {
  const { strategy, markets, guards, fromMs, toMs, timezone, schedule } = plan
  const day = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  return {
    input: {
      config: {
        decision: { strategy, markets },
        guards,
        budgetMicros: plan.budgetUsd === null ? null : toMicros(plan.budgetUsd),
      },
      assets,
      fromMs,
      toMs,
      dayEnds: dayEnds(timezone, fromMs, toMs),
      ...(schedule !== null && { slots: slotsOf(schedule, { timezone, fromMs, toMs }) }),
      initialMicros: toMicros(plan.initialUsd),
      slippagePpm: BigInt(plan.slippageBps) * 100n,
    },
    seed: plan.seed,
    title: `Backtest: ${strategy.type.replaceAll('_', ' ')} of ${assetsOf(strategy).join(', ')}`,
    subtitle: `From ${day(fromMs)} until ${day(toMs)}, decided on closes of ${plan.signalSpan}.`,
  }
}
