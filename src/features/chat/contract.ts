import { setColumns } from '#kernel/contract/columns.ts'
import { act, group, read, stream } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Nullable, OneOf, OpenObject, Text, TextOrNull, Time } from '#kernel/contract/wire-types.ts'
import { taskStatuses } from '#kernel/task/task-state.ts'
import { agents, stopReasons } from '#kernel/wire/chat-answerer.ts'
import { defaultAgent } from './credits-per-turn.ts'
import { ChatStreamData, ErrorOrNull, eventData, StoredChatEvent } from './events.ts'

export const queryCharactersMax = 8_000
export const turnsPerThreadMax = 500

const ThreadIdIn = T.String({
  format: 'uuid',
  maxLength: 36,
  description: 'A thread, by its id or by the `chat_id` of one of its messages',
})
const ChatIdIn = T.String({ format: 'uuid', maxLength: 36, description: '`chat_id` of a message' })

const RecommendationFields = {
  title: Text,
  detail: Text,
  action: Nullable(
    T.Object({
      operation: T.String({ description: 'The operation that `accepted` starts' }),
      input: OpenObject,
      intent_sha256: T.String({ description: 'SHA-256 of the operation and its input' }),
      expires_at: Time,
    }),
  ),
  status: OneOf(['open', 'accepted', 'declined']),
  task_id: TextOrNull,
}
const Recommendation = T.Object({ id: Text, ...RecommendationFields }, { $id: 'ChatRecommendation' })
setColumns(Recommendation, ['id', 'title', 'status'])
const File = T.Object(
  { file_id: Text, name: Text, content_type: Text, size: T.Integer(), url: Text, expires_at: Time },
  { $id: 'ChatFile' },
)
setColumns(File, ['name', 'size', 'url'])
const statuses = ['running', 'completed', 'failed', 'cancelled'] as const

const ChatRequest = T.Object(
  {
    query: T.String({
      minLength: 1,
      maxLength: queryCharactersMax,
      pattern: '\\S',
      description: 'The message to the agent',
      examples: ['what do i hold'],
    }),
    thread_id: T.Optional(
      Nullable(
        T.String({
          format: 'uuid',
          maxLength: 36,
          description: 'The thread to continue; left out: a new one',
        }),
      ),
    ),
    stream: T.Optional(
      T.Boolean({ default: true, description: 'false: one JSON answer in place of the stream' }),
    ),
    agent: T.Optional(OneOf(agents, { default: defaultAgent })),
  },
  { $id: 'ChatRequest', examples: [{ query: 'what do i hold' }] },
)

const ChatAnswer = T.Object(
  {
    chat_id: Text,
    thread_id: Text,
    status: OneOf(statuses),
    agent: OneOf(agents),
    answer: TextOrNull,
    stop_reason: Nullable(OneOf(stopReasons)),
    recommendations: T.Array(Recommendation),
    files: T.Array(File),
    credits_used: T.Integer(),
    credits_remaining: Nullable(T.Integer()),
    error: ErrorOrNull,
    idempotency_key: TextOrNull,
  },
  { $id: 'ChatResponse' },
)

const ThreadSummary = T.Object(
  {
    thread_id: Text,
    title: Text,
    last_message: Text,
    agent: OneOf(agents),
    message_count: T.Integer(),
    created_at: Time,
    updated_at: Time,
  },
  { $id: 'ThreadSummary' },
)
setColumns(ThreadSummary, ['thread_id', 'title', 'message_count', 'updated_at'])

const ThreadMessage = T.Object(
  {
    chat_id: Text,
    thread_id: Text,
    role: OneOf(['user', 'assistant']),
    query: Text,
    answer: TextOrNull,
    agent: OneOf(agents),
    status: OneOf(statuses),
    events: T.Array(StoredChatEvent, {
      description: 'Plans and calls of tools of the newest messages, without the chunks of the answer',
    }),
    recommendations: T.Array(Recommendation),
    files: T.Array(File),
    credits_used: T.Integer(),
    created_at: Time,
  },
  { $id: 'ThreadMessage' },
)
setColumns(ThreadMessage, ['role', 'query', 'answer', 'status', 'created_at'])

const about =
  'Ask in plain words; what would change anything is recommended, and started where you accept it or your limit for chats allows it.'

export const contract = group('chat', about, {
  stream: stream('POST /v1/chat', {
    summary: 'Ask in plain words about your money and the markets, or say what to do with it',
    description:
      'Use it to ask, to get a plan, or to have a trade proposed. Events: `meta` first, then `planning`, `tool_call`, `tool_response`, `chunk`, `answer`, and one `done` or `error` last. It trades by itself only what the message orders, within `chat_per_day_usd` of the policy, which is 0 by default; anything else becomes a recommendation. Repeat the call with the same `Idempotency-Key` and `Last-Event-ID` to go on where a stream was cut. Next: `chat_decide` accepts a recommendation; `chat_cancel` stops an answer.',
    access: 'chat',
    rate: 'stream',
    taskKind: 'chat',
    priority: 3,
    body: ChatRequest,
    event: ChatStreamData,
    events: eventData,
    output: ChatAnswer,
    faults: ['not_found', 'insufficient_credits', 'conflict'],
  }),
  threads: read('GET /v1/chat/threads', {
    summary: 'Your threads, the one with the latest message first',
    description:
      'Use it to find an earlier conversation. Next: `chat_thread` reads its messages, and `chat_stream` with its `thread_id` continues it. `skip` reads further ones: a full page has a Link header to them.',
    access: 'chat',
    query: T.Object({
      skip: T.Optional(T.Integer({ minimum: 0, default: 0 })),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 10 })),
    }),
    output: T.Array(ThreadSummary),
  }),
  thread: read('GET /v1/chat/threads/{thread_id}', {
    summary: 'All messages of a thread, oldest first',
    description:
      'Use it to read a conversation again: each question is followed by its answer, with its recommendations. Next: `chat_decide` accepts or declines an open recommendation.',
    access: 'chat',
    params: T.Object({ thread_id: ThreadIdIn }),
    output: T.Array(ThreadMessage),
    faults: ['not_found'],
  }),
  decide: act('PATCH /v1/chat/{chat_id}/recommendations/{recommendation_id}', {
    summary: 'Accept or decline what a chat has recommended',
    description:
      'Use it for a recommendation with `status: open`. `accepted` starts its `action` once, exactly as it was shown, in your name and within your limits, and answers with its `task_id`; `declined` starts nothing and is final. Both take the scope of that operation. Next: poll `tasks_get` with the `task_id`.',
    access: 'chat',
    repeatable: true,
    rate: 'money',
    params: T.Object({
      chat_id: ChatIdIn,
      recommendation_id: T.String({ format: 'uuid', maxLength: 36, description: 'Its `id`' }),
    }),
    body: T.Object(
      { status: OneOf(['accepted', 'declined']) },
      { $id: 'ChatRecommendationStatusUpdate', examples: [{ status: 'declined' }] },
    ),
    output: T.Object(
      {
        recommendation_id: Text,
        chat_id: Text,
        status: OneOf(['accepted', 'declined']),
        task_id: TextOrNull,
        updated_at: Time,
      },
      { $id: 'ChatRecommendationResponse' },
    ),
    faults: ['insufficient_scope', 'not_found', 'conflict', 'quote_expired'],
  }),
  cancel: act('POST /v1/chat/{chat_id}/cancel', {
    isAddition: true,
    summary: 'Stop an answer',
    description:
      'Use it while the answer of a chat is being written. What it has said stays in the thread, and tasks that were started from it go on. `not_cancellable` means that it has ended. Next: its stream ends with `done` and `status: cancelled`; `chat_thread` has what it said.',
    access: 'chat',
    repeatable: true,
    rate: 'exit',
    params: T.Object({ chat_id: ChatIdIn }),
    output: T.Object(
      { chat_id: Text, status: OneOf(taskStatuses), cancel_requested: T.Boolean() },
      { $id: 'ChatCancelResponse' },
    ),
    faults: ['not_found', 'not_cancellable'],
  }),
  files: read('GET /v1/chat/{chat_id}/files', {
    summary: 'The files that a chat has made',
    description:
      'Use it after an answer that mentions files. Only you get the links; each lasts for 15 minutes, and opens the file for everyone who has it. Next: fetch a `url` before its `expires_at`.',
    access: 'chat',
    params: T.Object({ chat_id: ChatIdIn }),
    output: T.Object({ chat_id: Text, files: T.Array(File) }, { $id: 'ChatFilesResponse' }),
    faults: ['not_found'],
  }),
})
