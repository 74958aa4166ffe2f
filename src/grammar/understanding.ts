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
const order = '"buy fifty dollars of eth on base"'
const notUnderstood =
  'That was not understood. This chat reads short sentences of English, such as "price of eth" or "what do i have"; ask "what can you do" for more.'
export const noteTexts = {
  negated: `You said not to, so nothing is done. An order says what to do, such as ${order}.`,
  reported: `That is the word of somebody else, so nothing is done. Say it yourself if you want it, such as ${order}.`,
  stated: `That reads as a statement, so nothing is done. Say it as an instruction if you want it, such as ${order}.`,
  conditional:
    'That depends on something that is not watched here, so nothing is done. A limit order or a stop waits for a price, such as "buy fifty dollars of eth on base at two thousand dollars".',
  supposed: `That was read as a thought, so nothing is done. Say it as an instruction, such as ${order}, or ask "quote fifty usdc to eth on base".`,
  question: `That was read as a question about an order, so nothing is done. Say it as an instruction if you want it, such as ${order}.`,
  /** The note of a clause that neither orders anything nor asks for anything that the grammar knows. */
  unclear: notUnderstood,
  dropped: 'The open question is dropped. Ask "what can you do" for what there is.',
  not_understood: notUnderstood,
  too_long: `That text is too long for an order. Say the order alone, such as ${order}.`,
  too_many: `Those are too many orders for one message. Send at most five at a time, such as ${order}.`,
}
export type NoteKind = keyof typeof noteTexts | 'partly'
export type Note = { kind: NoteKind; text: string }
export type Understanding = {
  intents: readonly Intent[]
  ask: Ask | null
  refusal: Refusal | null
  notes: readonly Note[]
}

export const nothing: Understanding = { intents: [], ask: null, refusal: null, notes: [] }

export const note = (kind: keyof typeof noteTexts): Note => ({ kind, text: noteTexts[kind] })

const unreadMax = 120
/** The note of an answer that leaves out a part of what was said. */
export const partly = (left: string): Note => ({
  kind: 'partly',
  text: `Not read, and so not answered: "${left.replaceAll('"', '').slice(0, unreadMax)}".`,
})

/** Whether a note is printed only if the answer has nothing else. */
export const isQuiet = ({ kind }: Note): boolean => kind === 'question' || kind === 'unclear'

/** Whether a note keeps the orders of its message from running. */
export const isBlocking = (each: Note): boolean => !isQuiet(each) && each.kind !== 'partly'
