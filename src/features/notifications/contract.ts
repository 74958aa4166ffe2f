import * as T from 'typebox'
import { read, section, stream } from '#kernel/operation.ts'
import { Nullable, OpenObject, Text, TextOrNull, Time } from '#kernel/scalars.ts'

const NotificationEvent = T.Object(
  {
    id: T.String({ description: 'Gapless sequence number of this user; the cursor' }),
    type: T.String({ examples: ['task.completed'] }),
    task_id: TextOrNull,
    subject: Nullable(T.Object({ kind: Text, id: Text })),
    data: OpenObject,
    created_at: Time,
  },
  { $id: 'NotificationEvent' },
)

const cursor = T.String({
  pattern: '^(0|[1-9][0-9]{0,17})$',
  description: 'Sequence number after which to begin',
})
const types = T.String({ minLength: 1, maxLength: 500, description: 'Event types, separated by commas' })

export const contract = section('notifications', {
  stream: stream('GET /v1/notifications/stream', {
    summary: 'Follow everything that happens to your tasks and account',
    description:
      'Server-sent events. `Last-Event-ID` (or `after`) replays what came since; otherwise the last 50 events come first.',
    access: 'read',
    rate: 'stream',
    query: T.Object({ after: T.Optional(cursor), types: T.Optional(types) }),
    event: NotificationEvent,
  }),
  list: read('GET /v1/notifications', {
    summary: 'Read the same events page by page',
    access: 'read',
    query: T.Object({
      after: T.Optional(cursor),
      offset: T.Optional(T.Integer({ minimum: 0, maximum: 100_000, default: 0 })),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 50 })),
      types: T.Optional(types),
      task_id: T.Optional(T.String({ format: 'uuid' })),
    }),
    output: T.Object(
      {
        events: T.Array(NotificationEvent),
        total_count: T.Integer(),
        limit: T.Integer(),
        offset: T.Integer(),
        next_after: Text,
      },
      { $id: 'NotificationPage' },
    ),
  }),
})

export type NotificationEvent = T.Static<typeof NotificationEvent>
