import { announceInvoice, lineOf, newInvoice } from './invoices.ts'
import type { Invoice, Schedule, Session, Subscription } from './objects.ts'
import { chargeInvoice, markPaid } from './payments.ts'
import { periodEnd } from './periods.ts'
import type { Shop } from './shop.ts'

/** What happens by the clock: sessions expire, subscriptions renew, are tried again, and end. */

/** Days after a failed renewal on which it is tried again; after the last one the subscription ends. */
const retryDays = [3, 5, 7]
const daySeconds = 86_400
const renewalsMax = 200

export function endSubscription(shop: Shop, subscription: Subscription, at: number): void {
  subscription.status = 'canceled'
  subscription.ended_at = at
  subscription.canceled_at ??= at
  shop.emit('customer.subscription.deleted', subscription, shop.originOf(subscription.customer))
  shop.store.save()
}

/** Tries to pay an open invoice with the stored card, without its payer. */
function tryRenewal(shop: Shop, subscription: Subscription, invoice: Invoice, at: number): void {
  const customer = shop.store.get('customer', subscription.customer)
  if (chargeInvoice(shop, invoice, customer, { isPresent: false, isConfirmed: true }).paid) {
    markPaid(shop, invoice)
    if (subscription.status !== 'active') {
      subscription.status = 'active'
      shop.emit('customer.subscription.updated', subscription, customer.origin)
    }
    return
  }
  const days = retryDays[invoice.attempt_count - 1]
  invoice.next_payment_attempt = days === undefined ? null : at + days * daySeconds
  shop.emit('invoice.payment_failed', invoice, customer.origin)
  if (days === undefined) {
    invoice.status = 'uncollectible'
    endSubscription(shop, subscription, at)
  } else if (subscription.status !== 'past_due') {
    subscription.status = 'past_due'
    shop.emit('customer.subscription.updated', subscription, customer.origin)
  }
}

export function endSchedule(
  subscription: Subscription,
  schedule: Schedule,
  status: 'completed' | 'released',
): void {
  subscription.schedule = null
  schedule.status = status
  if (status === 'released') schedule.released_subscription = schedule.subscription
  schedule.subscription = null
}

function renew(shop: Shop, subscription: Subscription): void {
  const [item] = subscription.items.data
  const start = item.current_period_end
  if (subscription.cancel_at_period_end) {
    endSubscription(shop, subscription, start)
    return
  }
  const schedule = subscription.schedule && shop.store.get('subscription_schedule', subscription.schedule)
  if (schedule) {
    item.price = shop.store.get('price', schedule.price)
    endSchedule(subscription, schedule, 'completed')
  }
  const end = periodEnd(start, item.price.recurring.interval, subscription.billing_cycle_anchor)
  item.current_period_start = start
  item.current_period_end = end
  const period = { start, end }
  const lines = [
    lineOf(shop, subscription, item.price, { amount: item.price.unit_amount, period, isProration: false }),
  ]
  const invoice = newInvoice(shop, subscription, 'subscription_cycle', {
    lines,
    period: { start: start - (end - start), end: start },
  })
  invoice.created = start
  subscription.latest_invoice = invoice.id
  announceInvoice(shop, invoice)
  shop.emit('customer.subscription.updated', subscription, shop.originOf(subscription.customer))
  tryRenewal(shop, subscription, invoice, start)
}

function openInvoiceOf(shop: Shop, { latest_invoice: id }: Subscription): Invoice | undefined {
  const invoice = id === null ? undefined : shop.store.find('invoice', id)
  return invoice?.status === 'open' ? invoice : undefined
}

function advance(shop: Shop, subscription: Subscription, now: number): boolean {
  if (subscription.status === 'canceled') return false
  const open = openInvoiceOf(shop, subscription)
  const retryAt = open?.next_payment_attempt ?? Number.POSITIVE_INFINITY
  const renewAt = subscription.items.data[0].current_period_end
  if (open && retryAt <= now && retryAt <= renewAt) tryRenewal(shop, subscription, open, retryAt)
  else if (renewAt <= now) renew(shop, subscription)
  else return false
  return true
}

export function expire(shop: Shop, session: Session): void {
  session.status = 'expired'
  session.url = null
  shop.emit('checkout.session.expired', session, new URL(session.success_url).origin)
  shop.store.save()
}

/** Does what is due by now: sessions expire, subscriptions renew, retry and end. */
export function tick(shop: Shop): void {
  const now = shop.seconds()
  for (const session of shop.store.all('checkout.session'))
    if (session.status === 'open' && session.expires_at <= now) expire(shop, session)
  for (const subscription of shop.store.all('subscription')) {
    let steps = 0
    while (steps < renewalsMax && advance(shop, subscription, now)) steps += 1
    if (steps > 0) shop.store.save()
  }
}

export function cancelAtEnd(
  shop: Shop,
  subscription: Subscription,
  { isWanted }: { isWanted: boolean },
): void {
  subscription.cancel_at_period_end = isWanted
  subscription.canceled_at = isWanted ? shop.seconds() : null
  subscription.cancel_at = isWanted ? subscription.items.data[0].current_period_end : null
  shop.emit('customer.subscription.updated', subscription, shop.originOf(subscription.customer))
  shop.store.save()
}
