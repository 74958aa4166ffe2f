export type EarnTables = {
  earn_position: {
    id: string
    user_id: string
    chain_id: string
    vault: string
    number: number
    created_at: Date
  }
  share_price: { chain_id: string; vault: string; at: Date; block: bigint; price: string }
}
