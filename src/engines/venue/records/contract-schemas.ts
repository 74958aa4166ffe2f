import { setColumns } from '#kernel/contract/columns.ts'
import * as T from '#kernel/contract/schema.ts'
import {
  Dec,
  DecIn,
  DecOrNull,
  Nullable,
  OneOf,
  Text,
  TextOrNull,
  Time,
  TimeOrNull,
} from '#kernel/contract/wire-types.ts'

export const readFaults = ['unavailable', 'upstream_timeout', 'upstream_changed']
/** The range of sizes and prices: above any market value, and safe for the arithmetic. */
export const positive = { exclusiveMinimum: 0, maximum: 1_000_000_000_000 }
export const Slippage = T.Optional(
  DecIn({
    ...positive,
    places: 4,
    maximum: 10,
    description: 'Largest distance of the fill from the middle price, in percent; default 0.5',
    example: 0.5,
  }),
)
export const Price = (description: string) =>
  T.Optional(
    DecIn({ ...positive, description: `${description}; USD for one unit of the asset`, example: '98000' }),
  )
export const VenueId = T.Unsafe<string | number>({
  type: ['string', 'integer'],
  minLength: 1,
  maxLength: 64,
  description: 'Order id, as the list of orders shows it',
})
/** Returns the schema of a cancel request; `asset` is the section's schema of a market. */
export const cancelRequest = (asset: T.TSchema, options: T.TObjectOptions) =>
  T.Object(
    {
      order_id: T.Optional(VenueId),
      oid: T.Optional(VenueId),
      asset: T.Optional(asset as typeof Text),
    },
    options,
  )
export const VenueOrder = T.Object(
  {
    order_id: Text,
    oid: Text,
    cloid: TextOrNull,
    asset: Text,
    side: OneOf(['buy', 'sell'] as const),
    size: Dec,
    orig_size: Dec,
    limit_price: Dec,
    order_type: Text,
    tif: TextOrNull,
    reduce_only: T.Boolean(),
    is_trigger: T.Boolean(),
    trigger_price: DecOrNull,
    trigger_condition: TextOrNull,
    tpsl: Nullable(OneOf(['tp', 'sl'] as const)),
    is_position_tpsl: T.Boolean(),
    parent_order_id: TextOrNull,
    status: OneOf(['open', 'waiting'] as const, {
      description: '`waiting`: a protective order that is inactive until its entry is filled',
    }),
    task_id: TextOrNull,
    timestamp: Time,
  },
  { $id: 'VenueOrder' },
)
setColumns(VenueOrder, ['order_id', 'asset', 'side', 'size', 'limit_price', 'trigger_price', 'status'])

const HistoryLimit = T.Optional(T.Integer({ minimum: 1, maximum: 100, default: 50 }))
const Before = ({ pattern, example }: { pattern: string; example: string }) =>
  T.Optional(
    T.String({
      maxLength: 64,
      pattern,
      examples: [example],
      description: 'Returns older entries only: `next_before` of the previous page',
    }),
  )
const NextBefore = T.Union([T.String(), T.Null()], {
  description: 'Cursor of the next page; null on the last',
})
const pnl = {
  realized_pnl_gross_usd: T.Union([Dec, T.Null()], {
    description: 'Realised profit in USD before fees, as the venue counts it; null where it was not recorded',
  }),
  realized_pnl_net_usd: T.Union([Dec, T.Null()], {
    description: 'Realised profit in USD after fees; null where a fee was taken in another token',
  }),
}
const Leg = T.Union([T.String(), T.Null()], {
  description: 'Role of the order in its task: entry, tp, sl or close',
})

export const fillsQuery = (asset: T.TSchema) =>
  T.Object({
    asset: T.Optional(asset as typeof Text),
    before: Before({ pattern: '^[0-9]{1,15}-[0-9]{1,18}$', example: '1769860800000-42' }),
    limit: HistoryLimit,
  })
export const orderHistoryQuery = (asset: T.TSchema) =>
  T.Object({
    asset: T.Optional(asset as typeof Text),
    before: Before({
      pattern: '^[0-9]{1,15}-0x[0-9a-f]{32}$',
      example: '1769860800000-0x0198c5f66a0e7c1e9d435f0f6c7a2b11',
    }),
    limit: HistoryLimit,
  })

export const FillsPage = T.Object(
  {
    fills: T.Array(
      T.Object(
        {
          fill_id: Text,
          order_id: Text,
          cloid: TextOrNull,
          task_id: TextOrNull,
          leg: Leg,
          asset: Text,
          side: OneOf(['buy', 'sell'] as const),
          size: Dec,
          price: Dec,
          fee: Dec,
          fee_token: Text,
          ...pnl,
          cause: OneOf(['order', 'liquidation', 'venue'] as const),
          at: Time,
        },
        { $id: 'VenueFill' },
      ),
    ),
    next_before: NextBefore,
  },
  { $id: 'VenueFillsPage' },
)
setColumns(FillsPage.properties.fills.items, [
  'at',
  'asset',
  'side',
  'size',
  'price',
  'realized_pnl_net_usd',
  'fee',
])
export const OrderHistoryPage = T.Object(
  {
    orders: T.Array(
      T.Object(
        {
          order_id: TextOrNull,
          cloid: Text,
          task_id: Text,
          leg: Text,
          asset: Text,
          side: Nullable(OneOf(['buy', 'sell'] as const)),
          size: DecOrNull,
          limit_price: DecOrNull,
          trigger_price: DecOrNull,
          reduce_only: Nullable(T.Boolean()),
          status: OneOf(['open', 'filled', 'cancelled', 'rejected', 'unknown'] as const),
          venue_status: T.Union([T.String(), T.Null()], {
            description: 'Final status of the order as reported by the venue',
          }),
          filled_size: Dec,
          avg_price: DecOrNull,
          fee: Dec,
          fee_token: TextOrNull,
          ...pnl,
          placed_at: Time,
          ended_at: TimeOrNull,
        },
        { $id: 'VenueOrderRecord' },
      ),
    ),
    next_before: NextBefore,
  },
  { $id: 'VenueOrderHistoryPage' },
)
setColumns(OrderHistoryPage.properties.orders.items, [
  'placed_at',
  'asset',
  'side',
  'size',
  'status',
  'avg_price',
  'realized_pnl_net_usd',
])
