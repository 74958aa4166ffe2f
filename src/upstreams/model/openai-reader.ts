import { isRecord, type JsonObject } from '#kernel/wire/json.ts'
import { brokenOff, eventFault, eventFields } from './faults.ts'
import { createThoughtFilter } from './thought-filter.ts'
import { createCallCollector } from './tool-calls.ts'
import {
  type ModelEvent,
  type ReaderOptions,
  type StopReason,
  settledReason,
  type TurnReader,
} from './turn.ts'
import { countOf, usageEvents } from './usage.ts'

/**
 * Reads `chat.completion.chunk` of OpenAI's interface, and the variants of compatible servers: calls without an
 * index, ids repeated in each piece, one index for several calls, arguments as an object, an end without
 * `[DONE]`, texts in parts, and thoughts beside or within the text.
 */

const reasons: Record<string, StopReason> = {
  stop: 'end',
  length: 'length',
  tool_calls: 'tools',
  function_call: 'tools',
  content_filter: 'refusal',
}
/** Thoughts are no part of the answer, but show that the model is working. */
const thoughtFields = ['reasoning', 'reasoning_content']
/** Servers use these finish reasons to report a failure. */
const failures = ['error', 'insufficient_system_resource']

/** A text may arrive in parts, and some of them may be thoughts. */
const textOf = (content: unknown): unknown =>
  Array.isArray(content)
    ? content.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('')
    : content

export function openAiReader(options: ReaderOptions & { key?: string | undefined }): TurnReader {
  const calls = createCallCollector(options)
  const thoughts = createThoughtFilter()
  let reason: StopReason | undefined
  let hasRefusal = false
  let hasBegun = false
  let isComplete = false
  let usage: ModelEvent[] = []
  let lastKey = -1

  /** Returns the call that the piece belongs to: by its index, by its id, or the previous call. */
  const keyOf = (piece: Record<string, unknown>): number => {
    if (Number.isSafeInteger(piece.index)) return piece.index as number
    return typeof piece.id === 'string' && piece.id !== '' ? lastKey + 1 : Math.max(0, lastKey)
  }
  const addPiece = (piece: unknown) => {
    if (!isRecord(piece)) return
    const key = keyOf(piece)
    lastKey = key
    const { name, arguments: given } = isRecord(piece.function) ? piece.function : {}
    const id = typeof piece.id === 'string' ? piece.id : ''
    const known = calls.find(key)
    const isOther = known && id !== '' && known.id !== '' && known.id !== id
    const nameText = typeof name === 'string' ? name : ''
    if (!known || isOther) calls.start(key, { id, name: nameText })
    else if (known.name === '') calls.rename(key, nameText)
    if (typeof given === 'string') calls.append(key, given)
    else if (isRecord(given)) calls.append(key, JSON.stringify(given))
    if (isRecord(piece.extra_content)) calls.attach(key, piece.extra_content as JsonObject)
    hasBegun = true
  }
  const textEvents = (text: unknown): ModelEvent[] => {
    if (typeof text !== 'string' || text === '') return []
    hasBegun = true
    const shown = thoughts.push(text)
    return shown === '' ? [] : [{ type: 'text', text: shown }]
  }
  const finish = (given: string): ModelEvent[] => {
    if (failures.includes(given))
      throw eventFault({ type: 'server_error', message: `finish_reason ${given}` })
    const wanted = hasRefusal ? 'refusal' : (reasons[given] ?? 'end')
    const finished = calls.finishAll()
    reason = settledReason(wanted, finished.length)
    hasBegun = true
    const left = thoughts.end()
    return [...(left === '' ? [] : [{ type: 'text' as const, text: left }]), ...finished]
  }

  return {
    read({ data }) {
      if (data.trim() === '[DONE]') {
        isComplete = true
        return []
      }
      const fields = eventFields(data)
      if (fields.error !== undefined && fields.error !== null) throw eventFault(fields.error, options.key)
      const counted = usageEvents(
        countOf(fields.usage, ['prompt_tokens']),
        countOf(fields.usage, ['completion_tokens']),
      )
      if (counted.length > 0) usage = counted
      const choice = Array.isArray(fields.choices) ? fields.choices[0] : undefined
      // After the first finish reason, only usage or repetitions follow.
      if (!isRecord(choice) || (choice.index ?? 0) !== 0 || reason !== undefined) return []
      const delta = isRecord(choice.delta) ? choice.delta : {}
      const { content, refusal, tool_calls: pieces } = delta
      hasBegun ||= thoughtFields.some((name) => typeof delta[name] === 'string' && delta[name] !== '')
      const events = [...textEvents(textOf(content)), ...textEvents(refusal)]
      hasRefusal ||= typeof refusal === 'string' && refusal !== ''
      if (Array.isArray(pieces)) for (const piece of pieces) addPiece(piece)
      return typeof choice.finish_reason === 'string' && choice.finish_reason !== ''
        ? [...events, ...finish(choice.finish_reason)]
        : events
    },
    hasBegun: () => hasBegun,
    isComplete: () => isComplete,
    end() {
      if (reason === undefined) throw brokenOff()
      return [...usage, { type: 'stop', reason }]
    },
  }
}
