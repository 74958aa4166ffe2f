import type { ReadHistory } from '#market/market-data.ts'
import { type CheckedReport, citedClaims, citedSources } from './report.ts'

export function claimsJsonOf(report: CheckedReport): string {
  const claims = citedClaims(report)
  const document = {
    version: 1,
    title: report.title,
    generated_at: report.generatedAt,
    claims,
    sources: citedSources(report, claims),
    dropped: report.dropped,
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

export type NamedHistory = { source: string; asset: string; history: ReadHistory }

export const candleRows = (histories: readonly NamedHistory[]): string[][] => [
  ['source', 'asset', 'timeframe', 'start_utc', 'open', 'high', 'low', 'close', 'volume'],
  ...histories.flatMap(({ source, asset, history }) =>
    history.candles.map(({ startMs, open, high, low, close, volume }) => [
      source,
      asset,
      history.timeframe,
      new Date(startMs).toISOString(),
      ...[open, high, low, close, volume].map(String),
    ]),
  ),
]
