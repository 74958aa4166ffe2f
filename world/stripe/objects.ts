/** The objects of the payment provider, in the form in which its API shows them. References are ids. */

type Metadata = Record<string, string>
type Base<Name extends string> = { id: string; object: Name; created: number; livemode: false }

export type Price = Base<'price'> & {
  active: boolean
  currency: string
  product: string
  type: 'recurring'
  unit_amount: number
  recurring: { interval: 'month' | 'year'; interval_count: number; usage_type: 'licensed' }
  metadata: Metadata
}
export type Product = Base<'product'> & { active: boolean; name: string; metadata: Metadata }
export type Customer = Base<'customer'> & {
  email: string | null
  metadata: Metadata
  /** Number of the card that the customer pays with; only the world sees it. */
  card: string
  /** Where the events about this customer go, unless endpoints are registered. */
  origin: string
}
export type Session = Base<'checkout.session'> & {
  mode: 'subscription'
  status: 'open' | 'complete' | 'expired'
  payment_status: 'paid' | 'unpaid' | 'no_payment_required'
  url: string | null
  success_url: string
  cancel_url: string | null
  client_reference_id: string | null
  customer: string | null
  customer_email: string | null
  subscription: string | null
  invoice: string | null
  currency: string
  amount_total: number
  amount_subtotal: number
  expires_at: number
  metadata: Metadata
  /** What is bought, and what the subscription inherits; the API shows neither without an expansion. */
  price: string
  subscription_metadata: Metadata
}
export type Item = {
  id: string
  object: 'subscription_item'
  created: number
  subscription: string
  quantity: number
  price: Price
  current_period_start: number
  current_period_end: number
  metadata: Metadata
}
export type SubscriptionStatus = 'active' | 'past_due' | 'canceled'
export type Subscription = Base<'subscription'> & {
  customer: string
  status: SubscriptionStatus
  items: { object: 'list'; data: [Item]; has_more: false; total_count: 1; url: string }
  cancel_at_period_end: boolean
  cancel_at: number | null
  canceled_at: number | null
  ended_at: number | null
  start_date: number
  billing_cycle_anchor: number
  collection_method: 'charge_automatically'
  currency: string
  latest_invoice: string | null
  schedule: string | null
  metadata: Metadata
}
/** A smaller price that a subscription takes on with its next period. */
export type Schedule = Base<'subscription_schedule'> & {
  subscription: string | null
  customer: string
  status: 'active' | 'completed' | 'released'
  released_subscription: string | null
  metadata: Metadata
  /** Only the world sees it. */
  price: string
}
export type Line = {
  id: string
  object: 'line_item'
  amount: number
  currency: string
  description: string
  quantity: number
  period: { start: number; end: number }
  pricing: {
    type: 'price_details'
    price_details: { price: string; product: string }
    unit_amount_decimal: string
  }
  parent: {
    type: 'subscription_item_details'
    subscription_item_details: { subscription: string; subscription_item: string; proration: boolean }
  }
}
export type BillingReason = 'subscription_create' | 'subscription_cycle' | 'subscription_update'
export type Invoice = Base<'invoice'> & {
  customer: string
  status: 'open' | 'paid' | 'uncollectible'
  billing_reason: BillingReason
  currency: string
  total: number
  subtotal: number
  amount_due: number
  amount_paid: number
  amount_remaining: number
  attempt_count: number
  attempted: boolean
  next_payment_attempt: number | null
  hosted_invoice_url: string
  period_start: number
  period_end: number
  status_transitions: { finalized_at: number; paid_at: number | null; voided_at: null }
  lines: { object: 'list'; data: Line[]; has_more: false; url: string }
  parent: {
    type: 'subscription_details'
    subscription_details: { subscription: string; metadata: Metadata }
  }
  metadata: Metadata
  /** The payment that paid it, or the last one that failed; shown as `payments` where that is expanded. */
  payment_intent: string | null
}
export type PaymentIntent = Base<'payment_intent'> & {
  amount: number
  amount_received: number
  currency: string
  customer: string
  status: 'succeeded' | 'requires_payment_method'
  latest_charge: string
  metadata: Metadata
}
export type Charge = Base<'charge'> & {
  amount: number
  amount_captured: number
  amount_refunded: number
  currency: string
  customer: string
  payment_intent: string
  paid: boolean
  captured: boolean
  refunded: boolean
  disputed: boolean
  status: 'succeeded' | 'failed'
  failure_code: string | null
  metadata: Metadata
}
export type Refund = Base<'refund'> & {
  amount: number
  currency: string
  charge: string
  payment_intent: string
  reason: string | null
  status: 'succeeded'
  metadata: Metadata
}
export type Dispute = Base<'dispute'> & {
  amount: number
  currency: string
  charge: string
  payment_intent: string
  reason: 'fraudulent'
  status: 'needs_response' | 'won' | 'lost'
  metadata: Metadata
}
export type PortalSession = Base<'billing_portal.session'> & {
  customer: string
  return_url: string | null
  url: string
  configuration: string
  flow: {
    type: 'subscription_update_confirm'
    after_completion: { type: 'redirect' | 'portal_homepage'; redirect: { return_url: string } | null }
    subscription_update_confirm: {
      subscription: string
      items: { id: string; price: string; quantity: number }[]
      discounts: null
    }
  }
  /** Only the world sees these. */
  used: boolean
  expires_at: number
}
export type StripeEvent = Base<'event'> & {
  api_version: string
  type: string
  data: { object: unknown }
  pending_webhooks: number
  request: { id: string | null; idempotency_key: string | null }
}
export type Endpoint = Base<'webhook_endpoint'> & {
  url: string
  enabled_events: string[]
  status: 'enabled'
  secret: string
}

export type Objects = {
  price: Price
  product: Product
  customer: Customer
  'checkout.session': Session
  subscription: Subscription
  subscription_schedule: Schedule
  invoice: Invoice
  payment_intent: PaymentIntent
  charge: Charge
  refund: Refund
  dispute: Dispute
  'billing_portal.session': PortalSession
  event: StripeEvent
  webhook_endpoint: Endpoint
}
export type ObjectName = keyof Objects
export type AnyObject = Objects[ObjectName]

export const prefixes: Record<ObjectName, string> = {
  price: 'price',
  product: 'prod',
  customer: 'cus',
  'checkout.session': 'cs_test',
  subscription: 'sub',
  subscription_schedule: 'sub_sched',
  invoice: 'in',
  payment_intent: 'pi',
  charge: 'ch',
  refund: 're',
  dispute: 'dp',
  'billing_portal.session': 'bps',
  event: 'evt',
  webhook_endpoint: 'we',
}

/** Fields that only the world sees. */
const hidden: Partial<Record<ObjectName, readonly string[]>> = {
  customer: ['card', 'origin'],
  'checkout.session': ['price', 'subscription_metadata'],
  subscription_schedule: ['price'],
  invoice: ['payment_intent'],
  'billing_portal.session': ['used', 'expires_at'],
  webhook_endpoint: ['secret'],
}

/** Returns a copy of the object as the API shows it. */
export function shown(object: AnyObject): Record<string, unknown> {
  const copy = structuredClone(object) as unknown as Record<string, unknown>
  for (const name of hidden[object.object] ?? []) delete copy[name]
  return copy
}
