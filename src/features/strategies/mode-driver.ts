import type { Caller } from '#kernel/contract/caller.ts'
import type { StepContext, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { CandleSpan } from '#market/candle.ts'
import type { Decision, StrategyState } from '#market/strategies/strategy.ts'
import type { RunConfig } from '#market/strategies/strategy-run.ts'
import type { SkipReason, StrategyFillRow, StrategyMode } from '#store/tables/strategies.ts'
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
export type Synced = {
  account: StrategyAccount
  fills: readonly StrategyFillRow[]
  /** False where only prices have moved, which the next reading finds again. */
  hasChanged: boolean
}

/** A decision of a run, by its number in the run. */
export type OrderedDecision = { executionId: string; seq: number; atMs: number; decision: Decision }
export type OrderedRun = OrderedDecision & {
  /** Whether the run closes everything, whatever its decision says. */
  isExit: boolean
  caller: Caller
  /** What the driver has stored about the orders of this decision. */
  data: JsonObject
}
export type DriverAct =
  | { waitMs: number; data: JsonObject; apply?: (tx: Tx) => Promise<void> }
  | {
      outcome: 'executed' | 'partial' | 'not_executed'
      error: { code: string; message: string; retryable: boolean } | null
      /** Why a run that did nothing counts as skipped. */
      skipReason: SkipReason | null
      /** True of an exit that cannot close what is left, so that it is not tried again now. */
      isFinal?: true
      apply?: (tx: Tx) => Promise<void>
    }

/** What was read for an account while nothing was locked. */
export type ModeReading = {
  /** Applies what was read to the locked account; it does nothing to an account whose cursor has moved on. */
  apply(tx: Tx, locked: StrategyAccount): Promise<Synced>
  /** Returns what a decision reads: the account, and what only the venue knows. */
  stateOf(account: StrategyAccount, nowMs: number): StrategyState
}
/** The watch reads positions and guards alone; a decision also reads what else the account has at the venue. */
export type ReadAt = { nowMs: number; userId: string; purpose: 'decide' | 'watch' }
export type ModeDriver = {
  /** An account is looked at again after this time while anything is open or rests. */
  watchMs: number
  /** True if an exit has to act even if no position is open, because orders may rest at the venue. */
  hasVenueOrders?: true
  /** Returns the account of a strategy that has none yet. */
  open(terms: StrategyTerms, nowMs: number): Pick<StrategyAccount, 'run' | 'cursor'>
  /** Reads what has happened since the cursor of the account: prices on paper, fills and funding live. */
  read(account: StrategyAccount, terms: StrategyTerms, at: ReadAt): Promise<ModeReading>
  /**
   * Repairs what protects the positions of an account, after the watch has brought it up to date. A returned code is the
   * reason for which everything has to be closed.
   */
  tend?(account: StrategyAccount, terms: StrategyTerms, at: { nowMs: number }): Promise<string | undefined>
  /** Notes the orders of a decision in the locked account, in the transaction that stores the decision. */
  place(account: StrategyAccount, ordered: OrderedDecision, terms: StrategyTerms): StrategyAccount
  /** Does the next thing about the orders of a decision; it is called again until it returns an outcome. */
  act(run: OrderedRun, terms: StrategyTerms, context: StepContext): Promise<DriverAct>
}
