import type { BacktestJob, BacktestOutcome } from '#engines/backtests/backtest-message.ts'
import type { Backtests } from '#engines/backtests/backtests.ts'
import type { CandleStore } from '#engines/candles/candle-store.ts'
import type { FundingStore } from '#engines/candles/funding-store.ts'
import type { Files } from '#engines/files/files.ts'
import { requireKnownMarket } from '#engines/venue/records/markets.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { implement, type Operation, taskOf } from '#kernel/contract/operation.ts'
import type { StepContext, StepResult, TaskView } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { candleSpanMs } from '#market/candle.ts'
import type { Hyperliquid, PerpMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type BacktestPlan, type Calendars, jobOf, planOf } from './backtest-plan.ts'
import { type BacktestInput, contract } from './contract.ts'

export type StrategiesDeps = Calendars & {
  venue: Pick<Hyperliquid, 'perps'>
  candles: Pick<CandleStore, 'fill' | 'columns'>
  funding: FundingStore
  backtests: Backtests
  files: Pick<Files, 'put' | 'linkOf'>
  clock: Clock
  /** The least order that the venue takes. */
  minOrderUsd: string
}
type Data = JsonObject & { plan: BacktestPlan & JsonObject }
type Names = 'fill' | 'simulate'

/** The candles are read by pages, and the thread has a limit of its own. */
const stepTimeoutMs = 80_000
const retryMsMax = 60_000
/** The candles that are read before the first decision are a few more than it needs. */
const historyCandles = 1_010

export const createStrategies = (deps: StrategiesDeps): Operation[] =>
  implement(contract, {
    backtest: taskOf({
      admit: (input: BacktestInput) => admit(deps, input),
      steps: {
        fill: (task: TaskView<Data>) => fill(deps, task),
        simulate: (task: TaskView<Data>, context: StepContext) => simulate(deps, task, context),
      },
      stepTimeoutMs,
    }),
  })

async function admit(deps: StrategiesDeps, input: BacktestInput) {
  const list = await deps.venue.perps()
  const marketOf = (asset: string): PerpMarket => requireKnownMarket('perp', list, asset)
  const plan = planOf(input, { ...deps, marketOf, nowMs: deps.clock.now().getTime() })
  return { data: { plan: plan as Data['plan'] }, first: 'fill' as const }
}

/**
 * Fills the candles and rates that the backtest reads, and ends it with the newest close of the venue. While the share of
 * the user is used up, it waits; what was read until then is stored.
 */
async function fill(
  { candles, funding }: StrategiesDeps,
  { data: { plan }, userId }: TaskView<Data>,
): Promise<StepResult<Data, Names>> {
  const { signalSpan, executionSpan, fromMs } = plan
  let toMs = plan.toMs
  try {
    for (const market of Object.keys(plan.markets)) {
      const spanMs = candleSpanMs[signalSpan]
      const filledMs = await candles.fill(
        { market, span: signalSpan },
        fromMs - historyCandles * spanMs,
        userId,
      )
      toMs = Math.min(toMs, filledMs)
      if (executionSpan !== signalSpan) {
        const finerMs = await candles.fill({ market, span: executionSpan }, fromMs, userId)
        toMs = Math.min(toMs, Math.floor(finerMs / spanMs) * spanMs)
      }
      await funding.fill(market, { fromMs, toMs }, userId)
    }
  } catch (error) {
    const seconds = error instanceof Fault ? Number(error.extras?.retry_after) : Number.NaN
    if (!(seconds * 1_000 <= retryMsMax)) throw error
    return { park: { afterMs: Math.max(1_000, seconds * 1_000), next: 'fill' }, state: 'waiting' }
  }
  return { data: { plan: { ...plan, toMs } }, next: 'simulate' }
}

async function simulate(
  deps: StrategiesDeps,
  { data: { plan }, userId }: TaskView<Data>,
  { signal }: StepContext,
): Promise<StepResult<Data, Names>> {
  const job = await readJob(deps, plan)
  if ('earliestMs' in job) return notEnoughHistory(plan, job.earliestMs)
  const outcome = await deps.backtests.run(userId, job, signal)
  return {
    end: 'completed',
    outcome: 'executed',
    result: {
      ...outcome.report,
      data: {
        interval: plan.signalSpan,
        execution_interval: job.executionSpan,
        from: new Date(plan.fromMs).toISOString(),
        to: new Date(plan.toMs).toISOString(),
        source: 'hyperliquid',
      },
      artifacts: await storeFiles(deps, userId, outcome),
    },
  }
}

type ReadJob = BacktestJob & { executionSpan: BacktestPlan['executionSpan'] }

/** Reads the candles and rates. The shorter candles are used where none of them is missing. */
async function readJob(
  { candles, funding: rates, ...calendars }: StrategiesDeps,
  plan: BacktestPlan,
): Promise<ReadJob | { earliestMs: number | undefined }> {
  const { signalSpan, executionSpan, fromMs, toMs } = plan
  const historyMs = historyCandles * candleSpanMs[signalSpan]
  let isFine = executionSpan !== signalSpan
  const read: [string, BacktestJob['input']['assets'][string]][] = []
  for (const market of Object.keys(plan.markets)) {
    const signal = await candles.columns({ market, span: signalSpan }, { fromMs: fromMs - historyMs, toMs })
    const needed = fromMs - 1_000 * candleSpanMs[signalSpan]
    if ((signal.startMs[0] ?? Number.POSITIVE_INFINITY) > needed)
      return { earliestMs: signal.startMs[0] && signal.startMs[0] + 1_000 * candleSpanMs[signalSpan] }
    const execution = await candles.columns({ market, span: executionSpan }, { fromMs, toMs })
    isFine &&= execution.startMs.length === Math.floor((toMs - fromMs) / candleSpanMs[executionSpan])
    const funding = await rates.read(market, { fromMs, toMs })
    read.push([market, { signal, execution, funding }])
  }
  const all = read.map(([market, history]) => [
    market,
    isFine ? history : { ...history, execution: history.signal },
  ])
  const job = jobOf(plan, Object.fromEntries(all), calendars)
  return { ...job, executionSpan: isFine ? executionSpan : signalSpan }
}

function notEnoughHistory(plan: BacktestPlan, earliestMs: number | undefined): StepResult<Data, Names> {
  const earliest = earliestMs === undefined ? null : new Date(earliestMs).toISOString()
  return {
    end: 'failed',
    outcome: 'not_executed',
    error: {
      code: 'conflict',
      message:
        earliest === null
          ? `There are no candles of ${plan.signalSpan} before ${new Date(plan.fromMs).toISOString()}`
          : `Decisions need 1,000 candles before them: begin at ${earliest} or later`,
      retryable: false,
      ...(earliest !== null && { details: { earliest } }),
    },
  }
}

async function storeFiles({ files }: StrategiesDeps, userId: string, { files: made }: BacktestOutcome) {
  const { reportMarkdown, equityPng, tradesCsv, decisionLines } = made
  const stored = [
    await files.put(userId, 'report.md', 'text/markdown; charset=utf-8', reportMarkdown),
    await files.put(userId, 'equity.png', 'image/png', equityPng),
    await files.put(userId, 'trades.csv', 'text/csv; charset=utf-8', tradesCsv),
  ]
  if (decisionLines)
    stored.push(await files.put(userId, 'decisions.jsonl', 'application/x-ndjson', decisionLines))
  return Promise.all(
    stored.map(async (file) => {
      const { url, expiresAt } = await files.linkOf(file)
      const { name, contentType, size, sha256 } = file
      return { name, content_type: contentType, size, sha256, url, expires_at: expiresAt.toISOString() }
    }),
  )
}
