import { questionOf } from './ask.ts'
import { type Clause, clausesOf, holdsOrder, type Mood } from './clauses.ts'
import type { Concept } from './concepts.ts'
import { type Frame, isMutating } from './frame.ts'
import { frameOf } from './frames.ts'
import { lex, textLengthMax } from './lex.ts'
import { dollarSymbol } from './names.ts'
import { oddWord } from './odd-words.ts'
import { stepsOf } from './plan.ts'
import type { Slots } from './reader.ts'
import { changes, type Registry } from './registry.ts'
import { type Scored, score } from './score.ts'
import { has, type Token, tag } from './tag.ts'
import * as thread from './thread.ts'
import {
  type Ask,
  type Intent,
  isQuiet,
  type Note,
  note,
  nothing,
  type Refusal,
  type ThreadState,
  type Understanding,
} from './understanding.ts'

/** Reads a text of the user. Pure: the same text, state, time and registry give the same understanding. */

const scoreMin = 1
const mutationMargin = 1
const mutationsMax = 5
/** An order is short; longer texts are pasted, and nobody's order. */
const orderTokensMax = 120

type Found = { intent?: Intent; ask?: Ask; refusal?: Refusal; note?: Note }
type Setting = {
  nowMs: number
  state: ThreadState
  registry: Registry
  before: readonly Intent[]
  isLong: boolean
}

export function intentOf(
  frame: Frame,
  slots: Slots,
  { mood, registry }: { mood: Mood; registry: Registry },
): Intent {
  const steps = stepsOf(frame, slots, registry.names)
  const isThought = mood !== 'do' && isMutating(frame)
  const intent: Intent = {
    intent: frame.intent,
    effect: isThought ? 'quote' : frame.effect,
    mood,
    slots,
    steps: isThought ? steps.filter((step) => !changes(step, registry)) : steps,
  }
  if (frame.route) intent.route = frame.route
  return intent
}

/** The asset of the order before it, or of the thread, where a pronoun stands for it or nothing does. */
function withFocus(best: Scored, clause: Clause, { before, state, nowMs }: Setting): Slots {
  const { frame, slots } = best
  const previous = before.at(-1)
  if (frame.intent === 'earn_deposit' && slots.amount === undefined && previous && isMutating(previous)) {
    const brings = previous.slots.asset_out ?? previous.slots.asset ?? dollarSymbol
    if (brings === dollarSymbol || previous.intent === 'perp_withdraw') return { ...slots, amount: 'rest' }
  }
  if (
    !frame.slots.includes('asset') ||
    slots.asset !== undefined ||
    frame.required?.every(({ name }) => name !== 'asset')
  )
    return slots
  const isPronoun = clause.tokens.some(({ concepts }) => concepts.includes('IT'))
  const said =
    previous?.slots.asset ??
    (previous?.slots.asset_out === dollarSymbol ? undefined : previous?.slots.asset_out)
  if (said !== undefined) return { ...slots, asset: said }
  const focus = thread.isFresh(state.focus, nowMs, thread.contextMs) ? state.focus : undefined
  return isPronoun && focus ? { ...slots, asset: focus.asset } : slots
}

const noteFor: Readonly<Partial<Record<Mood, Note>>> = {
  negated: note('negated'),
  reported: note('reported'),
  stated: note('stated'),
  conditional: note('conditional'),
}

/** The order as a question, with everything that it says. */
const confirmation = ({ intent, summary }: Frame, slots: Slots, reason: string): Ask => {
  const values = Object.entries(slots).map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
  const question = `${reason} Is this what you want? ${summary}${values.length > 0 ? `: ${values.join(', ')}` : ''}.`
  return { intent, slots, slot: 'confirm', question, choices: [{ label: 'yes', fill: {} }] }
}

function resolveFrame(best: Scored, clause: Clause, setting: Setting): Found {
  const { registry, state, nowMs, isLong } = setting
  const { frame } = best
  if (isConditional(clause, frame)) return { note: note('conditional') }
  if (frame.refusal !== undefined) return { refusal: { intent: frame.intent, text: frame.refusal } }
  const slots = withFocus(best, clause, setting)
  const found = { ...best, slots }
  if (isMutating(frame) && clause.mood === 'do') {
    if (isLong) return { note: note('too_long') }
  }
  const market =
    thread.isFresh(state.focus, nowMs, thread.contextMs) && state.focus?.asset === slots.asset
      ? state.focus?.market
      : undefined
  if (
    frame.intent === 'hook' &&
    market === 'perp' &&
    clause.tokens.some(({ concepts }) => concepts.includes('IT'))
  ) {
    const protect = frameOf('perp_protect')
    if (protect && slots.trailing === undefined)
      return resolveFrame({ ...best, frame: protect, slots }, clause, setting)
  }
  const question = questionOf(
    found,
    registry.names,
    clause.tokens.some(({ concepts }) => concepts.includes('TOKENWORD')) ? 'token' : undefined,
  )
  if (clause.mood === 'suppose' && isMutating(frame) && question) return { note: note('supposed') }
  if (question) return { ask: question }
  if (isMutating(frame) && clause.mood === 'do') {
    const odd = oddWord(clause.tokens)
    if (odd !== undefined) return { ask: confirmation(frame, slots, `"${odd}" was not understood.`) }
    if (clause.isGuess && frame.intent !== 'freeze')
      return { ask: confirmation(frame, slots, 'A word of that was mistyped.') }
  }
  return { intent: intentOf(frame, slots, { mood: clause.mood, registry }) }
}

/** Only a limit order waits for anything, and only for a price. */
const isConditional = (
  { mood, head, hasCondition, isPriceCondition }: Clause,
  { intent }: Pick<Frame, 'intent'>,
): boolean =>
  mood === 'do' && head.length > 0 && hasCondition && !(intent === 'limit_order' && isPriceCondition)

/** The best frame, unless two orders fit alike. */
function interpret(clause: Clause, setting: Setting): Found {
  const refused = noteFor[clause.mood]
  if (refused) return { note: refused }
  const { registry, nowMs } = setting
  const opening = clause.tokens.find(({ kind, concepts }) => kind !== 'mark' && !concepts.includes('FILLER'))
  // A condition alone belongs to the order beside it.
  if (clause.head.length === 0 && clause.mood === 'ask' && opening?.concepts.includes('IF'))
    return { note: note('conditional') }
  const scored = score(clause, { names: registry.names, nowMs }).filter(
    ({ score: points, frame }) => isMutating(frame) || points >= scoreMin,
  )
  const [best, second] = scored
  if (!best) {
    const isAct = clause.head.length > 0
    if (clause.hasCondition && isAct) return { note: note('conditional') }
    if (clause.mood === 'suppose') return { note: note('supposed') }
    if (isAct || clause.mood !== 'ask') return { note: note('not_understood') }
    return { note: note(holdsOrder(clause.tokens) ? 'question' : 'unclear') }
  }
  if (
    isMutating(best.frame) &&
    second &&
    isMutating(second.frame) &&
    best.score - second.score < mutationMargin &&
    clause.mood === 'do'
  ) {
    const choices = [best, second].map(({ frame, slots }) => ({
      label: frame.summary,
      intent: frame.intent,
      fill: slots,
    }))
    return {
      ask: {
        intent: best.frame.intent,
        slots: best.slots,
        slot: 'intent',
        question: 'Which of these do you want?',
        choices,
      },
    }
  }
  return resolveFrame(best, clause, setting)
}

const isOnly = (tokens: readonly Token[], ...concepts: readonly Concept[]): boolean =>
  tokens.some((token) => has(token, ...concepts.slice(0, 1))) &&
  tokens.every(
    (token) =>
      token.kind === 'mark' ||
      token.concepts.some(
        (concept) => concepts.includes(concept) || concept === 'FILLER' || concept.startsWith('ORDINAL'),
      ),
  )

type Reply = { tokens: readonly Token[]; text: string; nowMs: number; state: ThreadState; registry: Registry }

function finish(frame: Frame, slots: Slots, { registry }: Pick<Reply, 'registry'>): Understanding {
  const { market: _, ...own } = slots
  const question = questionOf(
    { frame, slots: own, left: [] },
    registry.names,
    slots.market === 'token' ? 'token' : undefined,
  )
  if (question) return { ...nothing, ask: question }
  return { ...nothing, intents: [intentOf(frame, own, { mood: 'do', registry })] }
}

/** The reply to the open question; undefined where it is a request of its own. */
function answered({ tokens, text, nowMs, state, registry }: Reply): Understanding | undefined {
  const { pending } = state
  const frame = pending && frameOf(pending.intent)
  if (!pending || !frame || !thread.isFresh(pending, nowMs, thread.pendingMs)) return undefined
  if (isOnly(tokens, 'DECLINE')) return { ...nothing, notes: [note('dropped')] }
  if (thread.isDoubtful(tokens)) return undefined
  const choice = thread.choiceOf(pending, tokens, text)
  if (choice || (pending.slot === 'confirm' && isOnly(tokens, 'ACCEPT'))) {
    const chosen = choice?.intent === undefined ? frame : frameOf(choice.intent)
    if (!chosen) return undefined
    const slots = choice?.intent === undefined ? { ...pending.slots, ...choice?.fill } : choice.fill
    return finish(chosen, slots, { registry })
  }
  const isValue = thread.isElliptic(tokens) && thread.hasValue(tokens)
  const slots = isValue
    ? thread.override(frame, pending.slots, { tokens }, { names: registry.names, asked: pending.slot })
    : undefined
  return slots && finish(frame, slots, { registry })
}

/** `do it`, `no thanks`: about the quote or the recommendations that were shown. */
function decided({ tokens, nowMs, state, registry }: Reply): Understanding | undefined {
  if (thread.isDoubtful(tokens)) return undefined
  const accepts = isOnly(tokens, 'ACCEPT', 'RECOMMENDATION', 'IT')
  const declines = !accepts && isOnly(tokens, 'DECLINE', 'RECOMMENDATION', 'IT')
  if (!accepts && !declines) return undefined
  const taskId = tokens.some((token) => has(token, 'CALLOFF')) && thread.lastStarted(state, nowMs)
  const cancel = frameOf('task_cancel')
  if (declines && taskId && cancel) return finish(cancel, { id: taskId }, { registry })
  const { recommendations, quote } = state
  const open = thread.isFresh(recommendations, nowMs, thread.contextMs) ? (recommendations?.items ?? []) : []
  const isNewer = quote === undefined || (recommendations?.atMs ?? 0) >= quote.atMs
  if (open.length > 0 && isNewer) {
    const at = thread.ordinalOf(tokens, open.length) ?? (open.length === 1 ? 0 : undefined)
    const name = accepts ? 'recommend_accept' : 'recommend_decline'
    const chosen = at === undefined ? undefined : open[at]
    if (!chosen) {
      const choices = open.map(({ id }, index) => ({ label: `number ${index + 1}`, fill: { id } }))
      return {
        ...nothing,
        ask: { intent: name, slots: {}, slot: 'id', question: 'Which recommendation?', choices },
      }
    }
    const decision = {
      recommendationId: chosen.id,
      status: accepts ? ('accepted' as const) : ('declined' as const),
    }
    return {
      ...nothing,
      intents: [{ intent: name, effect: 'none', mood: 'do', slots: { id: chosen.id }, steps: [], decision }],
    }
  }
  const swap = frameOf('swap')
  if (accepts && quote && swap && thread.isFresh(quote, nowMs, thread.pendingMs)) {
    const bridged = quote.slots.asset_in === quote.slots.asset_out ? frameOf('bridge') : undefined
    return finish(bridged ?? swap, quote.slots, { registry })
  }
  return { ...nothing, notes: [note(declines ? 'dropped' : 'not_understood')] }
}

/** `and on base?`, `make it 50`: the last request with something else in it. */
function changed({ tokens, nowMs, state, registry }: Reply): Understanding | undefined {
  const { last } = state
  const frame = last && frameOf(last.intent)
  if (!last || !frame || !thread.isFresh(last, nowMs, thread.contextMs)) return undefined
  if (!thread.isElliptic(tokens) || !thread.hasValue(tokens)) return undefined
  const slots = thread.override(frame, last.slots, { tokens }, { names: registry.names })
  if (!slots) return undefined
  const isRepeat = !thread.isDoubtful(tokens) && tokens.some(({ concepts }) => concepts.includes('AGAIN'))
  // An order that was given once is not given again by a fragment.
  if (isMutating(frame) && !isRepeat) {
    const choices = [{ label: 'yes', fill: {} }]
    return {
      ...nothing,
      ask: {
        intent: frame.intent,
        slots,
        slot: 'confirm',
        question: 'Do you want one more order like that?',
        choices,
      },
    }
  }
  return finish(frame, slots, { registry })
}

function collect(found: readonly Found[]): Understanding {
  const intents = found.flatMap(({ intent }) => intent ?? [])
  const ask = found.find((each) => each.ask)?.ask ?? null
  const refusal = found.find((each) => each.refusal)?.refusal ?? null
  const notes = found.flatMap((each) => each.note ?? [])
  const moving = intents.filter(isMutating)
  if (moving.length > mutationsMax)
    return {
      intents: intents.filter((intent) => !isMutating(intent)),
      ask: null,
      refusal,
      notes: [...notes, note('too_many')],
    }
  // Nothing of a message moves while a part of it is open, refused or not understood.
  const isOpen = ask !== null || refusal !== null || notes.some((each) => !isQuiet(each))
  const isTalk = ({ intent }: Intent) => intent === 'greet' || intent === 'thanks'
  const sure = isOpen ? intents.filter((intent) => !isMutating(intent)) : intents
  const shown = sure.length > 1 || refusal || ask ? sure.filter((intent) => !isTalk(intent)) : sure
  return {
    intents: shown.length > 0 || refusal || ask ? shown : sure,
    ask,
    refusal,
    notes: intents.length > 0 || ask || refusal ? notes.filter((each) => !isQuiet(each)) : notes,
  }
}

export function understand(
  source: string,
  { nowMs, state }: { nowMs: number; state: ThreadState },
  registry: Registry,
): Understanding {
  const { lexemes, isCut } = lex(source)
  const tokens = tag(lexemes, registry.vocabulary)
  if (tokens.every(({ kind }) => kind === 'mark')) return { ...nothing, notes: [note('not_understood')] }
  const reply: Reply = { tokens, text: source.slice(0, textLengthMax), nowMs, state, registry }
  const short = answered(reply) ?? decided(reply) ?? changed(reply)
  if (short) return short
  const found: Found[] = []
  const before: Intent[] = []
  const isLong = isCut || tokens.length > orderTokensMax
  for (const clause of clausesOf(tokens)) {
    const part = interpret(clause, { nowMs, state, registry, before, isLong })
    found.push(part)
    if (part.intent) before.push(part.intent)
  }
  return collect(found)
}
