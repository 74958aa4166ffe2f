import { group, read, stream } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Text } from '#kernel/contract/wire-types.ts'
import { eventTypes, NotificationEvent } from './event-types.ts'
import { webhookEntries } from './webhooks-contract.ts'

const cursor = T.String({
  pattern: '^(0|[1-9][0-9]{0,17})$',
  description: 'Sequence number after which to begin',
  examples: ['42'],
})
const types = T.String({
  minLength: 1,
  maxLength: 500,
  description: `Event types, separated by commas, out of: ${eventTypes.join(', ')}`,
  examples: ['order.filled,position.changed'],
})

const about = 'Events of tasks, orders and positions, as a stream or by page.'

export const contract = group('notifications', about, {
  stream: stream('GET /v1/notifications/stream', {
    summary: 'Follow everything that happens to your tasks and account',
    description:
      'Use it to follow tasks, fills and positions instead of polling. Server-sent events: `id` is the cursor, `event` the type, `data` the JSON of the event. Reconnect with `Last-Event-ID` (or `after`) to resume without a gap; otherwise the last 50 events come first. An event named `reset` with `{from, to}` says that those numbers are no longer stored. Next: after `reset`, read your state again by `tasks_list`, `perp_orders` and `spot_venue_orders`.',
    access: 'read',
    rate: 'stream',
    query: T.Object({ after: T.Optional(cursor), types: T.Optional(types) }),
    event: NotificationEvent,
  }),
  list: read('GET /v1/notifications', {
    isAddition: true,
    summary: 'Read the same events page by page',
    description:
      'Use it where a stream cannot be kept open. With `types` or `task_id` a request searches 20,000 events after `after`, and `total_count` counts the matches among those. Next: go on with `after=next_after` until it is the newest number, also after an empty page.',
    access: 'read',
    query: T.Object({
      after: T.Optional(cursor),
      skip: T.Optional(
        T.Integer({
          minimum: 0,
          maximum: 1_000,
          default: 0,
          description: 'Events to pass over; for more, go on with `after=next_after`',
        }),
      ),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 50 })),
      types: T.Optional(types),
      task_id: T.Optional(T.String({ format: 'uuid' })),
    }),
    output: T.Object(
      {
        events: T.Array(NotificationEvent),
        total_count: T.Integer(),
        limit: T.Integer(),
        skip: T.Integer(),
        next_after: Text,
      },
      { $id: 'NotificationPage' },
    ),
  }),
})

export const webhooksContract = group(
  'webhooks',
  'Addresses to which events are posted, signed.',
  webhookEntries,
)
