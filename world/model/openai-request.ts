import {
  type Conversation,
  invalid,
  isRecord,
  type Message,
  messagesIn,
  modelIn,
  offeredTool,
  tokensOf,
  toolName,
  toolsIn,
} from './conversation.ts'

/** The body of `POST /v1/chat/completions`, as strictly as the public service reads it. */

const textOf = (content: unknown, at: number): string => {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content))
    throw invalid(`Invalid type for 'messages[${at}].content'.`, `messages.[${at}].content`)
  return content
    .map((part) => {
      if (isRecord(part) && part.type === 'text' && typeof part.text === 'string') return part.text
      if (isRecord(part) && part.type === 'refusal') return String(part.refusal)
      throw invalid(`Invalid part in 'messages[${at}].content'.`, `messages.[${at}].content`)
    })
    .join('')
}

const callsOf = (message: Record<string, unknown>, at: number) => {
  if (message.tool_calls === undefined) return []
  if (!Array.isArray(message.tool_calls) || message.tool_calls.length === 0)
    throw invalid(`'messages[${at}].tool_calls' must be a list with a call.`, `messages.[${at}].tool_calls`)
  return message.tool_calls.map((call: unknown) => {
    const found = isRecord(call) && isRecord(call.function) ? call.function : undefined
    if (!isRecord(call) || !found || typeof call.id !== 'string' || call.type !== 'function')
      throw invalid(`Invalid call in 'messages[${at}].tool_calls'.`, `messages.[${at}].tool_calls`)
    if (typeof found.name !== 'string' || typeof found.arguments !== 'string')
      throw invalid(`Invalid function in 'messages[${at}].tool_calls'.`, `messages.[${at}].tool_calls`)
    if (!toolName.test(found.name))
      throw invalid(
        `Invalid 'messages[${at}].tool_calls': function.name does not match its pattern.`,
        'messages',
      )
    return { id: call.id, name: found.name }
  })
}

const readMessage = (message: Record<string, unknown>, at: number): Message[] => {
  const { role, content } = message
  if (role === 'system' || role === 'developer') {
    textOf(content, at)
    return []
  }
  if (role === 'user') return [{ role, text: textOf(content, at) }]
  if (role === 'assistant') {
    const calls = callsOf(message, at)
    if (calls.length === 0 && typeof content !== 'string' && !Array.isArray(content))
      throw invalid(`'messages[${at}]' has neither content nor calls.`, `messages.[${at}].content`)
    return [{ role, text: textOf(content, at), calls }]
  }
  if (role === 'tool') {
    if (typeof message.tool_call_id !== 'string')
      throw invalid(`Missing parameter 'messages[${at}].tool_call_id'.`, `messages.[${at}].tool_call_id`)
    return [{ role: 'result', callId: message.tool_call_id, text: textOf(content, at) }]
  }
  throw invalid(`Invalid value: '${String(role).slice(0, 50)}'.`, `messages.[${at}].role`)
}

/** Each call is answered by a result before anything else, and each result belongs to a call. */
const checkResults = (messages: readonly Message[]) => {
  let open = new Set<string>()
  for (const message of messages) {
    if (message.role === 'result') {
      if (!open.delete(message.callId))
        throw invalid(
          "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
          'messages',
        )
      continue
    }
    if (open.size > 0) break
    open = new Set(message.role === 'assistant' ? message.calls.map(({ id }) => id) : [])
  }
  if (open.size > 0)
    throw invalid(
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
      'messages',
    )
}

export const readOpenAiRequest = (fields: Record<string, unknown>): Conversation => {
  const model = modelIn(fields)
  const found = messagesIn(fields)
  const messages = found.flatMap(readMessage)
  checkResults(messages)
  const tools = toolsIn(fields).map((tool) => {
    if (tool.type !== 'function' || !isRecord(tool.function))
      throw invalid("Invalid tool: its type must be 'function'.", 'tools')
    return offeredTool(tool.function, tool.function.parameters ?? { type: 'object' })
  })
  const { stream = false, stream_options: options } = fields
  if (typeof stream !== 'boolean') throw invalid("Invalid type for 'stream'.", 'stream')
  if (options !== undefined && !stream)
    throw invalid(
      "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      'stream_options',
    )
  return {
    model,
    isStream: stream,
    hasUsage: !stream || (isRecord(options) && options.include_usage === true),
    messages,
    tools,
    inputTokens: tokensOf(JSON.stringify([found, fields.tools ?? []])),
  }
}
