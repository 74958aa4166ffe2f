import { randomBytes } from 'node:crypto'
import { type Encoder, type EncoderOptions, type Frame, joined, wholeCalls } from './encoder.ts'
import { anthropicErrorBody, ModelError } from './errors.ts'
import type { Action, PlannedCall, Usage } from './plan.ts'
import type { StopReason } from './script.ts'

/** A message of Anthropic, and the events of its stream. */

const stopReasons: Record<StopReason, string> = {
  end: 'end_turn',
  tools: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
}

const usageOf = ({ inputTokens, outputTokens }: Usage) => ({
  input_tokens: inputTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens,
  service_tier: 'standard',
})

const event = (type: string, fields: Record<string, unknown> = {}): Frame => ({
  event: type,
  data: JSON.stringify({ type, ...fields }),
})

const inputOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    // Without a stream this interface has no place for a text that is no JSON.
    return { unreadable: text }
  }
}

type BlockKind = 'text' | 'thinking'

export const anthropicEncoder = ({ model, usage }: EncoderOptions): Encoder => {
  const id = `msg_${randomBytes(12).toString('hex')}`
  let next = 0
  let open: { kind: BlockKind; index: number } | undefined
  const openCalls = new Map<PlannedCall, number>()

  const stopBlock = (index: number) => event('content_block_stop', { index })
  const closeText = (): Frame[] => {
    const index = open?.index
    open = undefined
    return index === undefined ? [] : [stopBlock(index)]
  }
  const addText = (kind: BlockKind, text: string): Frame[] => {
    const frames: Frame[] = []
    if (open?.kind !== kind) {
      frames.push(...closeText())
      open = { kind, index: next++ }
      const block =
        kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '', signature: '' }
      frames.push(event('content_block_start', { index: open.index, content_block: block }))
    }
    const delta = kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text }
    frames.push(event('content_block_delta', { index: open?.index, delta }))
    return frames
  }

  const encode = (action: Action): Frame[] => {
    if (action.type === 'text' || action.type === 'refusal') return addText('text', action.text)
    if (action.type === 'thinking') return addText('thinking', action.text)
    if (action.type === 'call') {
      const { call } = action
      const index = call.index ?? next
      next = Math.max(next, index) + 1
      openCalls.set(call, index)
      const block = { type: 'tool_use', id: call.id, name: call.name, input: {} }
      return [...closeText(), event('content_block_start', { index, content_block: block })]
    }
    if (action.type === 'arguments') {
      const delta = { type: 'input_json_delta', partial_json: action.text }
      return [event('content_block_delta', { index: openCalls.get(action.call), delta })]
    }
    if (action.type === 'call_end') {
      const index = openCalls.get(action.call)
      openCalls.delete(action.call)
      return index === undefined ? [] : [stopBlock(index)]
    }
    if (action.type === 'stop') {
      const delta = { stop_reason: stopReasons[action.reason], stop_sequence: null }
      const counted = usage && { usage: { output_tokens: usage.outputTokens } }
      return [...closeText(), event('message_delta', { delta, ...counted })]
    }
    if (action.type === 'empty') return [event('ping')]
    if (action.type === 'error') {
      const error = new ModelError(action.status, action.message)
      return [{ event: 'error', data: JSON.stringify(anthropicErrorBody(error, `req_${id.slice(4)}`)) }]
    }
    return []
  }

  const message = (fields: Record<string, unknown>, counted: Usage | undefined) => ({
    id,
    type: 'message',
    role: 'assistant',
    model,
    stop_sequence: null,
    ...fields,
    ...(counted && { usage: usageOf(counted) }),
  })

  return {
    begin: () => [
      event('message_start', {
        message: message({ content: [], stop_reason: null }, usage && { ...usage, outputTokens: 1 }),
      }),
      event('ping'),
    ],
    encode,
    end: () => [event('message_stop')],
    whole: (actions) => {
      const text = joined(actions, 'text') + joined(actions, 'refusal')
      const calls = wholeCalls(actions).map(({ id: callId, name, text: input }) => ({
        type: 'tool_use',
        id: callId,
        name,
        input: inputOf(input),
      }))
      const stop = actions.find((each) => each.type === 'stop')
      const content = [...(text === '' ? [] : [{ type: 'text', text }]), ...calls]
      const reason = stop ? stopReasons[stop.reason] : 'end_turn'
      return message({ content, stop_reason: reason }, usage)
    },
  }
}
