import type { JsonObject } from '#kernel/wire/json.ts'

/** One turn of a model, independent of any provider. */

export type ModelTool = { name: string; description: string; inputSchema: JsonObject }
export type MadeCall = {
  id: string
  name: string
  argumentsText: string
  /** Data of the endpoint that must be sent back with this call, such as a signature of the model's thoughts. */
  extra?: JsonObject
}
export type ModelMessage =
  | { role: 'user'; text: string }
  | { role: 'assistant'; text: string; calls: readonly MadeCall[] }
  | { role: 'tool'; callId: string; text: string; isError: boolean }
export type ModelRequest = {
  /** The system prompt contains only the gateway's own text, because the model follows it as instructions. */
  instructions: string
  messages: readonly ModelMessage[]
  tools: readonly ModelTool[]
  /** True if no call is wanted. The tools stay, as some endpoints refuse a conversation with calls but no tools. */
  isTextOnly?: boolean
  /** The most tokens of the answer, which can lower the limit of the settings and never raise it. */
  tokensMax?: number
}

export type StopReason = 'end' | 'tools' | 'length' | 'refusal'
export type ToolArguments = { isValid: true; value: JsonObject } | { isValid: false; problem: string }
export type ModelEvent =
  | { type: 'text'; text: string }
  /** The call is complete. Its `id` differs from all others of the conversation, even if the model repeats itself. */
  | ({ type: 'tool_call'; arguments: ToolArguments } & MadeCall)
  /** At most one event with the counts of tokens is sent, and none if the endpoint does not count. */
  | { type: 'usage'; inputTokens: number; outputTokens: number }
  /** The stop is always the last event of a turn, and the only one of its kind. */
  | { type: 'stop'; reason: StopReason }

export type ModelLimits = {
  tokensMax: number
  /** The most time until the first piece of a thought, a text or a call arrives. */
  firstTokenMs: number
  /** The most time in which no byte of the answer arrives. */
  idleMs: number
  /** The most time for the whole turn, its retries included. */
  totalMs: number
  answerBytesMax: number
  toolCallsMax: number
}

/** Reads the events of one answer; every function throws a Fault if the answer cannot be read. */
export type TurnReader = {
  read(event: { event: string | undefined; data: string }): ModelEvent[]
  /** Whether any part of the answer has arrived, including thoughts before it. */
  hasBegun(): boolean
  /** Whether the endpoint has said that nothing follows. */
  isComplete(): boolean
  /** Returns the last events of the answer, its usage and stop, once the stream has ended. */
  end(): ModelEvent[]
}
export type ReaderOptions = {
  toolCallsMax: number
  /** The ids of the calls of earlier turns. */
  usedIds: readonly string[]
}

/** Returns a tool's name in a form that endpoints accept, because a model invents names that no tool could have. */
export const sendableName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown'

/** Asks a model that does not continue its own text to do so. */
export const continueWords =
  'Your answer above was cut off. Continue it exactly where it ended, and repeat nothing of it.'

/** Appends a message of the user that asks for the rest, for a model that refuses to continue its own text. */
export const withoutPrefix = (messages: readonly ModelMessage[]): readonly ModelMessage[] => {
  const last = messages.at(-1)
  if (last?.role !== 'assistant' || last.calls.length > 0) return messages
  return [...messages, { role: 'user', text: continueWords }]
}

/** Returns the reason that fits the calls: an endpoint that made calls may state another reason, or none. */
export const settledReason = (reason: StopReason, calls: number): StopReason => {
  if (calls > 0) return reason === 'end' ? 'tools' : reason
  return reason === 'tools' ? 'end' : reason
}
