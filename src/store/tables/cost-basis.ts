export type OrderTables = {
  cost_basis: {
    user_id: string
    chain_id: string
    token: string
    units: string
    cost: string
    realized: string | null
    updated_at: Date
  }
}
