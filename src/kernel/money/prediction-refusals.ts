/** Why a venue refused an order for good: nothing of it exists there, and the same body will not be accepted. */
export const orderRefusals = [
  'insufficient_balance',
  /** The venue counts orders of the past against the balance, or has not read the chain yet. */
  'venue_balance_lag',
  'post_only_crosses',
  'not_filled',
  'no_match',
  'tick_invalid',
  'below_minimum',
  'price_invalid',
  'expiration_invalid',
  'market_not_ready',
  'market_closed',
  'unknown_outcome',
  'invalid_signature',
  /** The order was signed for another version of the exchange. */
  'version_mismatch',
  /** The key belongs to another owner, or the wallet has no code yet. */
  'wallet_not_ready',
  'wallet_not_allowed',
  'key_invalid',
  'geoblocked',
  'closed_only',
  'banned',
  'venue_rejected',
] as const
export type OrderRefusal = (typeof orderRefusals)[number]

/** Why the relayer refused an action for good. */
export const relayRefusals = [
  'call_blocked',
  'nonce_stale',
  'invalid_signature',
  'not_authorized',
  'expired',
  'venue_rejected',
] as const
export type RelayRefusal = (typeof relayRefusals)[number]

/** What became of a request that may have changed something at the venue. */
export type Unsettled =
  /** The request was certainly not sent. */
  | { type: 'not_sent' }
  /** The request may have arrived. Look it up before the same body is sent again. */
  | {
      type: 'unknown'
      message: string
      /** The venue refused because it has the same already: an earlier send arrived. */
      isDuplicate?: boolean
    }
  /** The venue refused for now and did nothing; `retryAfterMs` is null if it named no time. */
  | { type: 'later'; reason: LaterReason; message: string; retryAfterMs: number | null }

export type LaterReason =
  | 'rate_limited'
  | 'restarting'
  | 'post_only'
  | 'cancel_only'
  | 'disabled'
  | 'wallet_busy'
  | 'quota'
