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

/** The body of `POST /v1/messages`, as strictly as the public service reads it. */

type Block = Record<string, unknown>

const blocksOf = (content: unknown, at: number): Block[] => {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content) || !content.every(isRecord))
    throw invalid(`messages.${at}.content: Input should be a valid list`)
  return content
}

const textOf = (block: Block, where: string): string => {
  if (typeof block.text !== 'string' || block.text === '')
    throw invalid(`${where}: text content blocks must be non-empty`)
  return block.text
}

const resultText = ({ content }: Block, where: string): string => {
  if (content === undefined || typeof content === 'string') return content ?? ''
  if (!Array.isArray(content)) throw invalid(`${where}.content: Input should be a valid list`)
  return content.map((part) => (isRecord(part) ? textOf(part, where) : '')).join('')
}

const readAssistant = (blocks: readonly Block[], at: number): Message => {
  const calls: { id: string; name: string }[] = []
  let text = ''
  for (const [index, block] of blocks.entries()) {
    const where = `messages.${at}.content.${index}`
    if (block.type === 'text') text += textOf(block, where)
    else if (block.type === 'tool_use') {
      const { id, name, input } = block
      if (typeof id !== 'string' || !/^[a-zA-Z0-9_-]+$/.test(id))
        throw invalid(`${where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`)
      if (typeof name !== 'string' || !toolName.test(name))
        throw invalid(`${where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'`)
      if (!isRecord(input)) throw invalid(`${where}.tool_use.input: Input should be a valid dictionary`)
      calls.push({ id, name })
    } else
      throw invalid(`${where}: Input tag '${String(block.type)}' does not match any of the expected tags`)
  }
  return { role: 'assistant', text, calls }
}

const readUser = (blocks: readonly Block[], at: number): Message[] => {
  const results: Message[] = []
  let text = ''
  for (const [index, block] of blocks.entries()) {
    const where = `messages.${at}.content.${index}`
    if (block.type === 'text') text += textOf(block, where)
    else if (block.type === 'tool_result') {
      if (text !== '') throw invalid(`${where}: tool_result blocks must come first in the content`)
      if (typeof block.tool_use_id !== 'string')
        throw invalid(`${where}.tool_result.tool_use_id: Field required`)
      results.push({ role: 'result', callId: block.tool_use_id, text: resultText(block, where) })
    } else
      throw invalid(`${where}: Input tag '${String(block.type)}' does not match any of the expected tags`)
  }
  return text === '' ? results : [...results, { role: 'user', text }]
}

/** The message after calls answers each of them, and no message answers anything else. */
const checkResults = (groups: readonly Message[][]) => {
  const known = new Set<string>()
  let open: string[] = []
  for (const [at, group] of groups.entries()) {
    const answered = group.flatMap((each) => (each.role === 'result' ? [each.callId] : []))
    const missing = open.filter((id) => !answered.includes(id))
    if (missing.length > 0)
      throw invalid(
        `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}.`,
      )
    const foreign = answered.find((id) => !open.includes(id))
    if (foreign !== undefined)
      throw invalid(`messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${foreign}.`)
    open = group.flatMap((each) => (each.role === 'assistant' ? each.calls.map(({ id }) => id) : []))
    for (const id of open) {
      if (known.has(id)) throw invalid(`messages.${at}: \`tool_use\` ids must be unique`)
      known.add(id)
    }
  }
  if (open.length > 0)
    throw invalid(
      `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}.`,
    )
}

export const readAnthropicRequest = (fields: Record<string, unknown>): Conversation => {
  const model = modelIn(fields)
  if (!Number.isInteger(fields.max_tokens) || Number(fields.max_tokens) < 1)
    throw invalid('max_tokens: Field required')
  const { system = '', stream = false } = fields
  if (typeof system !== 'string' && !Array.isArray(system))
    throw invalid('system: Input should be a valid list')
  const found = messagesIn(fields)
  const groups = found.map(({ role, content }, at) => {
    const blocks = blocksOf(content, at)
    if (role === 'user') return readUser(blocks, at)
    if (role === 'assistant') return [readAssistant(blocks, at)]
    throw invalid(`messages.${at}.role: Input should be 'user' or 'assistant'`)
  })
  if (found[0]?.role !== 'user') throw invalid('messages: first message must use the "user" role')
  const last = groups.at(-1)?.at(-1)
  if (last?.role === 'assistant' && /\s$/.test(last.text))
    throw invalid('messages: final assistant content cannot end with trailing whitespace')
  checkResults(groups)
  const hasCalls = groups.flat().some((each) => each.role === 'assistant' && each.calls.length > 0)
  if (hasCalls && toolsIn(fields).length === 0)
    throw invalid('Requests which include `tool_use` or `tool_result` blocks must define tools')
  return {
    model,
    isStream: stream === true,
    hasUsage: true,
    messages: groups.flat(),
    tools: toolsIn(fields).map((tool) => offeredTool(tool, tool.input_schema)),
    inputTokens: tokensOf(JSON.stringify([system, found, fields.tools ?? []])),
  }
}
