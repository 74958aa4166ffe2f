import type { JsonObject } from '#kernel/json.ts'
import type { Concept, Feature, Rule } from './concepts.ts'
import type { FormulaName } from './formulas.ts'
import type { ConditionName } from './plan-conditions.ts'
import type { ReaderName } from './slot-readers.ts'

/** What a field of an operation is filled with; a formula that answers nothing leaves it out. */
export type Source = { slot: string } | { value: JsonObject[string] } | { formula: FormulaName }
export type PlanStep = {
  id: string
  operation: string
  input: Readonly<Record<string, Source>>
  /** The step is part of the plan only where this holds for the slots. */
  only?: ConditionName
  /** Runs once for each input that the formula lists. */
  each?: FormulaName
  /** Runs only where the formula answers true; it is skipped otherwise, and that is no failure. */
  guard?: FormulaName
}

/** `quote` computes and moves nothing; `tighten` can only restrict. */
export type Effect = 'none' | 'read' | 'quote' | 'trade' | 'move' | 'tighten'
export type SlotRule = {
  name: string
  question: string
  anyOf?: readonly string[]
  /** It is required where this slot is filled. */
  onlyWith?: string
}
export type Frame = {
  intent: string
  domain: string
  effect: Effect
  summary: string
  /** Each of these rules has to hold. */
  when: readonly Rule[]
  /** What the verb of the order may be; only for frames that change something. */
  head?: readonly Concept[]
  cues?: Readonly<Partial<Record<Feature, number>>>
  not?: Rule
  readers: readonly ReaderName[]
  slots: readonly string[]
  required?: readonly SlotRule[]
  plan?: readonly PlanStep[]
  /** Another agent answers: charts, indicators and reports are computed there. */
  route?: 'MarketAnalyzerAgent' | 'ProDeepResearchAgent'
  /** What is said where it cannot be done. */
  refusal?: string
  examples: readonly string[]
}

export const isMutating = ({ effect }: Pick<Frame, 'effect'>): boolean =>
  effect === 'trade' || effect === 'move' || effect === 'tighten'
