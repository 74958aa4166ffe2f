export type CreditPaymentRow = {
  chain_id: string
  tx_hash: string
  log_index: number
  block: bigint
  payer: string
  token: string
  amount: string
  task_id: string | null
  state: 'pending' | 'credited' | 'stray' | 'resolved'
  reason: string | null
  found_at: Date
  resolved_at: Date | null
  resolved_by: string | null
  resolution: string | null
}
export type CreditTables = {
  credit_payment: CreditPaymentRow
  credit_payment_scan: { chain_id: string; till: string; next_block: bigint; scanned_at: Date }
}
