import type { BodyOptions } from './openai-request.ts'
import { parseArguments } from './tool-calls.ts'
import { type ModelMessage, type ModelRequest, sendableName, withoutPrefix } from './turn.ts'

type Block = Record<string, unknown>
type Entry = { role: 'user' | 'assistant'; content: Block[] }

/** The interface refuses empty texts. */
const textBlocks = (text: string): Block[] => (text === '' ? [] : [{ type: 'text', text }])

const inputOf = (text: string) => {
  const parsed = parseArguments(text)
  return parsed.isValid ? parsed.value : {}
}

const entryOf = (message: ModelMessage): Entry => {
  if (message.role === 'user') return { role: 'user', content: textBlocks(message.text) }
  if (message.role === 'tool') {
    const { callId, text, isError } = message
    const result = { type: 'tool_result', tool_use_id: callId, ...(text !== '' && { content: text }) }
    return { role: 'user', content: [isError ? { ...result, is_error: true } : result] }
  }
  const calls = message.calls.map(({ id, name, argumentsText }) => ({
    type: 'tool_use',
    id,
    name: sendableName(name),
    input: inputOf(argumentsText),
  }))
  return { role: 'assistant', content: [...textBlocks(message.text), ...calls] }
}

/** Merges consecutive results and words of one side, because the interface takes them as one message. */
function merged(entries: readonly Entry[]): Entry[] {
  const found: Entry[] = []
  for (const { role, content } of entries) {
    if (content.length === 0) continue
    const last = found.at(-1)
    if (last?.role === role) last.content.push(...content)
    else found.push({ role, content: [...content] })
  }
  return withoutTrailingSpace(found)
}

/** A text that the answer continues must not end in white space. */
function withoutTrailingSpace(entries: Entry[]): Entry[] {
  const last = entries.at(-1)
  const block = last?.content.at(-1)
  if (last?.role !== 'assistant' || typeof block?.text !== 'string') return entries
  const content = [...last.content.slice(0, -1), ...textBlocks(block.text.trimEnd())]
  return [...entries.slice(0, -1), ...(content.length === 0 ? [] : [{ role: last.role, content }])]
}

export function anthropicBody(
  { instructions, messages, tools, isTextOnly }: ModelRequest,
  { model, tokensMax, rejected }: BodyOptions,
): Record<string, unknown> {
  return {
    model,
    stream: true,
    max_tokens: tokensMax,
    ...(instructions !== '' && { system: instructions }),
    messages: merged((rejected.has('prefix') ? withoutPrefix(messages) : messages).map(entryOf)),
    ...(tools.length > 0 && {
      tools: tools.map(({ name, description, inputSchema }) => ({
        name,
        description,
        input_schema: inputSchema,
      })),
    }),
    ...(tools.length > 0 && isTextOnly && !rejected.has('tool_choice') && { tool_choice: { type: 'none' } }),
    ...(!rejected.has('temperature') && { temperature: 0 }),
  }
}
