import type { BillingReason, Invoice, Line, Price, Subscription } from './objects.ts'
import type { Shop } from './shop.ts'

/** Invoices and their lines. */

type NewLine = { amount: number; period: Line['period']; isProration: boolean }

export const lineOf = (
  { store }: Pick<Shop, 'store'>,
  subscription: Subscription,
  price: Price,
  { amount, period, isProration }: NewLine,
): Line => ({
  id: `il_${store.newId('invoice').slice(3)}`,
  object: 'line_item',
  amount,
  currency: price.currency,
  description: store.get('product', price.product).name,
  quantity: 1,
  period,
  pricing: {
    type: 'price_details',
    price_details: { price: price.id, product: price.product },
    unit_amount_decimal: String(isProration ? amount : price.unit_amount),
  },
  parent: {
    type: 'subscription_item_details',
    subscription_item_details: {
      subscription: subscription.id,
      subscription_item: subscription.items.data[0].id,
      proration: isProration,
    },
  },
})

/** Makes an invoice, which exists for others once it is announced. */
export function newInvoice(
  shop: Shop,
  subscription: Subscription,
  reason: BillingReason,
  { lines, period }: { lines: Line[]; period: Line['period'] },
): Invoice {
  const id = shop.store.newId('invoice')
  const total = lines.reduce((sum, { amount }) => sum + amount, 0)
  const invoice: Invoice = {
    ...shop.base(),
    id,
    object: 'invoice',
    customer: subscription.customer,
    status: 'open',
    billing_reason: reason,
    currency: subscription.currency,
    total,
    subtotal: total,
    amount_due: total,
    amount_paid: 0,
    amount_remaining: total,
    attempt_count: 0,
    attempted: false,
    next_payment_attempt: null,
    hosted_invoice_url: `${shop.hostUrl()}/i/${id}`,
    period_start: period.start,
    period_end: period.end,
    status_transitions: { finalized_at: shop.seconds(), paid_at: null, voided_at: null },
    lines: { object: 'list', data: lines, has_more: false, url: `/v1/invoices/${id}/lines` },
    parent: {
      type: 'subscription_details',
      subscription_details: { subscription: subscription.id, metadata: subscription.metadata },
    },
    metadata: {},
    payment_intent: null,
  }
  return invoice
}

export function announceInvoice(shop: Shop, invoice: Invoice): void {
  shop.store.add(invoice)
  const origin = shop.originOf(invoice.customer)
  shop.emit('invoice.created', { ...invoice, status: 'open' as const }, origin)
  shop.emit('invoice.finalized', { ...invoice, status: 'open' }, origin)
}
