import type { Slots } from './clause-reader.ts'
import type { Mood } from './clauses.ts'
import type { Effect, Frame, PlanStep } from './intent-frame.ts'
import type { Choice } from './question-choices.ts'

/** One thing that a message asks for, with the steps that do it. */
export type Intent = {
  name: string
  effect: Effect
  mood: Mood
  slots: Slots
  steps: readonly PlanStep[]
  route?: Exclude<Frame['route'], undefined>
  /** The user's decision about a recommendation of the thread. */
  decision?: { recommendationId: string; status: 'accepted' | 'declined' }
}
export type Ask = { intent: string; slots: Slots; slot: string; question: string; choices: readonly Choice[] }
export type Refusal = { intent: string; text: string }
/** The reasons why something that the user said is not done, as texts. */
export const noteTexts = {
  negated: 'You said not to, so nothing is done.',
  reported: 'That is the word of somebody else, so nothing is done. Say it yourself if you want it.',
  stated: 'That reads as a statement, so nothing is done. Say it as an instruction if you want it.',
  conditional:
    'That depends on something that is not watched here, so nothing is done. A limit order or a stop waits for a price.',
  supposed: 'That is a thought, so nothing is done.',
  question: 'That is a question, so nothing is done. Say it as an instruction if you want it.',
  /** The note of a clause that neither orders anything nor asks for anything that the grammar knows. */
  unclear: 'That was not understood. Ask "what can you do" for what there is.',
  dropped: 'The open question is dropped.',
  not_understood: 'That was not understood. Ask "what can you do" for what there is.',
  too_long: 'That text is too long for an order. Say the order alone.',
  too_many: 'Those are too many orders for one message. Send at most five at a time.',
}
export type NoteKind = keyof typeof noteTexts
export type Note = { kind: NoteKind; text: string }
export type Understanding = {
  intents: readonly Intent[]
  ask: Ask | null
  refusal: Refusal | null
  notes: readonly Note[]
}

export const nothing: Understanding = { intents: [], ask: null, refusal: null, notes: [] }

export const note = (kind: NoteKind): Note => ({ kind, text: noteTexts[kind] })

/** Whether a note is printed only if the answer has nothing else. */
export const isQuiet = ({ kind }: Note): boolean => kind === 'question' || kind === 'unclear'
