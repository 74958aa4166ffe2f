import type { JsonObject } from '#kernel/wire/json.ts'
import type { Names } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import type { Choice } from './question-choices.ts'
import type { Outputs } from './step-outputs.ts'

/**
 * A problem of a step that cannot run as it is: the user has to answer a question, or the step stops with a reason.
 */
export type Problem =
  | { problem: 'ask'; slot: string; question: string; choices: readonly Choice[] }
  | { problem: 'stop'; reason: string }
export type FormulaContext = {
  slots: Slots
  outputs: Outputs
  names: Names
  nowMs: number
  /** The outputs of the orders that come earlier in the same message. */
  earlier: Outputs
  /** The current row of a step that runs once for each row of a list. */
  row?: JsonObject
}
type Value = JsonObject[string]
/** Computes the value of an input field; a formula that returns undefined leaves the field out. */
export type Formula = (context: FormulaContext) => Value | undefined | Problem

export const isProblem = (value: unknown): value is Problem =>
  typeof value === 'object' && value !== null && 'problem' in value
export const stop = (reason: string): Problem => ({ problem: 'stop', reason })
