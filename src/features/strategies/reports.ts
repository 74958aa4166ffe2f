import type { Files } from '#engines/files/files.ts'
import type { Run } from '#features/schedules/run-task-store.ts'
import { later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import { renderPng } from '#market/chart-png.ts'
import { figuresOf } from '#market/strategies/account-figures.ts'
import type { Drift } from '#market/strategies/drift.ts'
import { equityChartOf } from '#market/strategies/equity-chart.ts'
import { type StrategyFill, tradesOf } from '#market/strategies/fill-trades.ts'
import { fillsCsv, type ReportedStrategy, strategyReportText } from '#market/strategies/strategy-report.ts'
import { equityOf } from '#market/strategies/strategy-run.ts'
import type { StrategyFillRow } from '#store/tables/strategies.ts'
import type { StrategyAccount } from './account-store.ts'
import { type DriftDeps, readDrift } from './drift-reading.ts'
import type { StrategyTerms } from './mode-driver.ts'
import { fillOf, lastPictureAt, newestFills, type Worth, worthOf } from './report-store.ts'

/** Makes the files of a run of a strategy that acted: its report, and from time to time the curve and the fills. */

export type ReportDeps = DriftDeps & { files: Pick<Files, 'put'>; log: Log }
export type ReportedRun = {
  run: Pick<Run, 'id' | 'strategy_id' | 'title' | 'number' | 'version' | 'execution_type'>
  terms: StrategyTerms
  /** As it is at the end of the run. */
  account: Pick<StrategyAccount, 'run' | 'opened_at'>
  /** Fills that are not stored yet. */
  newFills: readonly StrategyFillRow[]
  decision: { reason: string; text?: string }
}
export type ReportFile = { id: string; name: string; size: number }
export type StrategyReports = {
  /** Stores the files of a run and returns them. A run does not depend on its files: without them it returns none. */
  make(reported: ReportedRun): Promise<ReportFile[]>
}

/** A strategy may act each minute; its curve and fills are made again after this time, and at each exit. */
const pictureEveryMs = 15 * 60_000
const dayMs = 86_400_000

export const createStrategyReports = (deps: ReportDeps): StrategyReports => ({
  async make(reported) {
    try {
      return await makeFiles(deps, reported)
    } catch (error) {
      deps.log.warn({ error, executionId: reported.run.id }, 'a run of a strategy has no report')
      return []
    }
  },
})

async function makeFiles(deps: ReportDeps, reported: ReportedRun): Promise<ReportFile[]> {
  const { run, terms } = reported
  const fills = await fillsOf(deps, reported)
  const drift = await driftOrNone(deps, reported, fills)
  const report = reportOf(reported, { fills, drift, at: deps.clock.now() })
  const put = async (name: string, type: string, content: string | Uint8Array): Promise<ReportFile> => {
    const { id, size } = await deps.files.put(terms.userId, name, type, Buffer.from(content))
    return { id, name, size }
  }
  const files = [await put('report.md', 'text/markdown; charset=utf-8', strategyReportText(report))]
  if (!(await isPictureDue(deps, run))) return files
  const png = await renderPng(equityChartOf(await chartOf(deps, reported, report)))
  files.push(await put('equity.png', 'image/png', png))
  if (fills.length > 0) files.push(await put('trades.csv', 'text/csv; charset=utf-8', fillsCsv(fills)))
  return files
}

/** The stored fills with those of this run that are not stored yet, the oldest first. */
async function fillsOf({ db }: ReportDeps, { run, terms, newFills }: ReportedRun): Promise<StrategyFill[]> {
  const stored = await newestFills(db, { strategyId: run.strategy_id, mode: terms.mode })
  const known = new Set(stored.map(({ fill_id }) => String(fill_id)))
  return [...stored, ...newFills.filter(({ fill_id }) => !known.has(String(fill_id)))].map(fillOf)
}

/** A backtest may have to wait for others, or for candles; the report then has the comparison of before or none. */
async function driftOrNone(
  deps: ReportDeps,
  { terms, account }: ReportedRun,
  fills: readonly StrategyFill[],
): Promise<Drift | null> {
  return readDrift(deps, { terms, openedAt: account.opened_at, fills }).catch((error: unknown) => {
    deps.log.info({ error, strategyId: terms.strategyId }, 'a strategy was not compared with a backtest')
    return null
  })
}

const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)

type Compared = { fills: readonly StrategyFill[]; drift: Drift | null; at: Date }

function reportOf(
  { run, terms, account, decision }: ReportedRun,
  { fills, drift, at }: Compared,
): ReportedStrategy {
  const { markets } = terms.config.decision
  const decimals = Object.fromEntries(
    Object.entries(markets).map(([asset, rules]) => [asset, rules.size_decimals]),
  )
  const { initialMicros } = terms
  const { budgetMicros } = terms.config
  return {
    title: run.title,
    subtitle: `Run ${run.number} of version ${run.version}, ${terms.mode === 'paper' ? 'on paper' : 'live'}`,
    at,
    decision: decision.text ?? decision.reason,
    figures: figuresOf(account.run, { decimals, initialMicros }),
    equityUsd: usd(equityOf(account.run, terms.config)),
    initialUsd: usd(initialMicros),
    budgetUsd: budgetMicros === null ? null : usd(budgetMicros),
    fills,
    drift,
  }
}

async function isPictureDue({ db, clock }: ReportDeps, run: ReportedRun['run']): Promise<boolean> {
  if (run.execution_type === 'exit') return true
  const last = await lastPictureAt(db, run.strategy_id)
  return last === undefined || later(last, pictureEveryMs) <= clock.now()
}

async function chartOf({ db }: ReportDeps, { run, terms, account }: ReportedRun, report: ReportedStrategy) {
  const { fills, at, equityUsd, initialUsd } = report
  const stored = await worthOf(db, { strategyId: run.strategy_id, mode: terms.mode })
  const openedMs = account.opened_at.getTime()
  const first = stored[0]?.atMs ?? at.getTime()
  // The first rows are deleted by age; then the curve begins with what is left.
  const begin: Worth[] =
    first > openedMs && first - openedMs <= dayMs ? [{ atMs: openedMs, usd: initialUsd }] : []
  const until = stored.filter(({ atMs }) => atMs < at.getTime())
  return {
    title: `${run.title.slice(0, titleCharacters)}: ${terms.mode === 'paper' ? 'paper' : 'live'}`,
    subtitle: `${report.subtitle}. ${at.toISOString().slice(0, 16).replace('T', ' ')} UTC.`,
    initialUsd,
    worth: [...begin, ...until, { atMs: at.getTime(), usd: equityUsd }],
    trades: tradesOf(fills),
    entries: fills.filter(({ isExit }) => !isExit).map(({ atMs, isBuy }) => ({ atMs, isBuy })),
  }
}

/** So many fit into the width of a picture. */
const titleCharacters = 70
