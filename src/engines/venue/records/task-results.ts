import { setColumns } from '#kernel/contract/columns.ts'
import * as T from '#kernel/contract/schema.ts'
import { Dec, DecOrNull, Nullable, OneOf, Text, TextOrNull } from '#kernel/contract/wire-types.ts'

/** The results of tasks of both sections, perp and spot. Results may gain fields, so every object is open. */

export const openResult = { additionalProperties: true }

export const OrderLeg = T.Object(
  {
    role: T.String({ description: 'Part of the task that the order is: entry, close, tp or sl' }),
    order_id: TextOrNull,
    cloid: T.Optional(Text),
    status: T.String({ description: 'State of the order when the task ended' }),
    error: T.Union([T.String(), T.Null()], {
      description: 'Why the venue refused the order; null otherwise',
    }),
  },
  { $id: 'TaskOrderLeg', description: 'One order of the task', ...openResult },
)
setColumns(OrderLeg, ['role', 'status', 'error'])
const orderIds = (leg: string) => T.Array(Text, { description: `Ids of the ${leg} orders that are open` })
export const protectiveOrderIds = { tp_oids: orderIds('take-profit'), sl_oids: orderIds('stop-loss') }

const movedFrom = (side: string) =>
  T.Optional(
    T.Union([T.String(), T.Null()], {
      description: `USDC moved from the ${side} side first; null if none was`,
    }),
  )
const order = {
  asset: T.String({ description: 'Symbol of the market' }),
  resting: T.Boolean({ description: 'True while the order rests in the book and is not filled' }),
  order_id: TextOrNull,
  cloid: Text,
  order_status: OneOf(['filled', 'resting', 'rejected'] as const, {
    description: 'State of the order when the task ended; filled also after a partial fill',
  }),
  filled_size: Dec,
  avg_price: DecOrNull,
  fee: Dec,
  fee_token: TextOrNull,
  realized_pnl_gross_usd: T.Optional(Dec),
  realized_pnl_net_usd: T.Optional(Nullable(Dec)),
  ...protectiveOrderIds,
  legs: T.Array(OrderLeg, { description: 'Every order of the task' }),
}

export const PerpOrderResult = T.Object(
  {
    ...order,
    moved_from_spot_usd: movedFrom('spot'),
    asked_size: T.Optional(
      T.String({ description: 'Size in the asset that a close asked for, if more was asked than open' }),
    ),
    position_size: T.Optional(
      T.String({ description: 'Size in the asset that was open when the close was accepted' }),
    ),
  },
  { $id: 'PerpOrderResult', description: 'Figures of an opened or closed position', ...openResult },
)
setColumns(PerpOrderResult, ['asset', 'order_status', 'legs', 'fee', 'realized_pnl_net_usd', 'order_id'])
export const SpotOrderResult = T.Object(
  { ...order, moved_from_perp_usd: movedFrom('perpetual') },
  { $id: 'SpotOrderResult', description: 'Figures of a purchase or sale', ...openResult },
)
setColumns(SpotOrderResult, ['asset', 'order_status', 'legs', 'fee', 'realized_pnl_net_usd', 'order_id'])

export const CancelResult = T.Object(
  { order_id: Text, venue_status: Text },
  { $id: 'CancelResult', description: 'The order that was cancelled', ...openResult },
)
export const CancelAllResult = T.Object(
  {
    cancelled: T.Integer({ description: 'Orders that were cancelled' }),
    not_cancelled: T.Integer({ description: 'Orders that were not cancelled' }),
    orders: T.Array(
      T.Object(
        {
          order_id: Text,
          oid: Text,
          asset: T.String({ description: 'Symbol of the market' }),
          cancelled: T.Boolean({ description: 'Whether this order was cancelled' }),
          venue_status: Text,
        },
        { $id: 'CancelledOrder', description: 'One order and its outcome', ...openResult },
      ),
      { description: 'Each order with its outcome' },
    ),
  },
  { $id: 'CancelAllResult', description: 'What became of each order', ...openResult },
)
