import { randomBytes } from 'node:crypto'
import { type Encoder, type EncoderOptions, type Frame, joined, wholeCalls } from './encoder.ts'
import { ModelError, openAiErrorBody } from './errors.ts'
import type { Action, Usage } from './plan.ts'
import type { StopReason } from './script.ts'

/** `chat.completion` and `chat.completion.chunk` of OpenAI. */

const finishReasons: Record<StopReason, string> = {
  end: 'stop',
  tools: 'tool_calls',
  length: 'length',
  refusal: 'content_filter',
}

/** A refusal in words ends as any answer; without words the filter has ended it. */
const finishReason = (reason: StopReason, { hasRefusal }: { hasRefusal: boolean }): string =>
  reason === 'refusal' && hasRefusal ? 'stop' : finishReasons[reason]

const usageOf = ({ inputTokens, outputTokens }: Usage) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
})

export const openAiEncoder = ({ model, createdMs, usage, hasUsage }: EncoderOptions): Encoder => {
  const id = `chatcmpl-${randomBytes(12).toString('hex')}`
  const created = Math.floor(createdMs / 1000)
  const shared = { id, created, model, service_tier: 'default', system_fingerprint: 'fp_local' }
  const chunk = (choices: unknown[], chunkUsage?: Usage): Frame => ({
    data: JSON.stringify({
      ...shared,
      object: 'chat.completion.chunk',
      choices,
      ...(hasUsage && usage && { usage: chunkUsage ? usageOf(chunkUsage) : null }),
    }),
  })
  const delta = (fields: Record<string, unknown>, reason: string | null = null): Frame[] => [
    chunk([{ index: 0, delta: fields, logprobs: null, finish_reason: reason }]),
  ]

  let hasRefusal = false
  const encode = (action: Action): Frame[] => {
    hasRefusal ||= action.type === 'refusal'
    if (action.type === 'text') return delta({ content: action.text })
    if (action.type === 'refusal') return delta({ refusal: action.text })
    // As servers with open weights name it; the public service shows none.
    if (action.type === 'thinking') return delta({ reasoning_content: action.text })
    if (action.type === 'call') {
      const { id: callId, name, index, order } = action.call
      const call = { index: index ?? order, id: callId, type: 'function', function: { name, arguments: '' } }
      return delta({ tool_calls: [call] })
    }
    if (action.type === 'arguments') {
      const { index, order } = action.call
      return delta({ tool_calls: [{ index: index ?? order, function: { arguments: action.text } }] })
    }
    if (action.type === 'stop') return delta({}, finishReason(action.reason, { hasRefusal }))
    if (action.type === 'empty') return [chunk([])]
    if (action.type === 'error')
      return [{ data: JSON.stringify(openAiErrorBody(new ModelError(action.status, action.message))) }]
    return []
  }

  return {
    begin: () => delta({ role: 'assistant', content: '', refusal: null }),
    encode,
    end: () => [...(hasUsage && usage ? [chunk([], usage)] : []), { data: '[DONE]' }],
    whole: (actions) => {
      const calls = wholeCalls(actions).map(({ id: callId, name, text }) => ({
        id: callId,
        type: 'function',
        function: { name, arguments: text },
      }))
      const stop = actions.find((each) => each.type === 'stop')
      const text = joined(actions, 'text')
      const refusal = joined(actions, 'refusal')
      const message = {
        role: 'assistant',
        content: text === '' ? null : text,
        refusal: refusal === '' ? null : refusal,
        annotations: [],
        ...(calls.length > 0 && { tool_calls: calls }),
      }
      const reason = finishReason(stop?.reason ?? 'end', { hasRefusal: refusal !== '' })
      return {
        ...shared,
        object: 'chat.completion',
        choices: [{ index: 0, message, logprobs: null, finish_reason: reason }],
        ...(usage && { usage: usageOf(usage) }),
      }
    },
  }
}
