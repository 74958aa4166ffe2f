import type { FormulaName } from './input-formulas.ts'
import type { PlanStep, Source } from './intent-frame.ts'
import type { ConditionName } from './step-predicates.ts'

/** This module builds the steps of plans, and the sources of their input fields. */

export const slot = (name: string): Source => ({ slot: name })
export const value = (given: string | boolean | number): Source => ({ value: given })
export const formula = (name: FormulaName): Source => ({ formula: name })

export const step = (
  id: string,
  operation: string,
  input: PlanStep['input'] = {},
  run: Pick<PlanStep, 'only' | 'each' | 'guard'> = {},
): PlanStep => ({ id, operation, input, ...run })
export const onlyIf = (only: ConditionName, given: PlanStep): PlanStep => ({ ...given, only })
