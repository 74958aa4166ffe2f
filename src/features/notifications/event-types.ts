import * as T from '#kernel/schema.ts'
import { TaskStatusResponse } from '#kernel/task-response.ts'
import { Address, ChainId, Dec, Nullable, OneOf, Text, TextOrNull, Time, Units } from '#kernel/wire-types.ts'

/** The event types of a user and the data of each. Compatibility: fields may be added, never removed. */

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
  },
  { $id: 'SwapLatePaymentData', ...open },
)
const SecurityFlagged = T.Object(
  {
    state: T.String({ description: 'frozen, or the state after the freeze' }),
    code: T.Optional(TextOrNull),
    reason: T.Optional(TextOrNull),
  },
  { $id: 'SecurityFlaggedData', ...open },
)

/** The data of each type of event. */
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
  'security.flagged': SecurityFlagged,
} as const
export type EventType = keyof typeof eventData
export const eventTypes = Object.keys(eventData) as EventType[]

/** `task.completed` becomes `TaskCompletedEvent`. */
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

/** One variant per type, discriminated by `type`. */
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
