import type { BacktestReport } from '#market/strategies/backtest-report.ts'
import type { SimulatedEntry, SimulationInput } from '#market/strategies/simulation.ts'

/** What a backtest is started with, and what its thread sends back: one of the two fields. */

export type BacktestJob = {
  input: SimulationInput
  seed: number
  /** The headings of the picture. */
  title: string
  subtitle: string
}
export type BacktestFiles = {
  reportMarkdown: Uint8Array
  equityPng: Uint8Array
  tradesCsv: Uint8Array
  /** Left out where no decision did anything. */
  decisionLines?: Uint8Array
}
export type BacktestOutcome = {
  report: BacktestReport
  /** The newest of what opened or increased a position, the oldest first. */
  entries: readonly SimulatedEntry[]
  files: BacktestFiles
}
export const entriesMax = 2_000
export type BacktestMessage = { outcome: BacktestOutcome } | { error: string }
