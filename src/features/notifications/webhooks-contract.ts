import { setColumns } from '#kernel/contract/columns.ts'
import { act, type InputOf, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Nullable, OneOf, TextOrNull, Time, TimeOrNull } from '#kernel/contract/wire-types.ts'
import { eventTypes } from './event-types.ts'

export const webhooksMax = 10
/** How many messages of each webhook `webhooks_deliveries` shows. */
export const deliveriesMax = 100
export const urlLengthMax = 2_048
/** A test sends a request at the caller's command, so it costs more of the rate budget than a change of a row. */
const testPoints = 20

const url = T.String({
  minLength: 8,
  maxLength: urlLengthMax,
  description: 'An https address with the default port that is reachable from the internet',
  examples: ['https://example.com/portico-events'],
})
const types = Nullable(
  T.Array(OneOf(eventTypes), {
    minItems: 1,
    maxItems: eventTypes.length,
    uniqueItems: true,
    description: 'Only events of these types; null: all',
  }),
)
const description = T.String({ maxLength: 200, description: 'Your name for it' })
const cursor = T.String({ pattern: '^(0|[1-9][0-9]{0,17})$', examples: ['42'] })
const webhookPath = T.Object({
  webhook_id: T.String({ format: 'uuid', description: 'Id out of `webhooks_list`' }),
})

const webhookFields = {
  webhook_id: T.String({ description: 'Id of the webhook' }),
  url: T.String({ description: 'Where events are posted' }),
  types: Nullable(T.Array(T.String(), { description: 'Types that are sent; null: all' })),
  description,
  status: OneOf(['enabled', 'disabled'] as const, {
    description: 'disabled: nothing is sent until `webhooks_update` enables it',
  }),
  disabled_reason: Nullable(
    OneOf(['failing', 'unsubscribed'] as const, {
      description: 'failing: every attempt of a message failed; unsubscribed: the address answered 410',
    }),
  ),
  disabled_at: TimeOrNull,
  delivered_through: T.String({ description: 'Id of the last event that was delivered or not wanted' }),
  failed_attempts: T.Integer({ description: 'Failed attempts of the next event' }),
  next_attempt_at: T.Union([Time, T.Null()], { description: 'When the next event is tried again' }),
  client_id: T.Unsafe<string | null>({
    ...TextOrNull,
    description: 'The app of a person that last gave it its address or its secret; null for a key pair',
  }),
  created_at: Time,
}
const Webhook = T.Object(webhookFields, { $id: 'Webhook' })
setColumns(Webhook, ['webhook_id', 'url', 'status', 'failed_attempts', 'created_at'])
const WebhookList = T.Object(
  {
    webhooks: T.Array(Webhook, { description: 'Oldest first' }),
    max: T.Integer({ description: 'How many a user may have' }),
  },
  { $id: 'WebhookList' },
)
const secret = T.String({
  description: 'What its signatures are verified with; shown in this answer alone',
  examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw8tZ8iD7k3mY='],
})

const Delivery = T.Object(
  {
    message_id: T.String({ description: 'The header `webhook-id`, the same in every attempt' }),
    event_id: T.String({ description: 'Number of the event' }),
    event_type: T.String({ description: 'Type of the event' }),
    status: OneOf(['delivered', 'retrying', 'failed'] as const, {
      description: 'failed: no further attempt is made',
    }),
    attempts: T.Integer({ description: 'Attempts so far' }),
    response_status: Nullable(
      T.Integer({ description: 'HTTP status of the last answer; null without an answer' }),
    ),
    error: T.Union([T.String(), T.Null()], {
      description: 'Why the last attempt failed; null where it succeeded',
    }),
    duration_ms: T.Integer({ description: 'Duration of the last attempt' }),
    first_attempt_at: Time,
    last_attempt_at: Time,
    next_attempt_at: TimeOrNull,
  },
  { $id: 'WebhookDelivery' },
)
setColumns(Delivery, ['event_id', 'event_type', 'status', 'attempts', 'response_status', 'last_attempt_at'])

export const webhookEntries = {
  list: read('GET /v1/webhooks', {
    isAddition: true,
    summary: 'The addresses to which your events are posted',
    description:
      'Use it to see your webhooks, oldest first, how far each has got and why one was disabled. An app of a person sees those that it has added, here and in the operations below. Next: `webhooks_deliveries` shows the last messages of one.',
    access: 'read',
    output: WebhookList,
  }),
  create: act('POST /v1/webhooks', {
    isAddition: true,
    summary: 'Post your events to an address of yours, signed',
    description: `Use it where a server should learn of events without a connection of its own. Every event after this call is posted, in order and at least once, with the headers of Standard Webhooks; answer 2xx within 10 seconds. The answer has the \`secret\` that verifies the signatures, which no other answer shows. A user has at most ${webhooksMax}; a caller names each \`url\` once. What an app has added is deleted when the person disconnects the app. Next: \`webhooks_test\` sends a message at once.`,
    access: 'manage',
    repeatable: true,
    replies: 'derived',
    faults: ['conflict', 'not_found', 'unavailable'],
    body: T.Object(
      { url, types: T.Optional(types), description: T.Optional(description) },
      {
        $id: 'WebhookRequest',
        additionalProperties: false,
        examples: [{ url: 'https://example.com/portico-events', types: ['task.completed', 'task.failed'] }],
      },
    ),
    output: T.Object({ ...webhookFields, secret }, { $id: 'WebhookCreated' }),
  }),
  update: act('PATCH /v1/webhooks/{webhook_id}', {
    isAddition: true,
    summary: 'Change a webhook, or enable it again',
    description:
      'Use it to send to another `url`, to send other `types`, or with `enabled` to stop a webhook and to start it again; fields that are left out stay as they are. A webhook that is enabled again continues with the event that failed. Next: `webhooks_replay` goes back, or forward over an event that your server cannot take.',
    access: 'manage',
    repeatable: true,
    replies: 'derived',
    faults: ['not_found', 'conflict'],
    params: webhookPath,
    body: T.Object(
      {
        url: T.Optional(url),
        types: T.Optional(types),
        description: T.Optional(description),
        enabled: T.Optional(
          T.Boolean({ description: 'true: send, also after it was disabled; false: stop' }),
        ),
      },
      { $id: 'WebhookUpdateRequest', additionalProperties: false, examples: [{ enabled: true }] },
    ),
    output: Webhook,
  }),
  delete: act('DELETE /v1/webhooks/{webhook_id}', {
    isAddition: true,
    summary: 'Remove a webhook with its secrets',
    description:
      'Use it when nothing should be sent any more. At most the request under way arrives afterwards. Next: `webhooks_list`.',
    access: 'manage',
    repeatable: true,
    rate: 'exit',
    faults: ['not_found'],
    params: webhookPath,
    output: T.Object(
      {
        webhook_id: T.String({ description: 'The webhook that was removed' }),
        deleted: T.Boolean({ description: 'Always true' }),
      },
      { $id: 'WebhookDeleted' },
    ),
  }),
  rotate: act('POST /v1/webhooks/{webhook_id}/rotate', {
    isAddition: true,
    summary: 'Replace the secret of a webhook',
    description:
      'Use it regularly, and when a secret may be known to others. Messages are signed with the new `secret` and for 24 hours with the former one too, so that a server can change over without losing one. Next: store the `secret`, which no other answer shows.',
    access: 'manage',
    replies: 'derived',
    faults: ['not_found', 'unavailable'],
    params: webhookPath,
    output: T.Object(
      {
        webhook_id: T.String({ description: 'Id of the webhook' }),
        secret,
        former_valid_until: T.Union([Time, T.Null()], {
          description: 'Until then the former secret signs too',
        }),
      },
      { $id: 'WebhookSecret' },
    ),
  }),
  test: act('POST /v1/webhooks/{webhook_id}/test', {
    isAddition: true,
    summary: 'Send a test message now, and see what became of it',
    description: `Use it after a change, also of a webhook that is disabled. One message of type \`webhook.test\` is sent once, and the answer says how the address replied; the answer of the address is not shown. It changes nothing and counts as ${testPoints} calls. Next: \`webhooks_update\` with \`enabled\` starts a webhook that was disabled.`,
    access: 'manage',
    repeatable: true,
    points: () => testPoints,
    faults: ['not_found', 'unavailable', 'overloaded'],
    params: webhookPath,
    output: T.Object(
      {
        message_id: T.String({ description: 'The header `webhook-id` of the message' }),
        status: OneOf(['delivered', 'failed'] as const, {
          description: 'delivered: the address answered 2xx',
        }),
        response_status: Nullable(T.Integer({ description: 'HTTP status; null without an answer' })),
        error: TextOrNull,
        duration_ms: T.Integer({ description: 'Duration of the request' }),
      },
      { $id: 'WebhookTest' },
    ),
  }),
  deliveries: read('GET /v1/webhooks/{webhook_id}/deliveries', {
    isAddition: true,
    summary: 'The last messages of a webhook and how they were answered',
    description: `Use it to find out why events do not arrive. The last ${deliveriesMax} messages are kept, newest first. Next: \`webhooks_replay\` sends earlier events again.`,
    access: 'read',
    faults: ['not_found'],
    params: webhookPath,
    query: T.Object({
      skip: T.Optional(T.Integer({ minimum: 0, maximum: deliveriesMax, default: 0 })),
      limit: T.Optional(T.Integer({ minimum: 1, maximum: deliveriesMax, default: 50 })),
    }),
    output: T.Object(
      {
        webhook_id: T.String({ description: 'Id of the webhook' }),
        deliveries: T.Array(Delivery, { description: 'Newest first' }),
        total_count: T.Integer({ description: 'Messages that are kept' }),
        limit: T.Integer(),
        skip: T.Integer(),
      },
      { $id: 'WebhookDeliveryPage' },
    ),
  }),
  replay: act('POST /v1/webhooks/{webhook_id}/replay', {
    isAddition: true,
    summary: 'Send the events after a number again, or pass over some',
    description:
      'Use it when your server lost messages: delivery continues with the event after `after`, in order, under the same `webhook-id` as before. With the id of an event that is not delivered yet, the events up to it are passed over. Next: `webhooks_deliveries`.',
    access: 'manage',
    faults: ['not_found'],
    params: webhookPath,
    body: T.Object(
      {
        after: {
          ...cursor,
          description: 'Id of an event that is still stored, or 0; what follows it is sent',
        },
      },
      { $id: 'WebhookReplayRequest', additionalProperties: false, examples: [{ after: '42' }] },
    ),
    output: T.Object(
      {
        webhook_id: T.String({ description: 'Id of the webhook' }),
        after: T.String({ description: 'Delivery continues with the event after this one' }),
        events: T.Integer({ description: 'Stored events after it, of all types' }),
      },
      { $id: 'WebhookReplay' },
    ),
  }),
}
export type CreateInput = InputOf<typeof webhookEntries.create>
export type UpdateInput = InputOf<typeof webhookEntries.update>
export type ReplayInput = InputOf<typeof webhookEntries.replay>
