import type { TradingKeys } from '#features/wallets/trading-keys.ts'

/** The keys that the venue lets trade for a user's account. */
export type Agents = TradingKeys

/** A key is replaced this long before it expires. */
export const renewAheadMs = 14 * 86_400_000
