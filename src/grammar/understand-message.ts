import { type Clause, clausesOf } from './clauses.ts'
import { frameOf } from './frames.ts'
import { isMutating } from './intent-frame.ts'
import { type Found, interpret } from './interpret-clause.ts'
import { meaningOfReply } from './interpret-reply.ts'
import { lex } from './lex.ts'
import type { Registry } from './operation-registry.ts'
import { type Token, tag, withNouns } from './tag.ts'
import type { ThreadState } from './thread-memory.ts'
import {
  type Intent,
  isBlocking,
  isQuiet,
  type Note,
  note,
  nothing,
  partly,
  type Understanding,
} from './understanding.ts'
import { clauseText } from './unread-words.ts'

const mutationsMax = 5
/** The most tokens of an order: an order is short, and a longer text was pasted and is not the user's own order. */
const orderTokensMax = 120

/** The words of a message, and the clauses that they form. */
export type MessageText = {
  text: string
  isCut: boolean
  tokens: readonly Token[]
  clauses: readonly Clause[]
}
type ThreadContext = { nowMs: number; state: ThreadState }

export function splitMessage(message: string, { vocabulary }: Pick<Registry, 'vocabulary'>): MessageText {
  const { lexemes, text, isCut } = lex(message)
  const tokens = withNouns(tag(lexemes, vocabulary))
  return { text, isCut, tokens, clauses: clausesOf(tokens) }
}

/**
 * Reads a message of the user. It is a pure function of the text, the state of the thread, the time and the
 * registry.
 */
export const understand = (message: string, context: ThreadContext, registry: Registry): Understanding =>
  understandText(splitMessage(message, registry), context, registry)

export function understandText(
  { text, isCut, tokens, clauses }: MessageText,
  { nowMs, state }: ThreadContext,
  registry: Registry,
): Understanding {
  if (tokens.every(({ kind }) => kind === 'mark')) return { ...nothing, notes: [note('not_understood')] }
  const short = meaningOfReply({ tokens, text, nowMs, state, registry })
  if (short) return short
  const found: (Found & { clause: Clause })[] = []
  const before: Intent[] = []
  const isLong = isCut || tokens.length > orderTokensMax
  for (const clause of clauses) {
    const part = interpret(clause, { nowMs, state, registry, before, isLong })
    found.push({ ...part, clause })
    if (part.intent) before.push(part.intent)
  }
  return collect(found)
}

const isTalk = ({ name }: Intent): boolean => frameOf(name)?.talk !== undefined

/** Says which part of a message is not answered, beside the parts that are. */
function partlyNotes(found: readonly (Found & { clause: Clause })[]): Note[] {
  const left = found.flatMap(({ unread, note: own, clause }) =>
    own && isQuiet(own) ? [clauseText(clause)] : (unread ?? []),
  )
  return left.length === 0 ? [] : [partly(left.join(', '))]
}

function collect(found: readonly (Found & { clause: Clause })[]): Understanding {
  const intents = found.flatMap(({ intent }) => intent ?? [])
  const reads = intents.filter((intent) => !isMutating(intent))
  const ask = found.find((each) => each.ask)?.ask ?? null
  const refusal = found.find((each) => each.refusal)?.refusal ?? null
  const notes = found.flatMap((each) => each.note ?? [])
  if (intents.length - reads.length > mutationsMax)
    return { intents: reads, ask: null, refusal, notes: [...notes, note('too_many')] }
  // No order of a message runs while a part of the message is open, refused or not understood.
  const isOpen = ask !== null || refusal !== null || notes.some(isBlocking)
  const sure = isOpen ? reads : intents
  const shown = sure.length > 1 || refusal || ask ? sure.filter((intent) => !isTalk(intent)) : sure
  return {
    intents: shown.length > 0 || refusal || ask ? shown : sure,
    ask,
    refusal,
    notes:
      intents.length > 0 || ask || refusal
        ? [...notes.filter((each) => !isQuiet(each)), ...(shown.length > 0 ? partlyNotes(found) : [])]
        : notes,
  }
}
