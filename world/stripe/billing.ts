import { announceInvoice, lineOf, newInvoice } from './invoices.ts'
import type { Customer, Invoice, PortalSession, Price, Session, Subscription } from './objects.ts'
import { chargeInvoice, decide, disputeIfAsked, markPaid, type PaymentResult } from './payments.ts'
import { periodEnd, unusedPart } from './periods.ts'
import type { Shop } from './shop.ts'

/** What a payer does on the pages: buys, changes a plan, and pays an invoice that was not paid. */

function newSubscription(shop: Shop, session: Session, customer: Customer): Subscription {
  const price = shop.store.get('price', session.price)
  const [id, now] = [shop.store.newId('subscription'), shop.seconds()]
  return {
    ...shop.base(),
    id,
    object: 'subscription',
    customer: customer.id,
    status: 'active',
    items: {
      object: 'list',
      data: [
        {
          id: `si_${id.slice(4)}`,
          object: 'subscription_item',
          created: now,
          subscription: id,
          quantity: 1,
          price,
          current_period_start: now,
          current_period_end: periodEnd(now, price.recurring.interval, now),
          metadata: {},
        },
      ],
      has_more: false,
      total_count: 1,
      url: `/v1/subscription_items?subscription=${id}`,
    },
    cancel_at_period_end: false,
    cancel_at: null,
    canceled_at: null,
    ended_at: null,
    start_date: now,
    billing_cycle_anchor: now,
    collection_method: 'charge_automatically',
    currency: price.currency,
    latest_invoice: null,
    schedule: null,
    metadata: session.subscription_metadata,
  }
}

/** Pays an open session with a card; only a payment that succeeds makes a subscription. */
export function paySession(
  shop: Shop,
  session: Session,
  payer: { card: string; email: string | null; isConfirmed: boolean },
): PaymentResult {
  const result = decide(payer.card, { isPresent: true, isConfirmed: payer.isConfirmed })
  if (!result.paid) return result
  const origin = new URL(session.success_url).origin
  const customer: Customer = shop.store.add({
    ...shop.base(),
    id: shop.store.newId('customer'),
    object: 'customer',
    email: payer.email ?? session.customer_email,
    metadata: {},
    card: payer.card,
    origin,
  })
  shop.emit('customer.created', customer, origin)
  const subscription = newSubscription(shop, session, customer)
  const [item] = subscription.items.data
  const period = { start: item.current_period_start, end: item.current_period_end }
  const lines = [
    lineOf(shop, subscription, item.price, { amount: item.price.unit_amount, period, isProration: false }),
  ]
  const invoice = newInvoice(shop, subscription, 'subscription_create', { lines, period })
  subscription.latest_invoice = invoice.id
  shop.store.add(subscription)
  chargeInvoice(shop, invoice, customer, { isPresent: true, isConfirmed: true })
  shop.emit('customer.subscription.created', subscription, origin)
  announceInvoice(shop, invoice)
  markPaid(shop, invoice)
  session.status = 'complete'
  session.payment_status = 'paid'
  session.customer = customer.id
  session.subscription = subscription.id
  session.invoice = invoice.id
  session.url = null
  shop.emit('checkout.session.completed', session, origin)
  disputeIfAsked(shop, invoice, customer)
  shop.store.save()
  return result
}

/** Pays an open invoice with another card, which later renewals use too. */
export function payInvoice(
  shop: Shop,
  invoice: Invoice,
  { card, isConfirmed }: { card: string; isConfirmed: boolean },
): PaymentResult {
  const customer = shop.store.get('customer', invoice.customer)
  const subscription = shop.store.get('subscription', invoice.parent.subscription_details.subscription)
  const former = customer.card
  customer.card = card
  const result = chargeInvoice(shop, invoice, customer, { isPresent: true, isConfirmed })
  shop.store.save()
  if (!result.paid) {
    customer.card = former
    return result
  }
  markPaid(shop, invoice)
  if (subscription.status === 'past_due') {
    subscription.status = 'active'
    shop.emit('customer.subscription.updated', subscription, customer.origin)
  }
  disputeIfAsked(shop, invoice, customer)
  return result
}

/** The portal's settings by which a change keeps the period, and bills what is left of it. */
export const samePeriod = 'bpc_local_same_period'

type Proration = { price: Price; credit: number; charge: number; total: number; keepsPeriod: boolean }
export function prorationOf(shop: Shop, portal: PortalSession): Proration {
  const { subscription: id, items } = portal.flow.subscription_update_confirm
  const subscription = shop.store.get('subscription', id)
  const [item] = subscription.items.data
  const price = shop.store.get('price', items[0]!.price)
  const period = { start: item.current_period_start, end: item.current_period_end }
  const credit = unusedPart(item.price.unit_amount, period, shop.seconds())
  const keepsPeriod = portal.configuration === samePeriod
  const charge = keepsPeriod ? unusedPart(price.unit_amount, period, shop.seconds()) : price.unit_amount
  return { price, credit, charge, total: charge - credit, keepsPeriod }
}

/** The account schedules a smaller price for the end of the period. */
function scheduleAtEnd(shop: Shop, subscription: Subscription, price: Price): void {
  const former = subscription.schedule && shop.store.get('subscription_schedule', subscription.schedule)
  if (former) former.price = price.id
  else {
    const schedule = shop.store.add({
      ...shop.base(),
      id: shop.store.newId('subscription_schedule'),
      object: 'subscription_schedule',
      subscription: subscription.id,
      customer: subscription.customer,
      status: 'active',
      released_subscription: null,
      metadata: {},
      price: price.id,
    })
    subscription.schedule = schedule.id
  }
  shop.emit('customer.subscription.updated', subscription, shop.originOf(subscription.customer))
  shop.store.save()
}

/** Changes the price of a subscription, whose period begins anew unless it is kept; what is unused is deducted. */
export function confirmUpdate(
  shop: Shop,
  portal: PortalSession,
  { isConfirmed }: { isConfirmed: boolean },
): PaymentResult {
  const subscription = shop.store.get('subscription', portal.flow.subscription_update_confirm.subscription)
  const customer = shop.store.get('customer', subscription.customer)
  const { price, credit, charge, total, keepsPeriod } = prorationOf(shop, portal)
  if (total < 0) {
    scheduleAtEnd(shop, subscription, price)
    portal.used = true
    return { paid: true }
  }
  const [item] = subscription.items.data
  const now = shop.seconds()
  const end = keepsPeriod ? item.current_period_end : periodEnd(now, price.recurring.interval, now)
  const period = { start: now, end }
  const unused = { start: now, end: item.current_period_end }
  const lines = [
    lineOf(shop, subscription, item.price, { amount: -credit, period: unused, isProration: true }),
    lineOf(shop, subscription, price, { amount: charge, period, isProration: keepsPeriod }),
  ]
  const invoice = newInvoice(shop, subscription, 'subscription_update', { lines, period: unused })
  const result = chargeInvoice(shop, invoice, customer, { isPresent: true, isConfirmed })
  if (!result.paid) return result
  item.price = price
  if (!keepsPeriod) {
    item.current_period_start = period.start
    item.current_period_end = period.end
    subscription.billing_cycle_anchor = now
  }
  subscription.latest_invoice = invoice.id
  announceInvoice(shop, invoice)
  shop.emit('customer.subscription.updated', subscription, customer.origin)
  markPaid(shop, invoice)
  portal.used = true
  disputeIfAsked(shop, invoice, customer)
  shop.store.save()
  return result
}
