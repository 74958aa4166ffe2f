import type { RejectedFields } from './rejected-fields.ts'
import { parseArguments } from './tool-calls.ts'
import { type ModelMessage, type ModelRequest, sendableName, withoutPrefix } from './turn.ts'

export type BodyOptions = { model: string; tokensMax: number; rejected: RejectedFields }

/** Some servers parse the arguments of earlier calls, and refuse a conversation in which one is not JSON. */
const readableArguments = (text: string): string =>
  parseArguments(text).isValid && text.trim() !== '' ? text : '{}'

const messageOf = (message: ModelMessage): Record<string, unknown> => {
  if (message.role === 'user') return { role: 'user', content: message.text }
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content: message.text }
  const { text, calls } = message
  if (calls.length === 0) return { role: 'assistant', content: text }
  return {
    role: 'assistant',
    content: text === '' ? null : text,
    tool_calls: calls.map(({ id, name, argumentsText, extra }) => ({
      id,
      type: 'function',
      function: { name: sendableName(name), arguments: readableArguments(argumentsText) },
      ...(extra && { extra_content: extra }),
    })),
  }
}

/** Merges consecutive messages of the user, because the templates of some models require alternating sides. */
function merged(messages: readonly ModelMessage[]): ModelMessage[] {
  const found: ModelMessage[] = []
  for (const message of messages) {
    const last = found.at(-1)
    if (message.role === 'user' && last?.role === 'user')
      found.splice(-1, 1, { role: 'user', text: `${last.text}\n\n${message.text}` })
    else found.push(message)
  }
  return found
}

export function openAiBody(
  { instructions, messages, tools, isTextOnly }: ModelRequest,
  { model, tokensMax, rejected }: BodyOptions,
): Record<string, unknown> {
  const limit = rejected.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens'
  return {
    model,
    stream: true,
    messages: [
      ...(instructions === '' ? [] : [{ role: 'system', content: instructions }]),
      ...merged(rejected.has('prefix') ? withoutPrefix(messages) : messages).map(messageOf),
    ],
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, inputSchema }) => ({
        type: 'function',
        function: { name, description, parameters: inputSchema },
      })),
    }),
    ...(tools.length > 0 && isTextOnly && !rejected.has('tool_choice') && { tool_choice: 'none' }),
    [limit]: tokensMax,
    ...(!rejected.has('temperature') && { temperature: 0 }),
    ...(!rejected.has('stream_options') && { stream_options: { include_usage: true } }),
  }
}
