import type { Caller } from '#kernel/contract/caller.ts'
import type { StepContext, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { CandleSpan } from '#market/candle.ts'
import type { Decision, StrategyState } from '#market/strategies/strategy.ts'
import type { RunConfig } from '#market/strategies/strategy-run.ts'
import type { StrategyFillRow, StrategyMode } from '#store/tables/strategies.ts'
import type { StrategyAccount } from './account-store.ts'

/**
 * What differs between paper and live: where fills come from, what the venue says beside the account, and how orders are
 * carried out. All else, from the windows to the decision and its record, is the same.
 */

/** A version of a strategy with the rules of its markets, as a run or the watch reads them. */
export type StrategyTerms = {
  strategyId: string
  userId: string
  version: number
  mode: StrategyMode
  config: RunConfig
  /** The candles whose closes decide. */
  span: CandleSpan
  timezone: string
  /** What the account begins with. */
  initialMicros: bigint
}

/** An account that was brought up to date, with the fills that this has found. */
export type Synced = { account: StrategyAccount; fills: readonly StrategyFillRow[] }

export type OrderedRun = {
  executionId: string
  caller: Caller
  decision: Decision
  /** What the driver has stored about the orders of this run. */
  data: JsonObject
}
export type DriverAct =
  | { waitMs: number; data: JsonObject; apply?: (tx: Tx) => Promise<void> }
  | {
      outcome: 'executed' | 'partial' | 'not_executed'
      error: { code: string; message: string; retryable: boolean } | null
      apply?: (tx: Tx) => Promise<void>
    }

export type ModeDriver = {
  /**
   * Reads what has happened since the cursor of the account: prices on paper, fills and funding live. The returned
   * function applies it to the locked account; it does nothing to an account whose cursor has moved on.
   */
  readSince(
    account: StrategyAccount,
    terms: StrategyTerms,
    context: Pick<StepContext, 'now'>,
  ): Promise<(locked: StrategyAccount) => Synced>
  /** Returns what a decision reads: the account, and what only the venue knows. */
  stateOf(account: StrategyAccount, terms: StrategyTerms, nowMs: number): Promise<StrategyState>
  /** Does the next thing about the orders of a decision; it is called again until it returns an outcome. */
  act(run: OrderedRun, terms: StrategyTerms, context: StepContext): Promise<DriverAct>
}
