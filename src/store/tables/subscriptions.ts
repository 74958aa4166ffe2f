export type PlanCheckoutRow = {
  id: string
  user_id: string
  intent: string
  price_id: string
  mode: 'new' | 'change'
  page: number
  expires_at: Date
  session_id: string | null
  url: string | null
  state: 'opening' | 'open' | 'complete' | 'expired'
  created_at: Date
}
export type PlanSubscriptionRow = {
  id: string
  user_id: string
  customer_id: string
  item_id: string
  price_id: string
  status: string
  role: 'main' | 'duplicate'
  current_period_end: Date
  cancel_at_period_end: boolean
  created_at: Date
  ended_at: Date | null
  reading: bigint
}
export type PlanInvoiceRow = {
  id: string
  subscription_id: string
  user_id: string
  status: string
  reason: string
  price_id: string
  billed_cents: bigint
  price_cents: bigint
  currency: string
  total_cents: bigint
  paid_cents: bigint
  refunded_cents: bigint
  dispute: 'open' | 'lost' | 'won' | null
  pay_url: string | null
  payment_intent: string | null
  created_at: Date
  paid_at: Date | null
  period_end: Date
  granted: bigint | null
  taken_back: bigint
  changes: number
  expires_at: Date | null
}
export type PlanCreditChangeRow = {
  id: string
  user_id: string
  invoice_id: string
  credits: bigint
  reason: 'granted' | 'refunded' | 'refund_failed' | 'disputed' | 'dispute_won'
  at: Date
}
export type PlanWatchRow = {
  id: string
  user_id: string
  next_at: Date | null
  every_seconds: number | null
  eager_until: Date | null
  queued_at: Date | null
}
export type SubscriptionTables = {
  plan_checkout: PlanCheckoutRow
  plan_subscription: PlanSubscriptionRow
  plan_invoice: PlanInvoiceRow
  plan_credit_change: PlanCreditChangeRow
  plan_watch: PlanWatchRow
  plan_event: { id: string; type: string; received_at: Date }
}
