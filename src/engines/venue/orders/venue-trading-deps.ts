import type { TradingKeys } from '#engines/custody/trading-keys.ts'
import type { AddressOf } from '#engines/custody/wallet-store.ts'
import type { Clock } from '#kernel/clock.ts'
import type { Policy } from '#kernel/task/signer.ts'
import type { Queryable } from '#store/query.ts'
import type { AccountViews } from '#upstreams/hyperliquid/account-view-cache.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import type { Grid } from '#upstreams/hyperliquid/rounding.ts'
import type { Pricing, Sizing } from './order-checks.ts'
import type { Rejections } from './order-failures.ts'
import type { PlaceOrderDeps } from './place-order-deps.ts'
import type { SignedActions } from './signed-action.ts'

export type VenueTrading = {
  db: Queryable
  clock: Clock
  venue: Hyperliquid
  views: AccountViews
  readStreamedOrder: PlaceOrderDeps['readStreamedOrder']
  /** Returns prices from the stream, or undefined while they are stale. */
  streamedMids: () => ReadonlyMap<string, string> | undefined
  chainId: string
  signedActions: SignedActions
  pricing: Pricing & Sizing & { minPrice(usd: string, size: string, grid: Grid): string }
  rejections: Rejections
  tradingKeys: TradingKeys
  policy: Policy
  evmAddressOf: AddressOf
  /** Returns the user's EVM address for views. For some minutes after a call, each commit of the user refreshes these. */
  viewedAccountOf: (userId: string) => Promise<string>
}
