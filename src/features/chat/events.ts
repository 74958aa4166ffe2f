import * as T from '#kernel/contract/schema.ts'
import { Nullable, OneOf, OpenObject, Text, Time } from '#kernel/contract/wire-types.ts'
import { planWords, stopReasons } from '#kernel/wire/chat-answerer.ts'
import type { JsonObject } from '#kernel/wire/json.ts'

const Citation = T.Object({ n: T.Integer(), tool: Text, pointer: Text, fetched_at: Time })

const meta = T.Object(
  { chat_id: Text, thread_id: Text },
  { $id: 'ChatMeta', description: '`meta`, the first event: the ids of the message and of its thread' },
)
const planning = T.Object(
  { v4_event: OneOf(planWords), data: T.Object({ id: Text, text: Text }) },
  { $id: 'ChatPlanning', description: '`planning`: a step of the plan' },
)
const toolCall = T.Object(
  {
    v4_event: OneOf(['tool_started']),
    data: T.Object({ id: Text, name: Text, arguments: OpenObject }),
  },
  { $id: 'ChatToolCall', description: '`tool_call`: a tool is called with these arguments' },
)
const toolResponse = T.Object(
  {
    type: OneOf(['result', 'error']),
    data: T.Object({
      id: Text,
      name: Text,
      output: T.Unsafe<unknown>({ description: 'Shortened above 16 KiB' }),
    }),
  },
  { $id: 'ChatToolResponse', description: '`tool_response`: what the tool has answered' },
)
const chunk = T.Object(
  { text: Text },
  { $id: 'ChatChunk', description: '`chunk`: the next piece of the answer' },
)
const answer = T.Object(
  { text: Text, citations: T.Array(Citation) },
  { $id: 'ChatAnswer', description: '`answer`: all chunks together, and where its numbers come from' },
)
const done = T.Object(
  {
    chat_id: Text,
    status: OneOf(['completed', 'cancelled']),
    stop_reason: OneOf(stopReasons, {
      description: '`length`: its time is over; `credits`: its credits are',
    }),
    credits_used: T.Integer(),
    credits_remaining: T.Integer(),
  },
  { $id: 'ChatDone', description: '`done`, the last event' },
)
const error = T.Object(
  { message: Text, code: Text, retryable: T.Boolean() },
  { $id: 'ChatError', description: '`error`, in place of `done`: no credits were used' },
)

export const eventData = {
  meta,
  planning,
  tool_call: toolCall,
  tool_response: toolResponse,
  chunk,
  answer,
  done,
  error,
} as const
export type EventName = keyof typeof eventData
type DataOf<Name extends EventName> = T.Static<(typeof eventData)[Name]>
export type ChatEventData = { [Name in EventName]: DataOf<Name> }
export type ChatEvent = { seq: number; event: EventName; data: JsonObject }

export const ChatStreamData = T.Unsafe<ChatEventData[EventName]>({
  $id: 'ChatEvent',
  anyOf: Object.values(eventData),
})

export const isLast = (event: EventName): boolean => event === 'done' || event === 'error'
export const idOf = (chatId: string, seq: number): string => `${chatId}:${seq}`

export const StoredChatEvent = T.Object(
  { id: Text, event: Text, data: OpenObject },
  { $id: 'ChatStoredEvent' },
)
export const ErrorOrNull = Nullable(error)
