import type { Citation, Emit, Tools } from '#kernel/wire/chat-answerer.ts'
import type { Timeframe } from '#market/candle.ts'
import { candleChartAlt, candleChartSvg } from '#market/candle-chart.ts'
import { renderPng } from '#market/chart-png.ts'
import { latestIndicators } from '#market/indicator-list.ts'
import { type Level, levelsOf } from '#market/levels.ts'
import { citationsOf } from './citations.ts'
import type { Claim } from './claim.ts'
import { collect, readHistories } from './collect-results.ts'
import { type Facts, known } from './facts.ts'
import { type Analysis, analyse, analysisCalls } from './market-analysis.ts'
import { renumbered } from './renumber-claims.ts'
import { checkReport, citedSources } from './report.ts'
import { blockText } from './report-markdown.ts'
import type { ResearchAsset } from './research-scope.ts'
import type { TimeframeFacts } from './timeframe-facts.ts'
import { type Proposal, proposalOf, proposalText, recommendationOf } from './trade-proposal.ts'

/** This answerer is MarketAnalyzerAgent: it makes an analysis with charts, and trades nothing. */

export type Session = { tools: Tools; emit: Emit; signal: AbortSignal }
export type Said = { citations: Citation[] }

const missingText = ({ missing }: Facts): string | undefined =>
  missing.length === 0
    ? undefined
    : `Not available now: ${missing.map(({ about, result }) => (result.ok ? about : `${about} (${result.code})`)).join(', ')}.`

/** Draws a chart of each timeframe that has candles; the chart of the main timeframe shows the proposal. */
const chartsOf = ({ facts, timeframes, main }: Analysis, proposal: Proposal | undefined): NamedChart[] =>
  timeframes.flatMap((found) => {
    const history = facts.history(found.call)
    if (!history) return []
    const { candles, set } = history
    const levels: Level[] = levelsOf(candles, latestIndicators(set).atr_14 ?? Number.NaN)
    const prices = found === main && proposal ? pricesOf(proposal) : undefined
    return {
      name: `chart-${found.timeframe}.png`,
      chart: {
        asset: facts.asset,
        timeframe: found.timeframe,
        candles,
        set,
        levels,
        ...(prices && { proposal: prices }),
        readAtMs: facts.newestMs,
      },
    }
  })

type NamedChart = { name: string; chart: Parameters<typeof candleChartSvg>[0] }
const pricesOf = ({ side, entry, stop, target }: Proposal) => ({
  side,
  entry: Number(entry.value),
  stop: Number(stop.value),
  target: Number(target.value),
})

const valuesOf = ({ timeframe, regime, close, closedAt, indicators, levels }: TimeframeFacts) => ({
  timeframe,
  regime: regime?.value ?? null,
  close: close?.value ?? null,
  closed_at: closedAt?.value ?? null,
  indicators: Object.fromEntries([...indicators].map(([id, { value }]) => [id, value])),
  levels: levels.map(({ kind, price, touches }) => ({ kind, price: price.value, touches: touches.value })),
})

type Shown = {
  proposal: Proposal | undefined
  charts: readonly NamedChart[]
  claims: readonly Claim[]
}

function analysisJson(
  { facts, timeframes, rule, report }: Analysis,
  { proposal, charts, claims }: Shown,
): string {
  const document = {
    version: 1,
    asset: facts.asset,
    generated_at: report.generatedAt,
    timeframes: timeframes.map(valuesOf),
    charts: charts.map(({ name, chart }) => ({ file: name, text: candleChartAlt(chart) })),
    rule: rule ? { id: rule.id, text: rule.text, verdict: rule.verdict?.value ?? null } : null,
    proposal: proposal
      ? {
          side: proposal.side,
          entry: proposal.entry.value,
          stop: proposal.stop.value,
          target: proposal.target.value,
        }
      : null,
    claims,
    sources: citedSources(report, claims),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

async function publishCharts({ tools, signal }: Session, charts: readonly NamedChart[]): Promise<string[]> {
  const names: string[] = []
  for (const { name, chart } of charts) {
    if (signal.aborted) break
    await tools.publish({ name, contentType: 'image/png', bytes: await renderPng(candleChartSvg(chart)) })
    names.push(name)
  }
  return names
}

type Asked = {
  asset: ResearchAsset
  others: readonly string[]
  timeframe: Timeframe
  unserved: string | undefined
}

export async function analyseMarket(
  { asset: { symbol: asset, perp }, others, timeframe, unserved }: Asked,
  session: Session,
): Promise<Said> {
  const { tools, emit, signal } = session
  if (!perp) {
    await emit.chunk(`${asset} has no perpetual market here, so there are no candles of it.`)
    return { citations: [] }
  }
  emit.planning('plan_started', { id: 'plan', text: `Analyse ${asset} on ${timeframe} candles` })
  emit.planning('plan_step', { id: 'collect', text: 'Read candles, funding and the market' })
  const collected = await collect(tools, analysisCalls(asset, timeframe), signal)
  emit.planning('plan_step', { id: 'compute', text: 'Compute indicators, levels and the backtest' })
  await readHistories(collected)
  const analysis = analyse(asset, timeframe, collected)
  const { facts, main } = analysis
  const proposal = proposalOf(analysis)
  const said: string[] = []
  const write = async (text: string | undefined): Promise<void> => {
    if (text === undefined || text === '' || signal.aborted) return
    await emit.chunk(`${said.length === 0 ? '' : '\n\n'}${text}`)
    said.push(text)
  }
  const verdict = recommendationOf(analysis, proposal)
  const { report } = analysis
  const read = checkReport({
    ...report,
    sections: [
      ...report.sections,
      { title: 'Proposal', blocks: [{ type: 'text', sentences: known([proposalText(analysis, proposal)]) }] },
    ],
    // The claims are read from the book again, which now has the claims of the proposal.
    claims: facts.book.claims(),
  })
  const checked = renumbered(read, 'all')
  if (unserved !== undefined)
    await write(`Candles of ${unserved} are not analysed here; this is the analysis of ${timeframe} candles.`)
  await write(checked.lead.join('\n'))
  if (!main) await write(`There are no ${timeframe} candles of ${facts.asset} now.`)
  for (const { blocks } of checked.sections) for (const block of blocks) await write(blockText(block))
  await write(missingText(facts))
  emit.planning('plan_step', { id: 'publish', text: 'Draw the charts' })
  const charts = chartsOf(analysis, proposal)
  const names = await publishCharts(session, charts)
  if (main && !signal.aborted) {
    const bytes = Buffer.from(analysisJson(analysis, { proposal, charts, claims: checked.claims }))
    await tools.publish({ name: 'analysis.json', contentType: 'application/json', bytes })
    await write(`Files: ${[...names, 'analysis.json'].join(', ')}.`)
  }
  if (verdict && 'reason' in verdict) await write(verdict.reason)
  if (verdict && 'call' in verdict && !signal.aborted) {
    const { ok } = await tools.call(verdict.call)
    await write(
      ok
        ? 'It waits for you: accept the recommendation to start it, or decline it.'
        : 'The recommendation was refused.',
    )
  }
  if (others.length > 0) await write(`One market at a time: ask again for ${others.join(', ')}.`)
  emit.planning('plan_finished', { id: 'plan', text: 'Done' })
  return { citations: citationsOf(said.join('\n'), checked) }
}
