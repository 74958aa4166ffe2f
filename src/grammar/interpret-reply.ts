import { intentOf } from './build-intent.ts'
import { questionOf } from './clarifying-question.ts'
import type { Slots } from './clause-reader.ts'
import type { Concept } from './feature-rules.ts'
import { frameOf, frames } from './frames.ts'
import { type Frame, isMutating } from './intent-frame.ts'
import type { Registry } from './operation-registry.ts'
import { choiceOf, hasValue, isDoubtful, isElliptic, ordinalOf } from './reply-words.ts'
import { override } from './slot-override.ts'
import { has, type Token } from './tag.ts'
import { contextMs, isFresh, lastStarted, pendingMs, type ThreadState } from './thread-memory.ts'
import { note, nothing, type Understanding } from './understanding.ts'

/** A short message that may complete the last request of its thread, with the state of the thread. */
type Reply = { tokens: readonly Token[]; text: string; nowMs: number; state: ThreadState; registry: Registry }

/** Returns the meaning of a message as a reply; undefined if the message is a request of its own. */
export const meaningOfReply = (reply: Reply): Understanding | undefined =>
  answered(reply) ?? decided(reply) ?? changed(reply)

/** Reads the reply as the answer to the open question. */
function answered({ tokens, text, nowMs, state, registry }: Reply): Understanding | undefined {
  const { pending } = state
  const frame = pending && frameOf(pending.intent)
  if (!pending || !frame || !isFresh(pending, nowMs, pendingMs)) return undefined
  if (isOnly(tokens, 'DECLINE')) return { ...nothing, notes: [note('dropped')] }
  if (isDoubtful(tokens)) return undefined
  const choice = choiceOf(pending, tokens, text)
  if (choice || (pending.slot === 'confirm' && isOnly(tokens, 'ACCEPT'))) {
    const chosen = choice?.intent === undefined ? frame : frameOf(choice.intent)
    if (!chosen) return undefined
    const slots = choice?.intent === undefined ? { ...pending.slots, ...choice?.fill } : choice.fill
    return finish(chosen, slots, registry)
  }
  const isValue = isElliptic(tokens) && hasValue(tokens)
  const slots = isValue
    ? override(frame, pending.slots, tokens, { names: registry.names, asked: pending.slot, nowMs })
    : undefined
  return slots && finish(frame, slots, registry)
}

/**
 * Reads a reply such as `do it` or `no thanks` as a decision about the quote or the recommendations that were
 * shown.
 */
function decided({ tokens, nowMs, state, registry }: Reply): Understanding | undefined {
  if (isDoubtful(tokens)) return undefined
  const accepts = isOnly(tokens, 'ACCEPT', 'RECOMMENDATION', 'IT')
  const declines = !accepts && isOnly(tokens, 'DECLINE', 'RECOMMENDATION', 'IT')
  if (!accepts && !declines) return undefined
  const taskId = tokens.some((token) => has(token, 'CALLOFF')) && lastStarted(state, nowMs)
  const cancel = frames.find(({ takesBack }) => takesBack)
  if (declines && taskId && cancel) return finish(cancel, { id: taskId }, registry)
  const { recommendations, quote } = state
  const open = isFresh(recommendations, nowMs, contextMs) ? (recommendations?.items ?? []) : []
  const isNewer = quote === undefined || (recommendations?.atMs ?? 0) >= quote.atMs
  if (open.length > 0 && isNewer) return decision({ open, tokens, accepts })
  const quoted = frames.find(({ executedBy }) => executedBy)
  const executing = quote && quoted?.executedBy ? frameOf(quoted.executedBy(quote.slots)) : undefined
  if (accepts && quote && executing && isFresh(quote, nowMs, pendingMs))
    return finish(executing, quote.slots, registry)
  return { ...nothing, notes: [note(declines ? 'dropped' : 'not_understood')] }
}

type Decision = { open: readonly { id: string }[]; tokens: readonly Token[]; accepts: boolean }
/** Returns the user's decision about one of the recommendations, as an intent that has no frame. */
function decision({ open, tokens, accepts }: Decision): Understanding {
  const intent = accepts ? 'recommend_accept' : 'recommend_decline'
  const at = ordinalOf(tokens, open.length) ?? (open.length === 1 ? 0 : undefined)
  const chosen = at === undefined ? undefined : open[at]
  if (!chosen) {
    const choices = open.map(({ id }, index) => ({ label: `number ${index + 1}`, fill: { id } }))
    const question = 'Which recommendation?'
    return { ...nothing, ask: { intent, slots: {}, slot: 'id', question, choices } }
  }
  const { id } = chosen
  const status = accepts ? 'accepted' : 'declined'
  const done = { recommendationId: id, status } as const
  return {
    ...nothing,
    intents: [{ name: intent, effect: 'none', mood: 'do', slots: { id }, steps: [], decision: done }],
  }
}

/** Reads a reply such as `and on base?` or `make it 50` as the last request with another value in it. */
function changed({ tokens, nowMs, state, registry }: Reply): Understanding | undefined {
  const { last } = state
  const frame = last && frameOf(last.intent)
  if (!last || !frame || !isFresh(last, nowMs, contextMs)) return undefined
  if (!isElliptic(tokens) || !hasValue(tokens)) return undefined
  const slots = override(frame, last.slots, tokens, { names: registry.names, nowMs })
  if (!slots) return undefined
  const isRepeat = !isDoubtful(tokens) && tokens.some((token) => has(token, 'AGAIN'))
  // A fragment such as "make it 50" does not repeat an order by itself: the user confirms the changed order.
  if (isMutating(frame) && !isRepeat) {
    const question = 'Do you want one more order like that?'
    const choices = [{ label: 'yes', fill: {} }]
    return { ...nothing, ask: { intent: frame.intent, slots, slot: 'confirm', question, choices } }
  }
  return finish(frame, slots, registry)
}

function finish(frame: Frame, { market, ...slots }: Slots, registry: Registry): Understanding {
  const question = questionOf(
    { frame, slots, left: [] },
    registry.names,
    market === 'token' ? 'token' : undefined,
  )
  if (question) return { ...nothing, ask: question }
  return { ...nothing, intents: [intentOf(frame, slots, { mood: 'do', registry })] }
}

/** Whether some word has the first concept, and every other word has one of the given concepts. */
const isOnly = (tokens: readonly Token[], first: Concept, ...others: readonly Concept[]): boolean =>
  tokens.some((token) => has(token, first)) &&
  tokens.every(
    (token) =>
      token.kind === 'mark' ||
      has(token, first, 'FILLER', ...others) ||
      token.concepts.some((concept) => concept.startsWith('ORDINAL')),
  )
