import type { JsonObject } from '#kernel/wire/json.ts'
import type { Names } from './asset-and-chain-names.ts'
import type { Slots } from './clause-reader.ts'
import { type FormulaContext, isProblem, type Problem } from './input-formula.ts'
import { formulas } from './input-formulas.ts'
import type { Frame, PlanStep, Source } from './intent-frame.ts'
import type { Outputs } from './step-outputs.ts'
import { conditions } from './step-predicates.ts'

/**
 * Returns the steps of a frame for these slots, in order: the steps that read come before those that move money.
 */
export const stepsOf = (frame: Pick<Frame, 'plan'>, slots: Slots, names: Names): PlanStep[] =>
  (frame.plan ?? []).filter(({ only }) => only === undefined || conditions[only](slots, names))

export type StepInputs =
  | { state: 'ready'; inputs: readonly JsonObject[] }
  /** The step has nothing to do, such as no order to cancel. */
  | { state: 'skipped' }
  | { state: 'problem'; problem: Problem }

const read = (source: Source, context: FormulaContext): JsonObject[string] | undefined | Problem => {
  if ('value' in source) return source.value
  if ('slot' in source) return context.slots[source.slot]
  return formulas[source.formula](context)
}

function inputOf(step: PlanStep, context: FormulaContext): JsonObject | Problem {
  const input: JsonObject = {}
  for (const [field, source] of Object.entries(step.input)) {
    const value = read(source, context)
    if (isProblem(value)) return value
    if (value !== undefined) input[field] = value
  }
  return input
}

export type StepContext = {
  slots: Slots
  names: Names
  outputs: Outputs
  earlier?: Outputs
  /** The time of the message; only reads of the past need it. */
  nowMs?: number
}

/** Returns the inputs of a step, from the slots and from the outputs of the steps before it. */
export function inputsOf(
  step: PlanStep,
  { slots, names, outputs, earlier = {}, nowMs = 0 }: StepContext,
): StepInputs {
  const context: FormulaContext = { slots, names, outputs, earlier, nowMs }
  if (step.guard !== undefined) {
    const holds = formulas[step.guard](context)
    if (isProblem(holds)) return { state: 'problem', problem: holds }
    if (holds !== true) return { state: 'skipped' }
  }
  const rows = step.each === undefined ? [undefined] : formulas[step.each](context)
  if (isProblem(rows)) return { state: 'problem', problem: rows }
  const inputs: JsonObject[] = []
  for (const row of Array.isArray(rows) ? rows : []) {
    const input = inputOf(step, row === undefined ? context : { ...context, row: row as JsonObject })
    if (isProblem(input)) return { state: 'problem', problem: input }
    inputs.push(input)
  }
  return { state: 'ready', inputs }
}
