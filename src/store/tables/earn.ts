export type EarnAccountRow = {
  user_id: string
  chain_id: string
  vault: string
  state: 'active' | 'frozen'
  settled_block: bigint
  settled_at: Date | null
  version: bigint
  mismatch: string | null
  mismatch_since: Date | null
  compared_at: Date | null
  next_at: Date
  reason: string | null
  frozen_since: Date | null
  frozen_by: string | null
  unfrozen_by: string | null
}
export type EarnTables = {
  earn_position: {
    id: string
    user_id: string
    chain_id: string
    vault: string
    created_at: Date
    cost_units: string
    counted_shares: string
  }
  earn_account: EarnAccountRow
  share_price: { chain_id: string; vault: string; at: Date; block: bigint; price: string }
}
