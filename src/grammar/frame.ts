import type { JsonObject } from '#kernel/wire/json.ts'
import type { Line } from './answer-lines.ts'
import type { Choice } from './choice.ts'
import type { Concept, Feature, Rule } from './concepts.ts'
import type { FormulaName } from './formulas.ts'
import type { ConditionName } from './plan-conditions.ts'
import type { Slots } from './reader.ts'
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
  /** `chains` are all but the one that is said. A choice of another intent keeps the slots. */
  choices?: readonly Choice[] | 'chains'
}
/** The market of what is ordered. An asset of a `token` order has to be on a chain. */
export type Place = 'token' | 'perp' | 'spot'
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
  answer?: readonly Line[]
  place?: Place
  /** The intents that do the same at the venue; where several markets have the asset, the user chooses. */
  markets?: { perp: string; spot: string }
  /** What is offered where the asset of this slot is on no chain and has a perpetual market. */
  atPerp?: (slots: Slots, asset: { symbol: string; slot: string }) => Choice | undefined
  /** The order may have a condition, where that is a price. */
  waitsForPrice?: true
  /** A mistyped verb is not asked about. */
  allowsTypo?: true
  /** Without an amount, the dollars of the order before it in the message are meant. */
  takesProceeds?: true
  /** It cancels the task that was started last, where the user takes the order back. */
  takesBack?: true
  /** The intent that does what was quoted. */
  executedBy?: (slots: Slots) => string
  /** The whole answer of small talk. */
  talk?: string
  /** Another agent answers: charts, indicators and reports are computed there. */
  route?: 'MarketAnalyzerAgent' | 'ProDeepResearchAgent'
  /** What is said where it cannot be done. */
  refusal?: string
  examples: readonly string[]
}

type Given<Shared> = Omit<Frame, keyof Shared | 'readers' | 'slots'> & Partial<Frame>
/** Adds to each frame what they share. Without `slots`, each reader fills the slot of its name. */
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
