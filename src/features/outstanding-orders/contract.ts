import { act, group, type InputOf, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Id, OneOf, Text } from '#kernel/contract/wire-types.ts'

const idsMax = 200

const OutstandingOrder = T.Object(
  {
    id: Id('Hook or limit order'),
    order_kind: OneOf(['hook', 'limit_order'] as const),
    status: Text,
  },
  {
    $id: 'OutstandingOrder',
    description: 'The fields of Hook or LimitOrderStatus, by `order_kind`',
    additionalProperties: true,
  },
)

const CancelRequest = T.Object(
  {
    outstanding_order_ids: T.Optional(
      T.Array(T.String({ format: 'uuid' }), {
        minItems: 1,
        maxItems: idsMax,
        description: 'These alone; without them every one of which nothing has been sent',
      }),
    ),
    all: T.Optional(T.Boolean({ description: 'true: the same as without `outstanding_order_ids`' })),
  },
  {
    $id: 'CancelOutstandingOrdersRequest',
    additionalProperties: false,
    examples: [{ all: true }],
  },
)

const about = 'Everything that waits for a price, to list and to cancel.'

export const contract = group('outstanding_orders', about, {
  list: read('GET /wallet/outstanding-orders', {
    summary: 'Hooks and limit orders that wait for a price or are executed now',
    mainTool: {
      text: 'Limit orders, stop-losses and take-profits on tokens of wallets that still wait and could trade by themselves. Take `perp_orders` for those at the venue.',
    },
    description:
      'Use it to see everything that may still trade by itself, of every kind, newest first. Exits at the venue are in `perp_orders` and `spot_venue_orders`. Next: `outstanding_orders_cancel`.',
    access: 'read',
    output: T.Object(
      { outstanding_orders: T.Array(OutstandingOrder), total: T.Integer() },
      { $id: 'OutstandingOrdersResponse' },
    ),
  }),
  cancel: act('DELETE /wallet/outstanding-orders', {
    summary: 'Cancel hooks and limit orders, one or all',
    mainTool: {
      text: 'Cancels or removes limit orders, stop-losses and take-profits on tokens of wallets: those named, or all. Take `perp_cancel` for orders at the perp venue.',
      fields: { outstanding_order_ids: 'Left out: all' },
    },
    description:
      'Use it to take orders back. Without `outstanding_order_ids`, in the body or as a query, it cancels all of them. An order whose swap is signed is listed under `not_cancellable`; one that fired and still waits is cancelled with its task, and arms the others of its group again, unless they are cancelled too. One that is cancelled already counts as cancelled. Next: `outstanding_orders_list`.',
    access: 'trade',
    repeatable: true,
    rate: 'exit',
    body: CancelRequest,
    bodyInQuery: true,
    output: T.Object(
      {
        cancelled: T.Array(Text),
        not_found: T.Array(Text),
        not_cancellable: T.Array(T.Object({ id: Text, status: Text })),
      },
      { $id: 'CancelledOutstandingOrders' },
    ),
  }),
})

export type CancelInput = InputOf<(typeof contract.entries)['cancel']>
