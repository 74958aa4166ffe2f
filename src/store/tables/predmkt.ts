import type { Generated, Selectable } from 'kysely'
import type { JsonObject } from '#kernel/wire/json.ts'

type PredictionAccount = {
  user_id: string
  venue: string
  owner_address: string
  wallet_address: string
  wallet_kind: 'deposit_wallet' | 'safe' | 'eoa'
  v1_ready_at: Generated<Date | null>
  v2_ready_at: Generated<Date | null>
  relayer_task_id: Generated<string | null>
  waiting_until: Generated<Date | null>
  trades_through: Generated<Date | null>
  sync_at: Generated<Date | null>
  shares_read_at: Generated<Date | null>
  created_at: Date
}
type PredictionKey = {
  id: string
  user_id: string
  venue: string
  owner_address: string
  ciphertext: Uint8Array
  wrapped_dek: Uint8Array
  kek_id: string
  created_at: Date
  revoked_at: Generated<Date | null>
}
type PredictionOrder = {
  order_id: string
  user_id: string
  venue: string
  task_id: string
  leg: 'order' | 'tp' | 'sl'
  entry_order_id: string | null
  market_id: string
  outcome_id: string
  outcome: string
  title: string
  protocol: string
  neg_risk: boolean
  side: 'buy' | 'sell'
  order_type: 'gtc' | 'gtd' | 'fok' | 'fak'
  price: bigint
  size: string
  making: string
  taking: string
  matched: Generated<string>
  fee: JsonObject | null
  status: PredictionOrderStatus
  rests: Generated<boolean>
  expires_at: Date | null
  at: Date
  ended_at: Generated<Date | null>
  released: Generated<string>
  short_since: Generated<Date | null>
  followed: Generated<boolean>
  missing_since: Generated<Date | null>
  misses: Generated<number>
  cancel_asked: Generated<boolean>
}
export type PredictionOrderStatus =
  | 'signed'
  | 'live'
  | 'delayed'
  | 'matched'
  | 'cancelled'
  | 'expired'
  | 'unmatched'
  | 'rejected'
  | 'resolved'
type PredictionFill = {
  trade_id: string
  order_id: string
  user_id: string
  venue: string
  market_id: string
  outcome_id: string
  outcome: string
  title: string
  protocol: string
  side: 'buy' | 'sell'
  role: 'maker' | 'taker'
  price: bigint
  size: string
  cash: string
  fee: string
  settlement: 'matched_not_broadcasted' | 'matched' | 'mined' | 'confirmed' | 'retrying' | 'failed'
  tx_hash: string | null
  matched_at: Date
  updated_at: Date
  held: Generated<string | null>
  held_cost: Generated<string | null>
  realized: Generated<string | null>
}
type PredictionExit = {
  id: string
  user_id: string
  venue: string
  entry_task_id: string
  entry_order_id: string
  leg: 'tp' | 'sl'
  market_id: string
  outcome_id: string
  trigger_price: bigint | null
  trigger_percentage: string | null
  state: 'waiting' | 'resting' | 'watched' | 'executing' | 'filled' | 'cancelled' | 'failed'
  order_id: Generated<string | null>
  exit_task_id: Generated<string | null>
  error: Generated<string | null>
  attempts: Generated<number>
  created_at: Date
  updated_at: Date
}
type PredictionRedemption = {
  user_id: string
  venue: string
  market_id: string
  outcome_id: string
  title: string
  shares: string
  payout: string
  tx_hash: string
  redeemed_by: 'us' | 'venue'
  task_id: string | null
  at: Date
}
type PredictionTransfer = {
  task_id: string
  user_id: string
  venue: string
  type: 'deposit' | 'withdrawal'
  amount: string
  tx_hash: string | null
  at: Date
}
type PredictionRateBudget = {
  venue: string
  signer: string
  kind: 'order' | 'cancel'
  remaining: number | null
  reset_at: Date | null
  blocked_until: Date | null
  updated_at: Date
}
type PredictionVenueMode = {
  venue: string
  mode: 'restarting' | 'post_only' | 'cancel_only'
  until: Date | null
  seen_at: Date
}
type PredictionQuote = {
  id: string
  user_id: string
  venue: string
  outcome_id: string
  side: 'buy' | 'sell'
  worst_price: bigint
  size: string
  all_in: string
  expires_at: Date
}

export type PredictionAccountRow = Selectable<PredictionAccount>
export type PredictionKeyRow = Selectable<PredictionKey>
export type PredictionOrderRow = Selectable<PredictionOrder>
export type PredictionFillRow = Selectable<PredictionFill>
export type PredictionExitRow = Selectable<PredictionExit>
export type PredictionRedemptionRow = Selectable<PredictionRedemption>
export type PredictionVenueModeRow = Selectable<PredictionVenueMode>
export type PredictionTransferRow = Selectable<PredictionTransfer>

export type PredictionTables = {
  prediction_account: PredictionAccount
  prediction_key: PredictionKey
  prediction_order: PredictionOrder
  prediction_fill: PredictionFill
  prediction_exit: PredictionExit
  prediction_redemption: PredictionRedemption
  prediction_transfer: PredictionTransfer
  prediction_rate_budget: PredictionRateBudget
  prediction_venue_mode: PredictionVenueMode
  prediction_quote: PredictionQuote
}
