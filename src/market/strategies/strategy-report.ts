import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import { printedValue } from '#market/figure-text.ts'
import type { AccountFigures } from './account-figures.ts'
import type { Drift } from './drift.ts'
import { type StrategyFill, tradesOf, worthOfFill } from './fill-trades.ts'

/** The files of a strategy that are text: the report of a run that acted, and its fills. */

export type ReportedStrategy = {
  title: string
  /** Such as "Run 12 of version 3, live". */
  subtitle: string
  at: Date
  decision: string
  figures: AccountFigures | undefined
  equityUsd: string
  initialUsd: string
  budgetUsd: string | null
  /** The newest fills, the oldest of them first. */
  fills: readonly StrategyFill[]
  drift: Drift | null
}

const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)
const shownUsd = (text: string | null): string =>
  text === null ? 'unknown' : (printedValue({ value: text, unit: 'usd' }) ?? text)
const shownFraction = (text: string | null): string =>
  text === null ? 'none' : (printedValue({ value: text, unit: 'fraction' }) ?? text)

const newestMax = 20

function figureRows({ figures, equityUsd, initialUsd, budgetUsd, fills }: ReportedStrategy): string[] {
  const trades = tradesOf(fills)
  const gains = trades.filter(({ netMicros }) => netMicros > 0n).length
  const rows: [string, string][] = [
    ['Worth', shownUsd(equityUsd)],
    ['Worth at the beginning', shownUsd(initialUsd)],
  ]
  if (figures)
    rows.push(
      ['Realized, after fees and funding', shownUsd(figures.result.realized_usd)],
      ['Unrealized', shownUsd(figures.result.unrealized_usd)],
      ['Fees', shownUsd(figures.result.fees_usd)],
      ['Funding', shownUsd(figures.result.funding_usd)],
      ['Worth of all entries', shownUsd(usd(figures.spentMicros))],
    )
  if (budgetUsd !== null) rows.push(['Budget', shownUsd(budgetUsd)])
  rows.push(['Closed trades', String(trades.length)], ['Of these with a gain', String(gains)])
  return ['| figure | value |', '|---|---|', ...rows.map(([name, value]) => `| ${name} | ${value} |`)]
}

function positionRows(figures: AccountFigures | undefined): string[] {
  if (!figures) return ['The markets of the venue are not known now.']
  if (figures.positions.length === 0) return ['Nothing.']
  return [
    '| asset | side | size | entry | price | unrealized USD | stop | target |',
    '|---|---|---|---|---|---|---|---|',
    ...figures.positions.map((each) =>
      [
        '',
        each.asset,
        each.side,
        each.size,
        each.entry_price,
        each.mark_price ?? 'unknown',
        each.unrealized_pnl_usd ?? 'unknown',
        each.stop_price ?? 'none',
        each.target_price ?? 'none',
        '',
      ]
        .join(' | ')
        .trim(),
    ),
  ]
}

const iso = (ms: number): string => new Date(ms).toISOString()

function fillRows(fills: readonly StrategyFill[]): string[] {
  if (fills.length === 0) return ['None.']
  return [
    '| time | order | worth USD | fee USD | realized USD | why |',
    '|---|---|---|---|---|---|',
    ...fills.slice(-newestMax).map((fill) => {
      const order = `${fill.isBuy ? 'buy' : 'sell'} ${fill.size} ${fill.asset} at ${fill.price}`
      const why = fill.reason.replaceAll('_', ' ')
      const worth = usd(worthOfFill(fill))
      return `| ${iso(fill.atMs)} | ${order} | ${worth} | ${fill.feeUsd} | ${fill.realizedUsd ?? ''} | ${why} |`
    }),
  ]
}

function driftRows(drift: Drift | null): string[] {
  if (!drift) return ['Not compared yet.']
  const { entry_price_bps: bps } = drift
  const percent = bps === null ? null : `${bps.startsWith('-') ? bps.slice(1) : bps} hundredths of a percent`
  const price =
    percent === null
      ? 'No entry is in both.'
      : `On average the price of an entry was ${percent} ${bps?.startsWith('-') ? 'better' : 'worse'}.`
  return [
    `From ${drift.from} until ${drift.to}. ${price}`,
    '',
    '| figure | here | backtest |',
    '|---|---|---|',
    `| Entries | ${drift.entries + drift.entries_only_here} | ${drift.entries + drift.entries_only_in_backtest} |`,
    `| Entries in both | ${drift.entries} | ${drift.entries} |`,
    `| Closed trades | ${drift.trades} | ${drift.backtest_trades} |`,
    `| Mean result of a trade | ${shownFraction(drift.trade_result)} | ${shownFraction(drift.backtest_trade_result)} |`,
  ]
}

function guardRows(figures: AccountFigures | undefined): string[] {
  const trips = [figures?.guards.tripped, figures?.guards.trippedToday].filter((each) => !!each)
  return trips.length === 0
    ? ['None has tripped.']
    : trips.map((trip) => `- \`${trip.guard}\` at ${iso(trip.atMs)}`)
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim()

export function strategyReportText(report: ReportedStrategy): string {
  const { title, subtitle, at, decision, figures, fills, drift } = report
  return [
    `# ${oneLine(title)}`,
    `${subtitle}, ended at ${at.toISOString()}.`,
    '',
    `Decision: ${oneLine(decision)}`,
    '',
    ...figureRows(report),
    '',
    '## What is open',
    ...positionRows(figures),
    '',
    '## Newest fills',
    ...fillRows(fills),
    '',
    '## Compared with a backtest of the same time',
    ...driftRows(drift),
    '',
    '## Guards',
    ...guardRows(figures),
    '',
  ].join('\n')
}

const fillColumns =
  'time,asset,side,size,price,worth_usd,fee_usd,realized_pnl_usd,reason,is_exit,execution_id'

/** Writes one line for each fill; no field can contain a comma. */
export const fillsCsv = (fills: readonly StrategyFill[]): string =>
  [
    fillColumns,
    ...fills.map((fill) =>
      [
        iso(fill.atMs),
        fill.asset,
        fill.isBuy ? 'buy' : 'sell',
        fill.size,
        fill.price,
        usd(worthOfFill(fill)),
        fill.feeUsd,
        fill.realizedUsd ?? '',
        fill.reason,
        String(fill.isExit),
        fill.executionId ?? '',
      ].join(','),
    ),
  ]
    .map((line) => `${line}\r\n`)
    .join('')
