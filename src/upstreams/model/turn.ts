import type { JsonObject } from '#kernel/wire/json.ts'

/** One turn of a model, in words of our own. */

export type ModelTool = { name: string; description: string; inputSchema: JsonObject }
/** A call as a former turn made it. */
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
  /** Text of our own only: it is what the model takes for orders. */
  instructions: string
  messages: readonly ModelMessage[]
  tools: readonly ModelTool[]
  /** No call is wanted: the tools are there since the conversation has calls, which some endpoints refuse without them. */
  isTextOnly?: boolean
  /** Less than the setting, never more. */
  tokensMax?: number
}

export type StopReason = 'end' | 'tools' | 'length' | 'refusal'
export type ToolArguments = { isValid: true; value: JsonObject } | { isValid: false; problem: string }
export type ModelEvent =
  | { type: 'text'; text: string }
  /** Complete; `id` differs from all others of the conversation, also where the model repeats itself. */
  | ({ type: 'tool_call'; arguments: ToolArguments } & MadeCall)
  /** At most once, and absent where the endpoint does not count. */
  | { type: 'usage'; inputTokens: number; outputTokens: number }
  /** Always the last event, and the only one of its kind. */
  | { type: 'stop'; reason: StopReason }

export type ModelLimits = {
  tokensMax: number
  /** Until the first piece of a thought, of text or of a call. */
  firstTokenMs: number
  /** Without any byte. */
  idleMs: number
  /** For the turn, its retries included. */
  totalMs: number
  answerBytesMax: number
  toolCallsMax: number
}

/** Reads the events of one answer; every function throws a Fault where the answer cannot be read. */
export type TurnReader = {
  read(event: { event: string | undefined; data: string }): ModelEvent[]
  /** Whether anything of the answer has come, the thoughts before it included. */
  hasBegun(): boolean
  /** Whether the endpoint has said that nothing follows. */
  isComplete(): boolean
  /** The last events, once nothing follows. */
  end(): ModelEvent[]
}
export type ReaderOptions = {
  toolCallsMax: number
  /** Ids of the calls of former turns. */
  usedIds: readonly string[]
}

/** A model invents names, and endpoints refuse a conversation with a name that no tool could have. */
export const sendableName = (name: string): string => name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown'

/** What asks a model that continues no text of its own to do so. */
export const continueWords =
  'Your answer above was cut off. Continue it exactly where it ended, and repeat nothing of it.'

/** With the words of a user at the end, where the model refuses to continue its own. */
export const withoutPrefix = (messages: readonly ModelMessage[]): readonly ModelMessage[] => {
  const last = messages.at(-1)
  if (last?.role !== 'assistant' || last.calls.length > 0) return messages
  return [...messages, { role: 'user', text: continueWords }]
}

/** An endpoint calls the reason by another name, or none, where it made calls. */
export const settledReason = (reason: StopReason, calls: number): StopReason => {
  if (calls > 0) return reason === 'end' ? 'tools' : reason
  return reason === 'tools' ? 'end' : reason
}
