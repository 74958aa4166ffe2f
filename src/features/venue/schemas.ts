import * as T from 'typebox'
import { Dec, DecIn, DecOrNull, Nullable, OneOf, Text, TextOrNull, Time } from '#kernel/scalars.ts'

/** What both sections of the venue take and tell in the same form. */

/** Far beyond any market, and far within what the arithmetic of the house can hold. */
export const positive = { exclusiveMinimum: 0, maximum: 1_000_000_000_000 }
export const Slippage = T.Optional(
  DecIn({
    ...positive,
    places: 4,
    maximum: 10,
    description: 'Most distance from the middle price, in percent; default 0.5',
    example: 0.5,
  }),
)
export const Price = (description: string) =>
  T.Optional(DecIn({ ...positive, description, example: '98000' }))
export const VenueId = T.Unsafe<string | number>({
  type: ['string', 'integer'],
  minLength: 1,
  maxLength: 64,
  description: 'Order id of the venue',
})
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
    task_id: TextOrNull,
    timestamp: Time,
  },
  { $id: 'VenueOrder' },
)
