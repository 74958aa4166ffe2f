import * as T from '#kernel/contract/schema.ts'
import { TaskStatusResponse } from '#kernel/contract/task-response.ts'
import {
  Address,
  ChainId,
  Dec,
  DecOrNull,
  Nullable,
  OneOf,
  Text,
  TextOrNull,
  Time,
  Units,
} from '#kernel/contract/wire-types.ts'
import { predictionEvents } from './prediction-event-types.ts'
import { ScheduleGuardTripped, SchedulePaused, ScheduleRun } from './schedule-events.ts'
import { SubscriptionChanged } from './subscription-events.ts'

/** The event types of a user and the data of each. For compatibility, fields may be added but never removed. */

const open = { additionalProperties: true }
const atVenue = { venue: Text, asset: T.String({ description: 'Symbol of the market' }), at: Time }
const leg = T.Optional(
  Nullable(OneOf(['entry', 'close', 'tp', 'sl'], { description: 'The part of its task that the order is' })),
)
const orderFields = {
  ...atVenue,
  order_id: Text,
  cloid: TextOrNull,
  task_id: T.Optional(TextOrNull),
  leg,
}

const OrderFilled = T.Object(
  {
    ...orderFields,
    fill_id: Text,
    side: OneOf(['buy', 'sell']),
    size: Dec,
    price: Dec,
    fee: Dec,
    fee_token: Text,
    realized_pnl_gross_usd: T.Optional(
      T.String({ description: 'Profit of the fill before fees, as the venue counts it; signed' }),
    ),
    realized_pnl_net_usd: T.Optional(
      Nullable(
        T.String({ description: 'Gross less the fee; null where the fee was taken in another token' }),
      ),
    ),
  },
  { $id: 'OrderFilledData', ...open },
)
const OrderEnded = T.Object(
  { ...orderFields, reason: T.String({ description: 'The reason as the venue reports it' }) },
  { $id: 'OrderEndedData', ...open },
)
const PositionChanged = T.Object(
  {
    ...atVenue,
    fill_id: Text,
    size_before: T.String({ description: 'Signed size before the fill; negative is short' }),
    change: T.String({ description: 'Signed change of the size' }),
    cause: Text,
  },
  { $id: 'PositionChangedData', ...open },
)
const PositionLiquidated = T.Object(
  { ...atVenue, order_id: Text },
  { $id: 'PositionLiquidatedData', ...open },
)
const FundingPaid = T.Object(
  {
    ...atVenue,
    amount_usd: T.String({
      description: 'Signed amount as the venue reports it; negative is paid, positive is received',
    }),
    rate: Text,
  },
  { $id: 'FundingPaidData', ...open },
)
const VenueKeyRenewed = T.Object(
  { venue: T.String(), api_wallet_address: T.String(), api_wallet_expires_at: T.String() },
  { $id: 'VenueKeyRenewed', description: 'A new trading key was approved before the old one expired' },
)
const HookChanged = T.Object(
  {
    id: Text,
    type: OneOf(['stop_loss', 'take_profit', 'trailing']),
    chain_id: Text,
    token_address: Text,
    status: Text,
    trigger_price_usd: Dec,
    failure_reason: TextOrNull,
  },
  { $id: 'HookChangedData', description: 'The hook, with all fields of Hook', ...open },
)
const LimitOrderChanged = T.Object(
  {
    limit_order_id: Text,
    status: Text,
    price_usd_trigger: Dec,
    task_id: TextOrNull,
    failure_reason: TextOrNull,
  },
  { $id: 'LimitOrderChangedData', description: 'The order, with all fields of LimitOrderStatus', ...open },
)
const SwapLatePayment = T.Object(
  {
    type: OneOf(['refund', 'fill'] as const),
    chain_id: ChainId,
    token_address: Address,
    symbol: Text,
    amount: Units,
    tx_hash: Text,
    order_id: T.Optional(T.String({ description: 'The hook or limit order whose swap it was' })),
    next_step: T.Optional(T.String({ description: 'What its owner may do now' })),
  },
  { $id: 'SwapLatePaymentData', ...open },
)
const PolicyChanged = T.Object(
  {
    cause: OneOf(
      [
        'tightened',
        'raised',
        'cancelled',
        'paused',
        'resumed',
        'recipient_added',
        'recipient_removed',
      ] as const,
      {
        description: 'raised: it waits until `effective_at`; cancelled: it never takes effect',
      },
    ),
    fields: T.Array(Text, { description: 'Limits that were changed' }),
    effective_at: Nullable(Time),
    by: T.String({ description: 'The agent or the person, or `operator` where an operator confirmed it' }),
    recipient: T.Optional(
      T.Object(
        {
          recipient_id: T.String({ description: 'Its id' }),
          chain_id: ChainId,
          address: Address,
          label: T.String({ description: 'The name that a person gave it' }),
        },
        { description: 'recipient_added, recipient_removed: which one' },
      ),
    ),
  },
  { $id: 'PolicyChangedData', ...open },
)
const AgentLink = T.Object(
  {
    agent_id: T.String({ description: 'The agent' }),
    person_id: T.String({ description: 'The public id of the person' }),
    by: T.String({ description: 'Who did it: the agent, the person, or `operator`' }),
  },
  { $id: 'AgentLinkData', ...open },
)
const AppCreditsChanged = T.Object(
  {
    client_id: T.String({ description: 'The app' }),
    credits_per_day: T.Integer({ description: 'What it may spend of the credits of the person in a day' }),
    by: OneOf(['operator'], { description: 'Who changed it' }),
  },
  { $id: 'AppCreditsChangedData', ...open },
)
const ApprovalChanged = T.Object(
  {
    approval_id: Text,
    task_id: T.String({ description: 'The task that waits, or waited' }),
    intent: T.Object(
      {
        text: T.String({ description: 'The request in one sentence' }),
        usd: T.Unsafe<string | null>({
          ...DecOrNull,
          description: 'Value at the time of the request, in USD; null where nothing moves',
        }),
        agent_id: T.String({ description: 'The agent that asked' }),
      },
      { description: 'With all fields of ApprovalIntent', ...open },
    ),
    intent_sha256: T.String({ description: 'Names the request' }),
    expires_at: Time,
    decision: Nullable(
      OneOf(['approved', 'declined', 'expired'], {
        description: 'Null while it waits, and where it was cancelled before a decision',
      }),
    ),
    by: T.Unsafe<string | null>({
      ...TextOrNull,
      description: 'The agent of the person; null while it waits',
    }),
  },
  { $id: 'ApprovalChangedData', ...open },
)
const SecurityFlagged = T.Object(
  {
    state: T.String({ description: 'frozen, or the state after the freeze' }),
    code: T.Optional(TextOrNull),
    reason: T.Optional(TextOrNull),
  },
  { $id: 'SecurityFlaggedData', ...open },
)
const webhookOf = {
  webhook_id: T.String({ description: 'The webhook' }),
  origin: T.String({ description: 'Scheme and host of its address' }),
  client_id: T.Unsafe<string | null>({
    ...TextOrNull,
    description: 'The app that gave it its address or its secret; null for a key pair',
  }),
}
const WebhookCreated = T.Object(
  { ...webhookOf, types: Nullable(T.Array(Text, { description: 'Types that are sent; null: all' })) },
  { $id: 'WebhookCreatedData', ...open },
)
const WebhookUpdated = T.Object(
  {
    ...webhookOf,
    fields: T.Array(OneOf(['url', 'types', 'description', 'enabled', 'secret'] as const), {
      description: 'What was changed; secret: a new one signs',
    }),
  },
  { $id: 'WebhookUpdatedData', ...open },
)
const WebhookDeleted = T.Object(
  {
    ...webhookOf,
    reason: OneOf(['deleted', 'disconnected', 'revoked'] as const, {
      description:
        'deleted: by a call; disconnected: the connection of its app ended; revoked: every access to the account was ended',
    }),
  },
  { $id: 'WebhookDeletedData', ...open },
)
const WebhookDisabled = T.Object(
  {
    webhook_id: T.String({ description: 'The webhook to which nothing is sent any more' }),
    reason: OneOf(['failing', 'unsubscribed'] as const, {
      description: 'failing: every attempt of a message failed; unsubscribed: the address answered 410',
    }),
    response_status: Nullable(T.Integer({ description: 'Of the last attempt; null without an answer' })),
  },
  { $id: 'WebhookDisabledData', ...open },
)

export const eventData = {
  'task.created': TaskStatusResponse,
  'task.updated': TaskStatusResponse,
  'task.completed': TaskStatusResponse,
  'task.failed': TaskStatusResponse,
  'task.cancelled': TaskStatusResponse,
  'order.filled': OrderFilled,
  'order.rejected': OrderEnded,
  'order.cancelled': OrderEnded,
  'position.changed': PositionChanged,
  'position.liquidated': PositionLiquidated,
  'funding.paid': FundingPaid,
  'venue.key_renewed': VenueKeyRenewed,
  'hook.created': HookChanged,
  'hook.triggered': HookChanged,
  'hook.attempt_failed': HookChanged,
  'hook.filled': HookChanged,
  'hook.failed': HookChanged,
  'hook.cancelled': HookChanged,
  'hook.expired': HookChanged,
  'limit_order.created': LimitOrderChanged,
  'limit_order.triggered': LimitOrderChanged,
  'limit_order.attempt_failed': LimitOrderChanged,
  'limit_order.executed': LimitOrderChanged,
  'limit_order.failed': LimitOrderChanged,
  'limit_order.cancelled': LimitOrderChanged,
  'limit_order.expired': LimitOrderChanged,
  'swap.late_payment': SwapLatePayment,
  'schedule.run_started': ScheduleRun,
  'schedule.run_finished': ScheduleRun,
  'schedule.run_skipped': ScheduleRun,
  'schedule.paused': SchedulePaused,
  'schedule.guard_tripped': ScheduleGuardTripped,
  'approval.requested': ApprovalChanged,
  'approval.decided': ApprovalChanged,
  'approval.expired': ApprovalChanged,
  'approval.cancelled': ApprovalChanged,
  'policy.changed': PolicyChanged,
  'agent.linked': AgentLink,
  'agent.unlinked': AgentLink,
  'agent.link_contested': AgentLink,
  'agent.link_accepted': AgentLink,
  'app.credits_changed': AppCreditsChanged,
  'subscription.started': SubscriptionChanged,
  'subscription.renewed': SubscriptionChanged,
  'subscription.changed': SubscriptionChanged,
  'subscription.payment_failed': SubscriptionChanged,
  'subscription.cancelled': SubscriptionChanged,
  'subscription.resumed': SubscriptionChanged,
  'subscription.ended': SubscriptionChanged,
  'subscription.credits_changed': SubscriptionChanged,
  'subscription.duplicate_refunded': SubscriptionChanged,
  ...predictionEvents,
  'security.flagged': SecurityFlagged,
  'webhook.created': WebhookCreated,
  'webhook.updated': WebhookUpdated,
  'webhook.deleted': WebhookDeleted,
  'webhook.disabled': WebhookDisabled,
} as const
export type EventType = keyof typeof eventData
export const eventTypes = Object.keys(eventData) as EventType[]

/** Returns the schema name of an event type: `task.completed` becomes `TaskCompletedEvent`. */
const nameOf = (type: EventType): string =>
  `${type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`

const envelope = (type: EventType) =>
  T.Object(
    {
      id: T.String({ description: 'Gapless sequence number of this user; the cursor' }),
      type: OneOf([type]),
      task_id: T.Union([T.String(), T.Null()], {
        description: 'The task that caused the event; null where no task did',
      }),
      subject: Nullable(T.Object({ kind: Text, id: Text })),
      data: eventData[type],
      created_at: Time,
    },
    { $id: nameOf(type) },
  )

export const NotificationEvent = T.Unsafe<NotificationEvent>({
  $id: 'NotificationEvent',
  oneOf: eventTypes.map(envelope),
})
export type NotificationEvent = {
  id: string
  type: EventType
  task_id: string | null
  subject: { kind: string; id: string } | null
  data: Record<string, unknown>
  created_at: string
}
