import { ModelError } from './errors.ts'

/** A request of either interface, as the scripts see it. */

export type ToolResult = { name: string; text: string }
export type OfferedTool = { name: string; description: string; schema: Record<string, unknown> }
export type Message =
  | { role: 'user'; text: string }
  | { role: 'assistant'; text: string; calls: { id: string; name: string }[] }
  | { role: 'result'; callId: string; text: string }
export type Conversation = {
  model: string
  isStream: boolean
  /** Whether a stream reports its tokens. */
  hasUsage: boolean
  messages: Message[]
  tools: OfferedTool[]
  inputTokens: number
}

const messagesMax = 2_000
const toolsMax = 256
const charactersPerToken = 4

export const tokensOf = (text: string): number => Math.ceil(text.length / charactersPerToken)

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const invalid = (message: string, param?: string): ModelError =>
  new ModelError(400, message, param === undefined ? {} : { param })

export const listIn = (fields: Record<string, unknown>, name: string, max: number): unknown[] => {
  const value = fields[name]
  if (!Array.isArray(value)) throw invalid(`Invalid type for '${name}': expected an array.`, name)
  if (value.length > max) throw invalid(`'${name}' is too long: at most ${max}.`, name)
  return value
}
export const messagesIn = (fields: Record<string, unknown>): Record<string, unknown>[] => {
  const found = listIn(fields, 'messages', messagesMax)
  if (found.length === 0) throw invalid("'messages' must have at least one message.", 'messages')
  return found.map((each, at) => {
    if (!isRecord(each)) throw invalid(`Invalid type for 'messages[${at}]': expected an object.`, 'messages')
    return each
  })
}
export const toolsIn = (fields: Record<string, unknown>): Record<string, unknown>[] =>
  fields.tools === undefined
    ? []
    : listIn(fields, 'tools', toolsMax).map((each, at) => {
        if (!isRecord(each)) throw invalid(`Invalid type for 'tools[${at}]': expected an object.`, 'tools')
        return each
      })

export const modelIn = ({ model }: Record<string, unknown>): string => {
  if (typeof model !== 'string' || model === '') throw invalid('you must provide a model parameter', 'model')
  return model.slice(0, 200)
}

/** As the public services demand it, of tools and of their calls. */
export const toolName = /^[a-zA-Z0-9_-]{1,64}$/

export const offeredTool = (
  { name, description = '' }: Record<string, unknown>,
  schema: unknown,
): OfferedTool => {
  if (typeof name !== 'string' || !toolName.test(name))
    throw invalid("Invalid tool name: expected a string that matches '^[a-zA-Z0-9_-]{1,64}$'.", 'tools')
  if (typeof description !== 'string') throw invalid('Invalid tool description.', 'tools')
  if (!isRecord(schema) || schema.type !== 'object')
    throw invalid(`Invalid schema for tool '${name}': its type must be 'object'.`, 'tools')
  return { name, description, schema }
}

/** The text that the answer continues, where the conversation ends with words of the model. */
export const prefixOf = ({ messages }: Conversation): string => {
  const last = messages.at(-1)
  return last?.role === 'assistant' && last.calls.length === 0 ? last.text : ''
}

const lastUserAt = (messages: readonly Message[]) => messages.findLastIndex(({ role }) => role === 'user')

export const lastUserText = ({ messages }: Conversation): string => {
  const message = messages[lastUserAt(messages)]
  return message?.role === 'user' ? message.text : ''
}

/** How many turns of the model lie behind; a text that the answer continues is none. */
export const turnsBehind = (conversation: Conversation, from: 'last_user' | 'start'): number => {
  const { messages } = conversation
  const counted = from === 'start' ? messages : messages.slice(lastUserAt(messages) + 1)
  const turns = counted.filter(({ role }) => role === 'assistant').length
  return prefixOf(conversation) === '' ? turns : turns - 1
}

/** Results since the last message of the user, each with the name of its tool. */
export const recentResults = ({ messages }: Conversation): ToolResult[] => {
  const names = new Map(
    messages.flatMap((each) =>
      each.role === 'assistant' ? each.calls.map(({ id, name }) => [id, name]) : [],
    ),
  )
  return messages
    .slice(lastUserAt(messages) + 1)
    .flatMap((each) =>
      each.role === 'result' ? [{ name: names.get(each.callId) ?? 'a tool', text: each.text }] : [],
    )
}
