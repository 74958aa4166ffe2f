import type { StrategyInput } from '#engines/strategy-terms/strategy-schemas.ts'
import type { StrategyFacts } from '#features/strategies/strategy-facts.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { StrategyMode } from '#store/tables/strategies.ts'

/** What schedules need of the venue, and of the feature that trades for them. */
export type StrategyPort = {
  /** Checks a configuration and returns its facts; throws the refusal of a field below `at`. */
  factsOf(input: StrategyInput, at: string): Promise<StrategyFacts>
  /** Returns the perpetual markets in which the account has a position; undefined while the venue does not say. */
  positionsOf(userId: string): Promise<string[] | undefined>
  /**
   * Begins to close what a strategy has open on paper or live, in the transaction that stops it. Returns the task that
   * does it; undefined if nothing is open.
   */
  startExit(
    tx: Tx,
    scope: { strategyId: string; mode: StrategyMode },
    reason: string,
  ): Promise<string | undefined>
  /** Lets tasks run that a committed transaction has queued. */
  announceQueued(): void
}
