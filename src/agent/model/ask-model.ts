import { Fault } from '#kernel/contract/fault.ts'
import type { Usage } from '#kernel/money/model-token-prices.ts'
import type { Emit, Tools } from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Model } from '#upstreams/model/model.ts'
import type { MadeCall, ModelEvent, ModelMessage, ModelRequest, StopReason } from '#upstreams/model/turn.ts'
import { createRelease, type Release, type ReleaseMode } from './answer-stream.ts'
import type { KnownFigures } from './known-figures.ts'
import {
  addUsage,
  answerCharactersMax,
  argumentsBytesMax,
  attemptsMax,
  prefixCharactersMax,
  tokensOf,
} from './limits.ts'

/**
 * One answer of a model. It is stored as a note of the turn, so it is requested only once, however often the turn is
 * run.
 */

/**
 * A tool call in a stored answer; `problem` says why its arguments are no JSON object, and is empty if they are a JSON
 * object.
 */
export type NotedCall = MadeCall & { input: JsonObject; problem: string }
export type ModelNote = {
  /** The text that was sent to the reader. */
  said: string
  /** The text that was not sent, because it contains a number that is no known figure. */
  rest: string
  calls: NotedCall[]
  stop: StopReason
  usage: Usage
  /** The code of the endpoint's failure; it is empty if the answer is complete. */
  failure: string
}

export type ModelSession = {
  model: Pick<Model, 'turn'>
  tools: Tools
  emit: Emit
  signal: AbortSignal
  figures: KnownFigures
  said(): string
  saidBefore: string
  /** Counts the tokens of an answer that is being read, for a turn that is stopped. */
  pending: Usage
}
type Asked = { name: string; request: ModelRequest; mode: ReleaseMode }

const nameCharactersMax = 100
const none: Usage = { inputTokens: 0, outputTokens: 0 }

export const charactersOf = ({ instructions, messages, tools }: ModelRequest): number =>
  instructions.length + JSON.stringify(messages).length + JSON.stringify(tools).length

/**
 * Asks for one answer. If an earlier run of the turn has stored the answer, its whole text is emitted again, and the
 * turn drops the part that the reader already has.
 */
export async function askModel(session: ModelSession, asked: Asked): Promise<ModelNote> {
  const { tools, emit } = session
  let isMade = false
  const note = (await tools.note(asked.name, async () => {
    isMade = true
    return makeNote(session, asked)
  })) as ModelNote
  if (!isMade && note.said !== '') await emit.chunk(note.said)
  return note
}

type Attempt = {
  calls: NotedCall[]
  stop: StopReason | undefined
  usage: Usage | undefined
  failure: string
  characters: number
}

async function makeNote(session: ModelSession, { request, mode }: Omit<Asked, 'name'>): Promise<ModelNote> {
  const { emit, figures } = session
  const before = session.said()
  const charactersMax = answerCharactersMax - before.length
  const separator = before === '' ? '' : '\n\n'
  // An earlier run died while it read this answer, so the new answer continues the text that it had sent.
  let said = session.saidBefore.slice(before.length)
  if (said !== '') await emit.chunk(said)
  let usage = none
  for (let attempt = 1; ; attempt++) {
    const release = createRelease({ emit, figures, mode, separator, said, charactersMax })
    const prefix = said.trim()
    const messages = prefix === '' ? request.messages : [...request.messages, answerOf(prefix)]
    const inputTokens = tokensOf(charactersOf({ ...request, messages }))
    const read = await readAnswer(session, { ...request, messages }, { release, prefix, inputTokens })
    usage = addUsage(usage, usageOf(read, inputTokens))
    session.pending = none
    if (read.failure === '') {
      const { said: all, rest } = await release.end()
      return { said: all, rest, calls: read.calls, stop: read.stop ?? 'end', usage, failure: '' }
    }
    said = release.said()
    const mayRepeat = read.characters > 0 && attempt < attemptsMax && said.length <= prefixCharactersMax
    if (!mayRepeat) return { said, rest: '', calls: [], stop: 'end', usage, failure: read.failure }
  }
}

/** An endpoint that refused, or was not reached, has counted no tokens; a silent endpoint may have counted some. */
const usageOf = ({ usage, failure, characters }: Attempt, inputTokens: number): Usage => {
  const isUncounted = failure !== '' && failure !== 'upstream_timeout' && characters === 0
  return usage ?? (isUncounted ? none : { inputTokens, outputTokens: tokensOf(characters) })
}

const answerOf = (text: string): ModelMessage => ({ role: 'assistant', text, calls: [] })

type Reading = { release: Release; prefix: string; inputTokens: number }

/** Reads one answer to its end, or until the endpoint fails. Throws if the turn is stopped. */
async function readAnswer(
  session: ModelSession,
  request: ModelRequest,
  { release, prefix, inputTokens }: Reading,
): Promise<Attempt> {
  const { model, signal } = session
  const found: Attempt = { calls: [], stop: undefined, usage: undefined, failure: '', characters: 0 }
  const fresh = withoutRepetition(prefix)
  let argumentsBytes = 0
  try {
    for await (const event of model.turn(request, { signal })) {
      if (event.type === 'text') {
        found.characters += event.text.length
        await release.push(fresh(event.text))
      } else if (event.type === 'tool_call') {
        found.characters += event.argumentsText.length + event.name.length
        argumentsBytes += Buffer.byteLength(event.argumentsText + JSON.stringify(event.extra ?? {}))
        found.calls.push(argumentsBytes > argumentsBytesMax ? tooLong(event) : notedCall(event))
      } else if (event.type === 'usage')
        found.usage = { inputTokens: event.inputTokens, outputTokens: event.outputTokens }
      else found.stop = event.reason
      session.pending = { inputTokens, outputTokens: tokensOf(found.characters) }
    }
  } catch (error) {
    if (signal.aborted || !(error instanceof Fault)) throw error
    return { ...found, failure: error.code }
  }
  return found
}

type CallEvent = Extract<ModelEvent, { type: 'tool_call' }>

const notedCall = ({ id, name, argumentsText, extra, arguments: parsed }: CallEvent): NotedCall => ({
  id,
  name: name.slice(0, nameCharactersMax),
  argumentsText,
  input: parsed.isValid ? parsed.value : {},
  problem: parsed.isValid ? '' : parsed.problem,
  ...(extra && { extra }),
})
/** Arguments that are too long are dropped, because the stored answer would be too large with them. */
const tooLong = ({ id, name }: CallEvent): NotedCall => ({
  id,
  name: name.slice(0, nameCharactersMax),
  argumentsText: '',
  input: {},
  problem: 'the arguments are too long',
})

/** Drops the prefix that an answer repeats: some models repeat the text that they are asked to continue. */
function withoutRepetition(prefix: string): (text: string) => string {
  let rest = prefix
  let matched = ''
  return (text) => {
    if (rest === '') return text
    const length = Math.min(rest.length, text.length)
    if (rest.slice(0, length) !== text.slice(0, length)) {
      const all = matched + text
      rest = ''
      return all
    }
    matched += text.slice(0, length)
    rest = rest.slice(length)
    return text.slice(length)
  }
}
