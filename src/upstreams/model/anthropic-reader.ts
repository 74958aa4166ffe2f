import { isRecord } from '#kernel/wire/json.ts'
import { brokenOff, eventFault, eventFields, unreadable } from './faults.ts'
import { createCallCollector } from './tool-calls.ts'
import {
  type ModelEvent,
  type ReaderOptions,
  type StopReason,
  settledReason,
  type TurnReader,
} from './turn.ts'
import { countOf, usageEvents } from './usage.ts'

/** Reads the events of a message of Anthropic's interface, and skips unknown kinds of events, blocks and deltas. */

const reasons: Record<string, StopReason> = {
  end_turn: 'end',
  stop_sequence: 'end',
  pause_turn: 'end',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'tools',
  refusal: 'refusal',
}

const textEvents = (text: unknown): ModelEvent[] =>
  typeof text === 'string' && text !== '' ? [{ type: 'text', text }] : []

export function createAnthropicReader(options: ReaderOptions & { key?: string | undefined }): TurnReader {
  const calls = createCallCollector(options)
  let reason: StopReason | undefined
  let hasBegun = false
  let isComplete = false
  let inputTokens: number | undefined
  let outputTokens: number | undefined

  const count = (usage: unknown) => {
    inputTokens =
      countOf(usage, ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens']) ??
      inputTokens
    // Each event counts the output tokens of the message so far, so the last count is the one that holds.
    outputTokens = countOf(usage, ['output_tokens']) ?? outputTokens
  }
  const indexOf = ({ index }: Record<string, unknown>): number => {
    if (!Number.isSafeInteger(index)) throw unreadable('a block without an index')
    return index as number
  }
  const startBlock = (fields: Record<string, unknown>): ModelEvent[] => {
    const block = isRecord(fields.content_block) ? fields.content_block : {}
    if (block.type === 'text') return textEvents(block.text)
    if (block.type !== 'tool_use') return []
    const index = indexOf(fields)
    const { id, name, input } = block
    calls.start(index, { id: typeof id === 'string' ? id : '', name: typeof name === 'string' ? name : '' })
    // Servers that do not stream arguments send them whole at the start.
    if (isRecord(input) && Object.keys(input).length > 0) calls.append(index, JSON.stringify(input))
    hasBegun = true
    return []
  }
  const addPiece = (fields: Record<string, unknown>): ModelEvent[] => {
    const delta = isRecord(fields.delta) ? fields.delta : {}
    // Thoughts are no part of the answer, but show that the model is working.
    hasBegun ||= typeof delta.thinking === 'string' && delta.thinking !== ''
    if (delta.type === 'text_delta') return textEvents(delta.text)
    if (delta.type !== 'input_json_delta') return []
    const index = indexOf(fields)
    if (!calls.find(index)) throw unreadable('arguments of a call that has not begun')
    if (typeof delta.partial_json === 'string') calls.append(index, delta.partial_json)
    return []
  }
  const changeMessage = (fields: Record<string, unknown>): ModelEvent[] => {
    count(fields.usage)
    const given = isRecord(fields.delta) ? fields.delta.stop_reason : undefined
    if (typeof given !== 'string' || reason !== undefined) return []
    const finished = calls.finishAll()
    reason = settledReason(reasons[given] ?? 'end', calls.count())
    hasBegun = true
    return finished
  }
  const eventsOf = (fields: Record<string, unknown>, type: unknown): ModelEvent[] => {
    if (type === 'error') throw eventFault(fields.error, options.key)
    if (type === 'message_start') count(isRecord(fields.message) ? fields.message.usage : undefined)
    if (type === 'message_stop') isComplete = true
    if (type === 'message_delta') return changeMessage(fields)
    // Events after the stop reason repeat what was read before.
    if (reason !== undefined) return []
    if (type === 'content_block_start') return startBlock(fields)
    if (type === 'content_block_delta') return addPiece(fields)
    return type === 'content_block_stop' ? calls.finish(indexOf(fields)) : []
  }

  return {
    read({ event, data }) {
      const fields = eventFields(data)
      const events = eventsOf(fields, fields.type ?? event)
      hasBegun ||= events.length > 0
      return events
    },
    hasBegun: () => hasBegun,
    isComplete: () => isComplete,
    end() {
      if (reason === undefined) throw brokenOff()
      return [...usageEvents(inputTokens, outputTokens), { type: 'stop', reason }]
    },
  }
}
