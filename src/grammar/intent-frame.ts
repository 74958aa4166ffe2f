import type { JsonObject } from '#kernel/wire/json.ts'
import type { Line } from './answer-lines.ts'
import type { Slots } from './clause-reader.ts'
import type { Concept, Feature, Rule } from './feature-rules.ts'
import type { FormulaName } from './input-formulas.ts'
import type { Choice } from './question-choices.ts'
import type { ReaderName } from './slot-readers.ts'
import type { ConditionName } from './step-predicates.ts'

/** The source of an input field: a slot, a fixed value, or a formula, which may leave the field out. */
export type Source = { slot: string } | { value: JsonObject[string] } | { formula: FormulaName }
export type PlanStep = {
  id: string
  operation: string
  input: Readonly<Record<string, Source>>
  /** The condition on the slots under which the step is part of the plan. */
  only?: ConditionName
  /** The formula that lists the inputs of the step, which then runs once for each input. */
  each?: FormulaName
  /**
   * The formula that has to answer true for the step to run; a step that is skipped for this reason is no failure.
   */
  guard?: FormulaName
}

/** What an intent may do: `quote` computes and moves nothing, and `tighten` can only restrict. */
export type Effect = 'none' | 'read' | 'quote' | 'trade' | 'move' | 'tighten'
export type SlotRule = {
  name: string
  question: string
  anyOf?: readonly string[]
  /** The slot that has to be filled for this rule to be required. */
  onlyWith?: string
  /**
   * The choices that the question offers; `chains` offers every chain except the one that the user named. A choice that
   * leads to another intent keeps the slots that are filled already.
   */
  choices?: readonly Choice[] | 'chains'
}
/** The market that an order trades in. The asset of a `token` order has to be on a chain. */
export type Place = 'token' | 'perp' | 'spot'
export type Frame = {
  intent: string
  domain: string
  effect: Effect
  summary: string
  /** The rules that all have to hold for the frame to fit a clause. */
  when: readonly Rule[]
  /** The concepts that the verb of the order may have; only frames that change something have this list. */
  head?: readonly Concept[]
  cues?: Readonly<Partial<Record<Feature, number>>>
  not?: Rule
  readers: readonly ReaderName[]
  slots: readonly string[]
  required?: readonly SlotRule[]
  plan?: readonly PlanStep[]
  answer?: readonly Line[]
  place?: Place
  /**
   * The intents of the same order at the venue; if several markets have the asset, the user chooses between them.
   */
  markets?: { perp: string; spot: string }
  /** Returns the choice to offer if the asset of a slot is on no chain and has a perpetual market. */
  atPerp?: (slots: Slots, asset: { symbol: string; slot: string }) => Choice | undefined
  /** True if the order may have a condition, provided that the condition is a price. */
  waitsForPrice?: true
  /** True if the order runs even if its verb was mistyped, without a question. */
  allowsTypo?: true
  /** True if an order without an amount means the dollars of the order before it in the message. */
  takesProceeds?: true
  /** True if this order cancels the task that was started last, when the user takes an order back. */
  takesBack?: true
  /** Returns the intent that executes what was quoted. */
  executedBy?: (slots: Slots) => string
  /** The whole answer to small talk, which calls nothing. */
  talk?: string
  /**
   * The times of the past that a read takes: `any`, or the last day alone. A read without it is about now, and a question
   * about another time is refused.
   */
  window?: 'any' | 'day'
  /** The other agent that answers this intent, because it computes charts, indicators and reports. */
  route?: 'MarketAnalyzerAgent' | 'ProDeepResearchAgent'
  /** The answer to a request that the chat cannot serve. */
  refusal?: string
  /** True if the examples need something that a user may not have, so that help does not offer them. */
  isUnoffered?: true
  examples: readonly string[]
}

type Given<Shared> = Omit<Frame, keyof Shared | 'readers' | 'slots'> & Partial<Frame>
/**
 * Adds the shared fields to each frame. A frame without `slots` has one slot per reader, with the name of the reader.
 */
export const framesOf = <Shared extends Partial<Frame>>(
  shared: Shared & Pick<Frame, 'domain' | 'effect'>,
  given: readonly Given<Shared>[],
): readonly Frame[] =>
  given.map(
    (frame) =>
      ({
        ...shared,
        ...frame,
        readers: frame.readers ?? [],
        slots: frame.slots ?? frame.readers ?? [],
      }) as Frame,
  )

export const isMutating = ({ effect }: Pick<Frame, 'effect'>): boolean =>
  effect === 'trade' || effect === 'move' || effect === 'tighten'

const isFilled = ({ name, anyOf, onlyWith }: SlotRule, slots: Slots): boolean =>
  (onlyWith !== undefined && slots[onlyWith] === undefined) ||
  (anyOf ?? [name]).some((slot) => slots[slot] !== undefined)

export const missingOf = (frame: Frame, slots: Slots): SlotRule[] =>
  (frame.required ?? []).filter((rule) => !isFilled(rule, slots))
