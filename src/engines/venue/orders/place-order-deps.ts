import type { CashSource } from '#engines/venue/records/cash-reconciliation.ts'
import type { EndResult } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { VenueStreams } from '#upstreams/hyperliquid/stream.ts'
import type { Pricing } from './order-checks.ts'
import type { OrderTaskData } from './order-task.ts'
import type { VenueDriverDeps } from './venue-effect.ts'

export type OrderStep = 'begin' | 'transferred' | 'leverage' | 'order' | 'confirm'
export type OrderEnd = EndResult<Partial<OrderTaskData>>

export type PlaceOrderDeps = VenueDriverDeps & {
  db: Queryable
  venue: Pick<
    Hyperliquid,
    | 'order'
    | 'openOrders'
    | 'fillsSince'
    | 'recentFills'
    | 'account'
    | 'spotBalances'
    | 'timeMs'
    | 'passedMs'
    | 'marketSettings'
    | 'ledgerSince'
  > &
    CashSource
  /** Reads the stream's update of an order, if the account is subscribed. */
  readStreamedOrder: VenueStreams['readOrder']
  pricing: Pricing
}
