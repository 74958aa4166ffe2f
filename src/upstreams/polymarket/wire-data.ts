import * as T from '#kernel/contract/schema.ts'

/** The public record of wallets: the second form first, and the older lists where the second one is missing. */

const text = T.String()
const number = T.Union([T.String(), T.Number()])
const maybe = <S extends T.TSchema>(schema: S) => T.Optional(T.Union([schema, T.Null()]))

const rows = T.Array(T.Unsafe<unknown>({}))
/** https://docs.polymarket.com/api-reference/data-api-v2 */
export const DataPage = T.Object({
  data: rows,
  pagination: T.Object({ has_more: maybe(T.Boolean()), next_cursor: maybe(text) }),
})
export const DataList = rows

/** https://docs.polymarket.com/api-reference/core/get-current-positions-for-a-user */
export const PositionV2 = T.Object({
  token_id: text,
  condition_id: text,
  current_size: number,
  avg_price: number,
  entry_cost_usdc: maybe(number),
  current_price: number,
  current_value: number,
  realized_pnl: maybe(number),
  redeemable: maybe(T.Boolean()),
  mergeable: maybe(T.Boolean()),
  negative_risk: maybe(T.Boolean()),
  title: maybe(text),
  slug: maybe(text),
  event_slug: maybe(text),
  outcome: maybe(text),
  end_date: maybe(text),
})
export const PositionV1 = T.Object({
  asset: text,
  conditionId: text,
  size: number,
  avgPrice: number,
  initialValue: maybe(number),
  curPrice: number,
  currentValue: number,
  realizedPnl: maybe(number),
  redeemable: maybe(T.Boolean()),
  mergeable: maybe(T.Boolean()),
  negativeRisk: maybe(T.Boolean()),
  title: maybe(text),
  slug: maybe(text),
  eventSlug: maybe(text),
  outcome: maybe(text),
  endDate: maybe(text),
})

/** https://docs.polymarket.com/api-reference/core/get-user-activity */
export const ActivityV2 = T.Object({
  type: text,
  timestamp: number,
  condition_id: maybe(text),
  token_id: maybe(text),
  side: maybe(text),
  size: number,
  usdc_size: number,
  price: maybe(number),
  outcome: maybe(text),
  title: maybe(text),
  transaction_hash: maybe(text),
})
export const ActivityV1 = T.Object({
  type: text,
  timestamp: number,
  conditionId: maybe(text),
  asset: maybe(text),
  side: maybe(text),
  size: number,
  usdcSize: number,
  price: maybe(number),
  outcome: maybe(text),
  title: maybe(text),
  transactionHash: maybe(text),
})

/** https://docs.polymarket.com/api-reference/bridge/create-deposit-addresses */
export const BridgeAddresses = T.Object({ address: T.Object({ evm: maybe(text), svm: maybe(text) }) })
