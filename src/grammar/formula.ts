import type { JsonObject } from '#kernel/wire/json.ts'
import type { Choice } from './choice.ts'
import type { Names } from './names.ts'
import type { Outputs } from './outputs.ts'
import type { Slots } from './reader.ts'

/** A step cannot run as it is: the user answers a question, or it stops with a reason. */
export type Problem =
  | { problem: 'ask'; slot: string; question: string; choices: readonly Choice[] }
  | { problem: 'stop'; reason: string }
export type FormulaContext = {
  slots: Slots
  outputs: Outputs
  names: Names
  /** The results of the orders before this one in the same message. */
  earlier: Outputs
  /** What a step that runs once for each row is about. */
  row?: JsonObject
}
type Value = JsonObject[string]
/** `undefined` leaves the field out. */
export type Formula = (context: FormulaContext) => Value | undefined | Problem

export const isProblem = (value: unknown): value is Problem =>
  typeof value === 'object' && value !== null && 'problem' in value
export const stop = (reason: string): Problem => ({ problem: 'stop', reason })
