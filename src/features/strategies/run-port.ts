import type { Caller } from '#kernel/contract/caller.ts'
import type { NewEvent, StepContext, Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { SkipReason, StrategyExecutionRow } from '#store/tables/strategies.ts'

/** How the steps of a run let a strategy decide and act, whatever its mode. */

/** What a strategy reads of its run. */
export type StrategyRunRow = Pick<
  StrategyExecutionRow,
  'id' | 'strategy_id' | 'user_id' | 'version' | 'execution_type' | 'mode'
>
/** What the record of a run shows of its decision. */
export type RecordedDecision = {
  action: 'enter' | 'exit' | 'adjust' | 'hold'
  reason: string
  /** The decision in plain words. */
  text: string
  inputs_sha256: string
}
export type RunError = { code: string; message: string; retryable: boolean }
export type MadeFile = { id: string; name: string; size: number }

export type Skip = { reason: SkipReason; code: string; message: string }
/** What a decision is stored with. */
export type StoredDecision = {
  decision: RecordedDecision
  /** What the steps that act begin with. */
  data: JsonObject
  events: readonly NewEvent[]
}
export type Decided =
  /** Nothing can be decided now, and the run ends without a decision. */
  | { skip: Skip }
  /** The decision needs something that will be there in a moment. */
  | { waitMs: number }
  /** Decides and stores the decision, in the transaction that ends the step: no other decision comes between. */
  | { store(tx: Tx): Promise<StoredDecision> }
export type Acted =
  | { waitMs: number; data: JsonObject; store?(tx: Tx): Promise<NewEvent[]> }
  /** The orders of a decision are carried out, and the run decides again. */
  | { decideAgainMs: number; store?(tx: Tx): Promise<NewEvent[]> }
  | {
      /** What a run that ends has done; `error` says why something of it was not done. */
      end: {
        outcome: 'executed' | 'partial' | 'not_executed'
        error: RunError | null
        skipReason: SkipReason | null
      }
      decision: RecordedDecision
      realizedPnlUsd: string | null
      /** The files that the run has made. */
      files?: readonly MadeFile[]
      store(tx: Tx): Promise<NewEvent[]>
    }
export type DecideGiven = { caller: Caller; seq: number; context: StepContext }
export type ActGiven = { caller: Caller; data: JsonObject; context: StepContext }
export type StrategyRunner = {
  /** Prepares the decision with this number, counted from 1 in a run; a repeated step prepares it again. */
  decide(run: StrategyRunRow, given: DecideGiven): Promise<Decided>
  /** Does the next thing about the orders of the decision; it is called again until it returns an end. */
  act(run: StrategyRunRow, given: ActGiven): Promise<Acted>
}
