import type { JsonObject } from '#kernel/wire/json.ts'

/** One turn of a model, independent of any provider. */

export type ModelTool = { name: string; description: string; inputSchema: JsonObject }
export type MadeCall = {
  id: string
  name: string
  argumentsText: string
  /** What the endpoint wants back with its call, such as a signature of its thoughts. */
  extra?: JsonObject
}
export type ModelMessage =
  | { role: 'user'; text: string }
  | { role: 'assistant'; text: string; calls: readonly MadeCall[] }
  | { role: 'tool'; callId: string; text: string; isError: boolean }
export type ModelRequest = {
  /** Only our own text, because the model takes it for orders. */
  instructions: string
  messages: readonly ModelMessage[]
  tools: readonly ModelTool[]
  /** No call is wanted. The tools stay, because some endpoints refuse a conversation with calls but without tools. */
  isTextOnly?: boolean
  /** It can lower the limit of the settings, never raise it. */
  tokensMax?: number
}

export type StopReason = 'end' | 'tools' | 'length' | 'refusal'
export type ToolArguments = { isValid: true; value: JsonObject } | { isValid: false; problem: string }
export type ModelEvent =
  | { type: 'text'; text: string }
  /** The call is complete. Its `id` differs from all others of the conversation, even if the model repeats itself. */
  | ({ type: 'tool_call'; arguments: ToolArguments } & MadeCall)
  /** At most one of these is sent, and none if the endpoint does not count. */
  | { type: 'usage'; inputTokens: number; outputTokens: number }
  /** This is always the last event, and the only one of its kind. */
  | { type: 'stop'; reason: StopReason }

export type ModelLimits = {
  tokensMax: number
  /** The limit until the first piece of a thought, a text or a call. */
  firstTokenMs: number
  /** The limit without any byte. */
  idleMs: number
  /** The limit for the turn, including its retries. */
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
  /** Returns the last events, once nothing follows. */
  end(): ModelEvent[]
}
export type ReaderOptions = {
  toolCallsMax: number
  /** The ids of the calls of earlier turns. */
  usedIds: readonly string[]
}

/** A model invents names, and endpoints refuse a conversation with a name that no tool could have. */
export const sendableName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown'

/** Asks a model that does not continue its own text to do so. */
export const continueWords =
  'Your answer above was cut off. Continue it exactly where it ended, and repeat nothing of it.'

/** Appends words of a user, for a model that refuses to continue its own. */
export const withoutPrefix = (messages: readonly ModelMessage[]): readonly ModelMessage[] => {
  const last = messages.at(-1)
  if (last?.role !== 'assistant' || last.calls.length > 0) return messages
  return [...messages, { role: 'user', text: continueWords }]
}

/** An endpoint that made calls may give another reason for its stop, or none. */
export const settledReason = (reason: StopReason, calls: number): StopReason => {
  if (calls > 0) return reason === 'end' ? 'tools' : reason
  return reason === 'tools' ? 'end' : reason
}
