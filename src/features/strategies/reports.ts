import type { Files } from '#engines/files/files.ts'
import { withTimeLimit } from '#kernel/async/time-limit.ts'
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
import { findAccount, type StrategyAccount } from './account-store.ts'
import { type ComparedAccount, type DriftDeps, readDrift } from './drift-reading.ts'
import type { StrategyTerms } from './mode-driver.ts'
import {
  comparedBefore,
  fillOf,
  findReportedRun,
  lastPictureAt,
  newestFills,
  type RunFacts,
  type Worth,
  worthOf,
} from './report-store.ts'
import type { MadeFile, StrategyRunRow } from './run-port.ts'

/** Makes the files of a run of a strategy that acted: its report, and from time to time the curve and the fills. */

export type ReportDeps = DriftDeps & { files: Pick<Files, 'put'>; log: Log }
/** A run whose fills are stored, with its decision in words. */
export type ReportedRun = { run: StrategyRunRow; terms: StrategyTerms; text: string }
export type StrategyReports = {
  /** Stores the files of a run and returns them. A run does not depend on its files: without them it returns none. */
  make(reported: ReportedRun): Promise<MadeFile[]>
}

/** A strategy may act each minute; its curve and fills are made again after this time, and at each exit. */
const pictureEveryMs = 15 * 60_000
const dayMs = 86_400_000

/** The comparisons that are under way; each run of a strategy joins that of its version. */
type MakerDeps = ReportDeps & { comparisons: Map<string, Promise<Drift | null | undefined>> }

export function createStrategyReports(deps: ReportDeps): StrategyReports {
  const makerDeps: MakerDeps = { ...deps, comparisons: new Map() }
  return {
    async make(reported) {
      try {
        return await makeFiles(makerDeps, reported)
      } catch (error) {
        deps.log.warn({ error, executionId: reported.run.id }, 'a run of a strategy has no report')
        return []
      }
    },
  }
}

type Read = {
  account: StrategyAccount
  facts: RunFacts
  fills: readonly StrategyFill[]
  drift: Drift | null
  at: Date
}

async function makeFiles(deps: MakerDeps, reported: ReportedRun): Promise<MadeFile[]> {
  const read = await readReported(deps, reported)
  if (!read) return []
  const { terms } = reported
  const report = reportOf(reported, read)
  const put = async (name: string, type: string, content: string | Uint8Array): Promise<MadeFile> => {
    const { id, size } = await deps.files.put(terms.userId, name, type, Buffer.from(content))
    return { id, name, size }
  }
  const files = [await put('report.md', 'text/markdown; charset=utf-8', strategyReportText(report))]
  if (!(await isPictureDue(deps, reported.run))) return files
  const png = await renderPng(equityChartOf(await chartOf(deps, { reported, read, report })))
  files.push(await put('equity.png', 'image/png', png))
  if (read.fills.length > 0)
    files.push(await put('trades.csv', 'text/csv; charset=utf-8', fillsCsv(read.fills)))
  return files
}

async function readReported(deps: MakerDeps, { run, terms }: ReportedRun): Promise<Read | undefined> {
  const { db, clock } = deps
  const { strategy_id, mode } = run
  const [account, facts, rows] = await Promise.all([
    findAccount(db, { strategy_id, mode }),
    findReportedRun(db, run.id),
    newestFills(db, { strategyId: strategy_id, mode }),
  ])
  if (!account || !facts) return undefined
  const fills = rows.map(fillOf)
  const drift = await driftOrBefore(deps, { terms, openedAt: account.opened_at, fills })
  return { account, facts, fills, drift, at: clock.now() }
}

/** A run waits for its comparison for this time: its orders have ended, and the next run should not find it open. */
const driftWaitMs = 1_500

/**
 * Returns the comparison, or the one before while a backtest takes longer, since it may have to wait for others or for
 * candles. It goes on, and the next report has it.
 */
async function driftOrBefore(
  { comparisons, ...deps }: MakerDeps,
  compared: ComparedAccount,
): Promise<Drift | null> {
  const { strategyId, mode, version } = compared.terms
  const key = `${strategyId} ${mode} ${version}`
  const reading =
    comparisons.get(key) ??
    readDrift(deps, compared)
      .catch((error: unknown) => {
        deps.log.info({ error, strategyId }, 'a strategy was not compared with a backtest')
        return undefined
      })
      .finally(() => comparisons.delete(key))
  comparisons.set(key, reading)
  const drift = await withTimeLimit(reading, driftWaitMs)
  return drift === undefined ? (await comparedBefore(deps.db, { strategyId, mode, version })).drift : drift
}

const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)
const modeWords = ({ mode }: StrategyTerms): string => (mode === 'paper' ? 'on paper' : 'live')

function reportOf({ run, terms, text }: ReportedRun, { account, facts, ...read }: Read): ReportedStrategy {
  const { decision, budgetMicros } = terms.config
  const decimals = Object.fromEntries(
    Object.entries(decision.markets).map(([asset, rules]) => [asset, rules.size_decimals]),
  )
  const { initialMicros } = terms
  return {
    title: facts.title,
    subtitle: `Run ${facts.number} of version ${run.version}, ${modeWords(terms)}`,
    decision: text,
    figures: figuresOf(account.run, { decimals, initialMicros }),
    equityUsd: usd(equityOf(account.run, terms.config)),
    initialUsd: usd(initialMicros),
    budgetUsd: budgetMicros === null ? null : usd(budgetMicros),
    ...read,
  }
}

async function isPictureDue({ db, clock }: ReportDeps, run: StrategyRunRow): Promise<boolean> {
  if (run.execution_type === 'exit') return true
  const last = await lastPictureAt(db, run.strategy_id)
  return last === undefined || later(last, pictureEveryMs) <= clock.now()
}

type Charted = { reported: ReportedRun; read: Read; report: ReportedStrategy }

async function chartOf({ db }: ReportDeps, { reported, read, report }: Charted) {
  const { terms } = reported
  const { fills, at, account, facts } = read
  const stored = await worthOf(db, { strategyId: terms.strategyId, mode: terms.mode })
  const openedMs = account.opened_at.getTime()
  const first = stored[0]?.atMs ?? at.getTime()
  // The first rows are deleted by age; then the curve begins with what is left.
  const begin: Worth[] =
    first > openedMs && first - openedMs <= dayMs ? [{ atMs: openedMs, usd: report.initialUsd }] : []
  const until = stored.filter(({ atMs }) => atMs < at.getTime())
  return {
    title: cutTitle(`${facts.title}: the worth ${modeWords(terms)}`),
    subtitle: `${report.subtitle}, at ${at.toISOString().slice(0, 16).replace('T', ' ')} UTC.`,
    initialUsd: report.initialUsd,
    worth: [...begin, ...until, { atMs: at.getTime(), usd: report.equityUsd }],
    trades: tradesOf(fills),
    entries: fills.filter(({ isExit }) => !isExit).map(({ atMs, isBuy }) => ({ atMs, isBuy })),
  }
}

/** So many characters fit into the width of a picture. */
const titleMax = 80
const cutTitle = (title: string): string =>
  title.length > titleMax ? `${title.slice(0, titleMax - 1)}…` : title
