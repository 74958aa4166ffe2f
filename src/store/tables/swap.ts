export type SwapTables = {
  swap_quote: {
    id: string
    user_id: string
    created_at: Date
    expires_at: Date
    request: object
    route: object
  }
  swap_quote_use: { quote_id: string; claim: string; at: Date }
  claimed_arrival: {
    chain_id: string
    tx_hash: string
    account: string
    part: string
    claimant: string
    at: Date
  }
}
