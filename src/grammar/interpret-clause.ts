import { dollarSymbol } from './asset-and-chain-names.ts'
import { intentOf } from './build-intent.ts'
import { questionOf } from './clarifying-question.ts'
import type { Slots } from './clause-reader.ts'
import type { Clause, Mood } from './clauses.ts'
import type { Concept } from './feature-rules.ts'
import { frameOf } from './frames.ts'
import { type Frame, isMutating } from './intent-frame.ts'
import { oddWord } from './odd-words.ts'
import type { Registry } from './operation-registry.ts'
import { type Scored, score } from './score-intents.ts'
import { has } from './tag.ts'
import { contextMs, isFresh, type ThreadState } from './thread-memory.ts'
import { isTimed, windowOf } from './times.ts'
import { type Ask, type Intent, type Note, note, type Refusal } from './understanding.ts'
import { unreadWords } from './unread-words.ts'

/** The meaning of one clause by itself. */
export type Found = { intent?: Intent; ask?: Ask; refusal?: Refusal; note?: Note; unread?: string }
type Setting = {
  nowMs: number
  state: ThreadState
  registry: Registry
  before: readonly Intent[]
  isLong: boolean
}

const scoreMin = 1
const mutationMargin = 1

const noteFor: Readonly<Partial<Record<Mood, Note>>> = {
  negated: note('negated'),
  reported: note('reported'),
  stated: note('stated'),
  conditional: note('conditional'),
}
const says = ({ tokens }: Clause, concept: Concept): boolean => tokens.some((token) => has(token, concept))

/** Interprets a clause by the best frame, unless two orders fit the clause alike. */
export function interpret(clause: Clause, setting: Setting): Found {
  const refused = noteFor[clause.mood]
  if (refused) return { note: refused }
  const opening = clause.tokens.find((token) => token.kind !== 'mark' && !has(token, 'FILLER'))
  // A clause that only states a condition belongs to another clause's order; the note keeps that order from running.
  if (clause.head.length === 0 && clause.mood === 'ask' && has(opening, 'IF'))
    return { note: note('conditional') }
  const scored = score(clause, { names: setting.registry.names, nowMs: setting.nowMs }).filter(
    ({ score: points, frame }) => isMutating(frame) || points >= scoreMin,
  )
  const [best, second] = scored
  if (!best) return { note: noteWithout(clause) }
  const areAlike = second && best.score - second.score < mutationMargin && clause.mood === 'do'
  if (areAlike && isMutating(best.frame) && isMutating(second.frame)) return { ask: askBetween(best, second) }
  return resolveFrame(best, clause, setting)
}

/** Returns the reason why a clause that fits no frame is not done. */
function noteWithout(clause: Clause): Note {
  const isAct = clause.head.length > 0
  if (clause.hasCondition && isAct) return note('conditional')
  if (clause.mood === 'suppose') return note('supposed')
  if (isAct || clause.mood !== 'ask') return note('not_understood')
  return note(clause.holdsOrder ? 'question' : 'unclear')
}

const askBetween = (best: Scored, second: Scored): Ask => ({
  intent: best.frame.intent,
  slots: best.slots,
  slot: 'intent',
  question: 'Which of these do you want?',
  choices: [best, second].map(({ frame, slots }) => ({
    label: frame.summary,
    intent: frame.intent,
    fill: slots,
  })),
})

function resolveFrame(best: Scored, clause: Clause, setting: Setting): Found {
  const { registry, state, nowMs, isLong } = setting
  const { frame } = best
  const isOrder = isMutating(frame) && clause.mood === 'do'
  if (isConditional(clause, frame)) return { note: note('conditional') }
  if (frame.refusal !== undefined) return { refusal: { intent: frame.intent, text: frame.refusal } }
  const late = refusalOfTime(frame, clause, setting)
  if (late) return { refusal: late }
  const slots = withFocus(best, clause, setting)
  if (isOrder && isLong) return { note: note('too_long') }
  const focus = isFresh(state.focus, nowMs, contextMs) ? state.focus : undefined
  const isAtPerp = focus?.market === 'perp' && focus.asset === slots.asset && says(clause, 'IT')
  const atPerp = frame.markets && isAtPerp ? frameOf(frame.markets.perp) : undefined
  if (atPerp && slots.trailing === undefined)
    return resolveFrame({ ...best, frame: atPerp, slots }, clause, setting)
  const market = says(clause, 'TOKENWORD') ? 'token' : undefined
  const question = questionOf({ ...best, slots }, registry.names, market)
  if (question)
    return clause.mood === 'suppose' && isMutating(frame) ? { note: note('supposed') } : { ask: question }
  const odd = isOrder ? oddWord(clause.tokens, { cues: frame.cues, taken: best.taken }) : undefined
  if (odd !== undefined) return { ask: confirmation(frame, slots, `"${odd}" was not understood.`) }
  if (isOrder && clause.isGuess && !frame.allowsTypo)
    return { ask: confirmation(frame, slots, 'A word of that was mistyped.') }
  const unread = unreadWords(clause, frame, best.taken)
  return {
    intent: intentOf(frame, slots, { mood: clause.mood, registry }),
    ...(unread !== undefined && { unread }),
  }
}

/** The answer to a question about a time of which nothing is recorded. */
const onlyNow =
  'That is known only as it is now, and there is no record of other times. Ask it without a time; "how did eth move this week" and "what did i trade yesterday" take one.'

/** Returns why a read is not answered for the time that the clause names, past or to come. */
function refusalOfTime(
  frame: Frame,
  clause: Clause,
  { registry: { names }, nowMs }: Setting,
): Refusal | undefined {
  if (frame.effect !== 'read' || frame.domain === 'predictions') return undefined
  const reader = { tokens: clause.tokens, names }
  if (windowOf(reader, nowMs) !== undefined)
    return frame.window === 'any' ? undefined : { intent: frame.intent, text: onlyNow }
  const schedule = frameOf('schedule')
  return isTimed(reader) && frame.window === undefined && schedule?.refusal !== undefined
    ? { intent: schedule.intent, text: schedule.refusal }
    : undefined
}

/** Whether an order has a condition that it cannot wait for: only some orders wait, and only for a price. */
const isConditional = (
  { mood, head, hasCondition, isPriceCondition }: Clause,
  { waitsForPrice }: Pick<Frame, 'waitsForPrice'>,
): boolean => mood === 'do' && head.length > 0 && hasCondition && !(waitsForPrice && isPriceCondition)

/** Returns what an order brings. */
const bringsOf = ({ slots }: Intent): string => slots.asset_out ?? slots.asset ?? dollarSymbol

/** Fills a missing asset from the order before, or from the thread if a pronoun stands for the asset. */
function withFocus({ frame, slots }: Scored, clause: Clause, { before, state, nowMs }: Setting): Slots {
  const previous = before.at(-1)
  if (frame.takesProceeds && slots.amount === undefined && previous && isMutating(previous)) {
    if (bringsOf(previous) === dollarSymbol) return { ...slots, amount: 'rest' }
  }
  // `The rest` of an order that brings no dollars is no amount of dollars.
  if (frame.takesProceeds && slots.amount === 'rest' && previous && bringsOf(previous) !== dollarSymbol) {
    const { amount: _rest, ...known } = slots
    return known
  }
  const needsAsset = frame.required === undefined || frame.required.some(({ name }) => name === 'asset')
  if (!frame.slots.includes('asset') || slots.asset !== undefined || !needsAsset) return slots
  const brought = previous?.slots.asset_out
  const said = previous?.slots.asset ?? (brought === dollarSymbol ? undefined : brought)
  if (said !== undefined) return { ...slots, asset: said }
  const focus = isFresh(state.focus, nowMs, contextMs) ? state.focus : undefined
  return focus && says(clause, 'IT') ? { ...slots, asset: focus.asset } : slots
}

/** Asks the user to confirm an order, with everything that the order says. */
const confirmation = ({ intent, summary }: Frame, slots: Slots, reason: string): Ask => {
  const values = Object.entries(slots).map((slot) => slot.join(' ').replaceAll('_', ' '))
  const question = `${reason} Is this what you want? ${summary}${values.length > 0 ? `: ${values.join(', ')}` : ''}.`
  return { intent, slots, slot: 'confirm', question, choices: [{ label: 'yes', fill: {} }] }
}
