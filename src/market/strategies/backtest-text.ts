import { canonicalJson } from '#kernel/wire/json.ts'
import type { BacktestReport } from './backtest-report.ts'
import type { RecordedDecision } from './simulation.ts'

/** The files of a backtest that are text: its report, and the record of its decisions. */

const recordedMax = 5_000

/** Writes one line of JSON for each decision that did something, with the hash of what it was made from. */
export const decisionLines = (decisions: readonly RecordedDecision[]): string =>
  decisions
    .slice(0, recordedMax)
    .map(({ atMs, decision, inputsSha256 }) => {
      const line = { at: new Date(atMs).toISOString(), decision, inputs_sha256: inputsSha256 }
      return `${canonicalJson(line)}\n`
    })
    .join('')

const verdicts: Readonly<Record<BacktestReport['verdict'], string>> = {
  too_few: 'Fewer than 30 trades say nothing about the mean result of one.',
  positive: 'The mean result of a trade was above zero, and so is the whole interval around it.',
  negative: 'The mean result of a trade was below zero, and so is the whole interval around it.',
  no_edge: 'The mean result of a trade does not differ from zero by more than chance.',
}

export function reportText(
  report: BacktestReport,
  { title, subtitle }: { title: string; subtitle: string },
): string {
  const rows: [string, string | number | null][] = [
    ['Trades', report.trades],
    ['Trades with a gain', report.win_rate],
    ['Mean result of a trade', report.expectancy],
    ['Return', report.total_return],
    ['Deepest fall', report.max_drawdown],
    ['Buying and holding', report.buy_and_hold],
    ['Fees in USD', report.fees_usd],
    ['Funding in USD', report.funding_usd],
    ['Time with a position', report.exposure],
    ['Worth at the end in USD', report.final_usd],
    ['Open at the end', report.open_at_end],
    ['Missing candles', report.gaps],
    ['Decisions', report.decisions],
  ]
  const held = Object.entries(report.holds).sort(([, a], [, b]) => b - a)
  return [
    `# ${title}`,
    subtitle,
    '',
    verdicts[report.verdict],
    '',
    '| figure | value |',
    '|---|---|',
    ...rows.map(([name, value]) => `| ${name} | ${value ?? 'none'} |`),
    '',
    '## Why nothing was done',
    ...held.map(([reason, count]) => `- \`${reason}\`: ${count}`),
    '',
    '## Guards',
    ...(report.guard_trips.length === 0 ? ['None has tripped.'] : []),
    ...report.guard_trips.map(({ guard, at }) => `- \`${guard}\` at ${at}`),
    '',
    `SHA-256 of all decisions: \`${report.log_sha256}\``,
    '',
  ].join('\n')
}
