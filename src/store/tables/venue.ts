import type { Generated, Selectable } from 'kysely'

type AgentWallet = {
  id: string
  user_id: string
  venue: string
  address: string
  ciphertext: Uint8Array
  wrapped_dek: Uint8Array
  kek_id: string
  version: number
  created_at: Date
  approved_at: Generated<Date | null>
  expires_at: Generated<Date | null>
  retired_at: Generated<Date | null>
  is_registered: Generated<boolean>
}

type VenueAccount = {
  user_id: string
  venue: string
  account: string
  state: Generated<'new' | 'active' | 'frozen' | 'unfreezing'>
  checks_balances: Generated<boolean>
  baseline_at_ms: Generated<bigint>
  reconciled_through_ms: Generated<bigint>
  mismatch: string | null
  mismatch_since: Date | null
  reason: string | null
  frozen_since: Date | null
  unfrozen_by: string | null
  active_at: Date
  checked_at: Date | null
  next_at: Date
  owner: string | null
  lease_until: Date | null
}
type VenueFill = {
  user_id: string
  venue: string
  trade_id: bigint
  order_id: bigint
  cloid: string | null
  symbol: string
  base: string | null
  quote: string | null
  signed_size: string
  price: string
  fee: string
  fee_token: string
  cause: 'order' | 'liquidation' | 'venue'
  at_ms: bigint
  realized_pnl: Generated<string | null>
  tx_hash: Generated<string | null>
}

export type VenueAccountRow = Selectable<VenueAccount>
export type AgentWalletRow = Selectable<AgentWallet>

export type VenueTables = {
  agent_wallet: AgentWallet
  venue_order: {
    cloid: string
    venue: string
    user_id: string
    task_id: string
    leg: string
    symbol: string
    at: Date
    status: Generated<string | null>
    ended_at: Generated<Date | null>
    market: Generated<'perp' | 'spot' | null>
    is_buy: Generated<boolean | null>
    size: Generated<string | null>
    price: Generated<string | null>
    trigger_price: Generated<string | null>
    reduce_only: Generated<boolean | null>
  }
  venue_account: VenueAccount
  venue_baseline: { user_id: string; venue: string; balance_key: string; amount: string }
  venue_own_part: { user_id: string; venue: string; balance_key: string; strategy_id: string; amount: string }
  venue_fill: VenueFill
  venue_ledger_entry: {
    user_id: string
    venue: string
    key: string
    kind: string
    balance_key: string | null
    amount: string | null
    reason: string | null
    at_ms: bigint
  }
  claimed_transfer: { venue: string; key: string; user_id: string; task_id: string; at: Date }
}
