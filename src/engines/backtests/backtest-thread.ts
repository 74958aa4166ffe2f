import { parentPort, workerData } from 'node:worker_threads'
import { renderPng } from '#market/chart-png.ts'
import { reportOf, tradesCsv } from '#market/strategies/backtest-report.ts'
import { decisionLines, reportText } from '#market/strategies/backtest-text.ts'
import { equityChartSvg } from '#market/strategies/equity-chart.ts'
import { simulateStrategy } from '#market/strategies/simulation.ts'
import {
  type BacktestJob,
  type BacktestMessage,
  type BacktestOutcome,
  entriesMax,
} from './backtest-message.ts'

/** The thread of one backtest: it computes, draws, sends its outcome and ends. */

async function compute({ input, seed, title, subtitle }: BacktestJob): Promise<BacktestOutcome> {
  const result = simulateStrategy(input)
  const { trades, equity } = result
  const initialUsd = Number(input.initialMicros) / 1_000_000
  const svg = equityChartSvg({ title, subtitle, initialUsd, equity, trades })
  const report = reportOf(result, input, seed)
  const lines = decisionLines(result.decisions)
  return {
    report,
    entries: result.entries.slice(-entriesMax),
    files: {
      reportMarkdown: Buffer.from(reportText(report, { title, subtitle })),
      equityPng: await renderPng(svg),
      tradesCsv: Buffer.from(tradesCsv(trades)),
      ...(lines !== '' && { decisionLines: Buffer.from(lines) }),
    },
  }
}

const message: BacktestMessage = await compute(workerData as BacktestJob).then(
  (outcome) => ({ outcome }),
  (error: unknown) => ({ error: error instanceof Error ? error.message : 'the backtest failed' }),
)
parentPort?.postMessage(message)
