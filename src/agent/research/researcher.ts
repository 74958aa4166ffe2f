import type { Names } from '#grammar/asset-and-chain-names.ts'
import type { Json } from '#kernel/wire/json.ts'
import { candleChartSvg } from '#market/candle-chart.ts'
import { renderPng } from '#market/chart-png.ts'
import { latestIndicators } from '#market/indicator-list.ts'
import { levelsOf } from '#market/levels.ts'
import { historyIn } from '#market/market-data.ts'
import { performanceChartSvg } from '#market/performance-chart.ts'
import { type ReportImages, type Research, researchReport } from './build-research-report.ts'
import { citationsOf } from './citations.ts'
import { type Collected, collect, readHistories } from './collect-results.ts'
import { csvOf } from './csv.ts'
import { createFacts, type Facts } from './facts.ts'
import type { Said, Session } from './market-analyzer-agent.ts'
import { renumbered } from './renumber-claims.ts'
import { type CheckedReport, checkReport } from './report.ts'
import { wrongClaims } from './report-claims.ts'
import { candleRows, claimsJsonOf, type NamedHistory } from './report-data-files.ts'
import { blockText, markdownOf } from './report-markdown.ts'
import { type ResearchAsset, researchScope, type Scope } from './research-scope.ts'

/**
 * This answerer is ProDeepResearchAgent. Its stages depend only on the results of its calls, which are stored: an
 * instance that takes an answer over repeats no call, and makes the same files.
 */

const performanceDays = 181
const mainTimeframe = '4h'

async function drawCharts(facts: Facts, scope: Scope): Promise<ReportImages> {
  const images: Record<string, Uint8Array> = {}
  const daily = facts.history('candles_1d')
  if (daily && daily.candles.length > 1) {
    const other = facts.history('benchmark')
    images['chart-performance.png'] = await renderPng(
      performanceChartSvg({
        asset: facts.asset,
        candles: daily.candles.slice(-performanceDays),
        ...(other && { benchmark: { asset: scope.benchmark, candles: other.candles } }),
        readAtMs: facts.newestMs,
      }),
    )
  }
  const main = facts.history(`candles_${mainTimeframe}`)
  if (main && main.candles.length > 1) {
    const { candles, set } = main
    images['chart-4h.png'] = await renderPng(
      candleChartSvg({
        asset: facts.asset,
        timeframe: mainTimeframe,
        candles,
        set,
        levels: levelsOf(candles, latestIndicators(set).atr_14 ?? Number.NaN),
        readAtMs: facts.newestMs,
      }),
    )
  }
  return images
}

/** Drops the claims whose value does not follow from their inputs, and with them the sentences that cite them. */
function checked({ report, facts }: Research): CheckedReport {
  const wrong = new Set(wrongClaims(report.claims, facts.outputs).map(({ id }) => id))
  return renumbered(
    checkReport({ ...report, claims: report.claims.filter(({ id }) => !wrong.has(id)) }),
    'needed',
  )
}

const sourcesJson = (outputs: ReadonlyMap<string, Json>): string =>
  `${JSON.stringify(Object.fromEntries(outputs), null, 1)}\n`

function histories({ sources }: CheckedReport, outputs: ReadonlyMap<string, Json>): NamedHistory[] {
  return sources.flatMap(({ id }) => {
    const output = outputs.get(id)
    const history = historyIn(output)
    return history ? [{ source: id, asset: String((output as { asset: string }).asset), history }] : []
  })
}

type Publication = { report: CheckedReport; facts: Facts; images: ReportImages }

async function publishAll(
  { tools, signal }: Session,
  { report, facts, images }: Publication,
): Promise<string[]> {
  const text = 'text/markdown; charset=utf-8'
  const json = 'application/json'
  const files = [
    { name: 'report.md', contentType: text, bytes: Buffer.from(markdownOf(report)) },
    { name: 'claims.json', contentType: json, bytes: Buffer.from(claimsJsonOf(report)) },
    { name: 'sources.json', contentType: json, bytes: Buffer.from(sourcesJson(facts.outputs)) },
    {
      name: 'data.csv',
      contentType: 'text/csv; charset=utf-8',
      bytes: Buffer.from(csvOf(candleRows(histories(report, facts.outputs)))),
    },
    ...Object.entries(images).map(([name, bytes]) => ({ name, contentType: 'image/png', bytes })),
  ]
  for (const file of files) {
    if (signal.aborted) break
    await tools.publish(file)
  }
  return files.map(({ name }) => name)
}

async function compute(scope: Scope, collected: readonly Collected[]) {
  await readHistories(collected)
  const facts = createFacts(scope.asset, collected)
  const images = await drawCharts(facts, scope)
  return { images, research: researchReport(scope, facts, images) }
}

export async function researchAsset(
  { asset, others, names }: { asset: ResearchAsset; others: readonly string[]; names: Names },
  session: Session,
): Promise<Said> {
  const { tools, emit, signal } = session
  emit.planning('plan_started', { id: 'plan', text: `Research ${asset.symbol}` })
  const scope = researchScope(asset, names)
  emit.planning('plan_step', {
    id: 'scope',
    text: `Ask: ${scope.calls.map(({ about }) => about).join(', ')}`,
  })
  emit.planning('plan_step', { id: 'collect', text: 'Read all of it' })
  const collected = await collect(tools, scope.calls, signal)
  emit.planning('plan_step', { id: 'compute', text: 'Compute the figures and draw the charts' })
  const { images, research } = await compute(scope, collected)
  emit.planning('plan_step', { id: 'check', text: 'Check each sentence against its figures' })
  const report = checked(research)
  const said: string[] = []
  const write = async (text: string): Promise<void> => {
    if (text === '' || signal.aborted) return
    await emit.chunk(`${said.length === 0 ? '' : '\n\n'}${text}`)
    said.push(text)
  }
  for (const block of report.sections.find(({ title }) => title === 'Verdict')?.blocks ?? [])
    await write(blockText(block))
  emit.planning('plan_step', { id: 'publish', text: 'Write the report' })
  const files = await publishAll(session, { report, facts: research.facts, images })
  await write(`The report is in ${files.join(', ')}.`)
  if (others.length > 0) await write(`One asset at a time: ask again for ${others.join(', ')}.`)
  emit.planning('plan_finished', { id: 'plan', text: 'Done' })
  return { citations: citationsOf(said.join('\n'), report) }
}
