import { behaviourOf } from './cards.ts'
import { invalid } from './errors.ts'
import type {
  AnyObject,
  BillingReason,
  Charge,
  Customer,
  Dispute,
  Invoice,
  Line,
  PaymentIntent,
  PortalSession,
  Price,
  Refund,
  Session,
  Subscription,
} from './objects.ts'
import { periodEnd, unusedPart } from './periods.ts'
import type { Store } from './store.ts'

/** Payments, subscriptions and their renewals, by the clock of the world. */

/** Records that something happened to an object; its event goes to the endpoints of the customer. */
export type Emit = (type: string, object: AnyObject, origin: string) => void
export type PaymentResult = { paid: true } | { paid: false; decline: string } | { paid: false; asks: true }
type BillingDeps = { store: Store; nowMs: () => number; emit: Emit; hostUrl: () => string }
type Presence = { isPresent: boolean; isConfirmed: boolean }

/** Days after a failed renewal on which it is tried again; after the last one the subscription ends. */
const retryDays = [3, 5, 7]
const daySeconds = 86_400
const renewalsMax = 200

export type Billing = ReturnType<typeof createBilling>

export function createBilling({ store, nowMs, emit, hostUrl }: BillingDeps) {
  const seconds = () => Math.floor(nowMs() / 1_000)
  const base = () => ({ created: seconds(), livemode: false as const })
  const originOf = (customer: string) => store.get('customer', customer).origin

  const decide = (number: string, { isPresent, isConfirmed }: Presence): PaymentResult => {
    const card = behaviourOf(number)
    if (!card) return { paid: false, decline: 'invalid_number' }
    if (card.declines !== undefined) return { paid: false, decline: card.declines }
    if (card.asks && isPresent && !isConfirmed) return { paid: false, asks: true }
    if (card.declinesLater && !isPresent) return { paid: false, decline: 'generic_decline' }
    return { paid: true }
  }

  /** Charges an invoice once; a declined charge leaves a payment that needs another card. */
  const chargeInvoice = (invoice: Invoice, customer: Customer, presence: Presence): PaymentResult => {
    const result = decide(customer.card, presence)
    if (!result.paid && 'asks' in result) return result
    const id = store.newId('payment_intent')
    const charge: Charge = store.add({
      ...base(),
      id: store.newId('charge'),
      object: 'charge',
      amount: invoice.total,
      amount_captured: result.paid ? invoice.total : 0,
      amount_refunded: 0,
      currency: invoice.currency,
      customer: customer.id,
      payment_intent: id,
      paid: result.paid,
      captured: result.paid,
      refunded: false,
      disputed: false,
      status: result.paid ? 'succeeded' : 'failed',
      failure_code: result.paid ? null : 'card_declined',
      metadata: {},
    })
    const intent: PaymentIntent = store.add({
      ...base(),
      id,
      object: 'payment_intent',
      amount: invoice.total,
      amount_received: result.paid ? invoice.total : 0,
      currency: invoice.currency,
      customer: customer.id,
      status: result.paid ? 'succeeded' : 'requires_payment_method',
      latest_charge: charge.id,
      metadata: {},
    })
    invoice.payment_intent = intent.id
    invoice.attempted = true
    invoice.attempt_count += 1
    emit(result.paid ? 'charge.succeeded' : 'charge.failed', charge, customer.origin)
    emit(result.paid ? 'payment_intent.succeeded' : 'payment_intent.payment_failed', intent, customer.origin)
    return result
  }

  const markPaid = (invoice: Invoice): void => {
    invoice.status = 'paid'
    invoice.amount_paid = invoice.total
    invoice.amount_remaining = 0
    invoice.next_payment_attempt = null
    invoice.status_transitions.paid_at = seconds()
    const origin = originOf(invoice.customer)
    emit('invoice.paid', invoice, origin)
    emit('invoice.payment_succeeded', invoice, origin)
  }

  const disputeIfAsked = (invoice: Invoice, customer: Customer): void => {
    if (!behaviourOf(customer.card)?.disputes || invoice.payment_intent === null) return
    const charge = store.get('charge', store.get('payment_intent', invoice.payment_intent).latest_charge)
    charge.disputed = true
    const dispute: Dispute = store.add({
      ...base(),
      id: store.newId('dispute'),
      object: 'dispute',
      amount: charge.amount,
      currency: charge.currency,
      charge: charge.id,
      payment_intent: charge.payment_intent,
      reason: 'fraudulent',
      status: 'needs_response',
      metadata: {},
    })
    emit('charge.dispute.created', dispute, customer.origin)
  }

  const lineOf = (
    subscription: Subscription,
    price: Price,
    line: { amount: number; period: Line['period']; isProration: boolean },
  ): Line => ({
    id: `il_${store.newId('invoice').slice(3)}`,
    object: 'line_item',
    amount: line.amount,
    currency: price.currency,
    description: `${store.get('product', price.product).name}`,
    quantity: 1,
    period: line.period,
    pricing: {
      type: 'price_details',
      price_details: { price: price.id, product: price.product },
      unit_amount_decimal: String(price.unit_amount),
    },
    parent: {
      type: 'subscription_item_details',
      subscription_item_details: {
        subscription: subscription.id,
        subscription_item: subscription.items.data[0].id,
        proration: line.isProration,
      },
    },
  })

  const addInvoice = (
    subscription: Subscription,
    reason: BillingReason,
    { lines, period }: { lines: Line[]; period: Line['period'] },
  ): Invoice => {
    const id = store.newId('invoice')
    const total = lines.reduce((sum, { amount }) => sum + amount, 0)
    const invoice: Invoice = {
      ...base(),
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
      hosted_invoice_url: `${hostUrl()}/i/${id}`,
      period_start: period.start,
      period_end: period.end,
      status_transitions: { finalized_at: seconds(), paid_at: null, voided_at: null },
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

  const announceInvoice = (invoice: Invoice): void => {
    store.add(invoice)
    const origin = originOf(invoice.customer)
    emit('invoice.created', { ...invoice, status: 'open' as const }, origin)
    emit('invoice.finalized', { ...invoice, status: 'open' }, origin)
  }

  const newSubscription = (session: Session, customer: Customer): Subscription => {
    const price = store.get('price', session.price)
    const [id, now] = [store.newId('subscription'), seconds()]
    return {
      ...base(),
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
      metadata: session.subscription_metadata,
    }
  }

  /** Pays an open session with a card; only a payment that succeeds makes a subscription. */
  const paySession = (
    session: Session,
    payer: { card: string; email: string | null; isConfirmed: boolean },
  ): PaymentResult => {
    const result = decide(payer.card, { isPresent: true, isConfirmed: payer.isConfirmed })
    if (!result.paid) return result
    const origin = new URL(session.success_url).origin
    const customer: Customer = store.add({
      ...base(),
      id: store.newId('customer'),
      object: 'customer',
      email: payer.email ?? session.customer_email,
      metadata: {},
      card: payer.card,
      origin,
    })
    emit('customer.created', customer, origin)
    const subscription = newSubscription(session, customer)
    const [item] = subscription.items.data
    const period = { start: item.current_period_start, end: item.current_period_end }
    const lines = [
      lineOf(subscription, item.price, { amount: item.price.unit_amount, period, isProration: false }),
    ]
    const invoice = addInvoice(subscription, 'subscription_create', { lines, period })
    subscription.latest_invoice = invoice.id
    store.add(subscription)
    chargeInvoice(invoice, customer, { isPresent: true, isConfirmed: true })
    emit('customer.subscription.created', subscription, origin)
    announceInvoice(invoice)
    markPaid(invoice)
    session.status = 'complete'
    session.payment_status = 'paid'
    session.customer = customer.id
    session.subscription = subscription.id
    session.invoice = invoice.id
    session.url = null
    emit('checkout.session.completed', session, origin)
    disputeIfAsked(invoice, customer)
    store.save()
    return result
  }

  const endSubscription = (subscription: Subscription, at: number): void => {
    subscription.status = 'canceled'
    subscription.ended_at = at
    subscription.canceled_at ??= at
    emit('customer.subscription.deleted', subscription, originOf(subscription.customer))
    store.save()
  }

  /** Tries to pay an open invoice with the stored card, without its payer. */
  const tryRenewal = (subscription: Subscription, invoice: Invoice, at: number): void => {
    const customer = store.get('customer', subscription.customer)
    if (chargeInvoice(invoice, customer, { isPresent: false, isConfirmed: true }).paid) {
      markPaid(invoice)
      if (subscription.status !== 'active') {
        subscription.status = 'active'
        emit('customer.subscription.updated', subscription, customer.origin)
      }
      return
    }
    const days = retryDays[invoice.attempt_count - 1]
    invoice.next_payment_attempt = days === undefined ? null : at + days * daySeconds
    emit('invoice.payment_failed', invoice, customer.origin)
    if (days === undefined) {
      invoice.status = 'uncollectible'
      endSubscription(subscription, at)
    } else if (subscription.status !== 'past_due') {
      subscription.status = 'past_due'
      emit('customer.subscription.updated', subscription, customer.origin)
    }
  }

  const renew = (subscription: Subscription): void => {
    const [item] = subscription.items.data
    const start = item.current_period_end
    if (subscription.cancel_at_period_end) {
      endSubscription(subscription, start)
      return
    }
    const end = periodEnd(start, item.price.recurring.interval, subscription.billing_cycle_anchor)
    item.current_period_start = start
    item.current_period_end = end
    const period = { start, end }
    const lines = [
      lineOf(subscription, item.price, { amount: item.price.unit_amount, period, isProration: false }),
    ]
    const invoice = addInvoice(subscription, 'subscription_cycle', {
      lines,
      period: { start: start - (end - start), end: start },
    })
    invoice.created = start
    subscription.latest_invoice = invoice.id
    announceInvoice(invoice)
    emit('customer.subscription.updated', subscription, originOf(subscription.customer))
    tryRenewal(subscription, invoice, start)
  }

  const openInvoiceOf = ({ latest_invoice: id }: Subscription): Invoice | undefined => {
    const invoice = id === null ? undefined : store.find('invoice', id)
    return invoice?.status === 'open' ? invoice : undefined
  }

  const advance = (subscription: Subscription, now: number): boolean => {
    if (subscription.status === 'canceled') return false
    const open = openInvoiceOf(subscription)
    const retryAt = open?.next_payment_attempt ?? Number.POSITIVE_INFINITY
    const renewAt = subscription.items.data[0].current_period_end
    if (open && retryAt <= now && retryAt <= renewAt) tryRenewal(subscription, open, retryAt)
    else if (renewAt <= now) renew(subscription)
    else return false
    return true
  }

  const expire = (session: Session): void => {
    session.status = 'expired'
    session.url = null
    emit('checkout.session.expired', session, new URL(session.success_url).origin)
    store.save()
  }

  /** Does what is due by now: sessions expire, subscriptions renew, retry and end. */
  const tick = (): void => {
    const now = seconds()
    for (const session of store.all('checkout.session'))
      if (session.status === 'open' && session.expires_at <= now) expire(session)
    for (const subscription of store.all('subscription')) {
      let steps = 0
      while (steps < renewalsMax && advance(subscription, now)) steps += 1
      if (steps > 0) store.save()
    }
  }

  /** Pays an open invoice with another card, which later renewals use too. */
  const payInvoice = (invoice: Invoice, card: string, isConfirmed: boolean): PaymentResult => {
    const customer = store.get('customer', invoice.customer)
    const subscription = store.get('subscription', invoice.parent.subscription_details.subscription)
    const former = customer.card
    customer.card = card
    const result = chargeInvoice(invoice, customer, { isPresent: true, isConfirmed })
    store.save()
    if (!result.paid) {
      customer.card = former
      return result
    }
    markPaid(invoice)
    if (subscription.status === 'past_due') {
      subscription.status = 'active'
      emit('customer.subscription.updated', subscription, customer.origin)
    }
    disputeIfAsked(invoice, customer)
    return result
  }

  type Proration = { price: Price; credit: number; total: number }
  const prorationOf = (portal: PortalSession): Proration => {
    const { subscription: id, items } = portal.flow.subscription_update_confirm
    const subscription = store.get('subscription', id)
    const [item] = subscription.items.data
    const price = store.get('price', items[0]!.price)
    const period = { start: item.current_period_start, end: item.current_period_end }
    const credit = unusedPart(item.price.unit_amount, period, seconds())
    return { price, credit, total: price.unit_amount - credit }
  }

  /** Changes the price of a subscription: its period begins anew, and what is unused of the old one is deducted. */
  const confirmUpdate = (portal: PortalSession, isConfirmed: boolean): PaymentResult => {
    const subscription = store.get('subscription', portal.flow.subscription_update_confirm.subscription)
    const customer = store.get('customer', subscription.customer)
    const { price, credit, total } = prorationOf(portal)
    if (total < 0) throw invalid('The account schedules a smaller price for the end of the period.')
    const [item] = subscription.items.data
    const now = seconds()
    const period = { start: now, end: periodEnd(now, price.recurring.interval, now) }
    const unused = { start: now, end: item.current_period_end }
    const lines = [
      lineOf(subscription, item.price, { amount: -credit, period: unused, isProration: true }),
      lineOf(subscription, price, { amount: price.unit_amount, period, isProration: false }),
    ]
    const invoice = addInvoice(subscription, 'subscription_update', { lines, period: unused })
    const result = chargeInvoice(invoice, customer, { isPresent: true, isConfirmed })
    if (!result.paid) return result
    item.price = price
    item.current_period_start = period.start
    item.current_period_end = period.end
    subscription.billing_cycle_anchor = now
    subscription.latest_invoice = invoice.id
    announceInvoice(invoice)
    emit('customer.subscription.updated', subscription, customer.origin)
    markPaid(invoice)
    portal.used = true
    disputeIfAsked(invoice, customer)
    store.save()
    return result
  }

  const cancelAtEnd = (subscription: Subscription, isWanted: boolean): void => {
    subscription.cancel_at_period_end = isWanted
    subscription.canceled_at = isWanted ? seconds() : null
    subscription.cancel_at = isWanted ? subscription.items.data[0].current_period_end : null
    emit('customer.subscription.updated', subscription, originOf(subscription.customer))
    store.save()
  }

  const refund = (
    charge: Charge,
    given: { amount: number; reason: string | null; metadata: Refund['metadata'] },
  ) => {
    const left = charge.amount_captured - charge.amount_refunded
    if (left === 0)
      throw invalid(`Charge ${charge.id} has already been refunded.`, { code: 'charge_already_refunded' })
    if (charge.disputed) throw invalid('This charge has been charged back.', { code: 'charge_disputed' })
    if (given.amount > left || given.amount <= 0)
      throw invalid(
        `Refund amount (${given.amount}) is greater than unrefunded amount on charge (${left}).`,
        {
          param: 'amount',
        },
      )
    charge.amount_refunded += given.amount
    charge.refunded = charge.amount_refunded === charge.amount_captured
    const made: Refund = store.add({
      ...base(),
      id: store.newId('refund'),
      object: 'refund',
      currency: charge.currency,
      charge: charge.id,
      payment_intent: charge.payment_intent,
      status: 'succeeded',
      ...given,
    })
    const origin = originOf(charge.customer)
    emit('refund.created', made, origin)
    emit('charge.refunded', charge, origin)
    return made
  }

  const closeDispute = (dispute: Dispute, status: 'won' | 'lost'): void => {
    dispute.status = status
    emit('charge.dispute.closed', dispute, originOf(store.get('charge', dispute.charge).customer))
    store.save()
  }

  return {
    seconds,
    base,
    paySession,
    payInvoice,
    confirmUpdate,
    prorationOf,
    expire,
    endSubscription,
    cancelAtEnd,
    refund,
    closeDispute,
    tick,
  }
}
