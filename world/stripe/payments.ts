import { behaviourOf } from './cards.ts'
import { invalid } from './errors.ts'
import type { Charge, Customer, Dispute, Invoice, PaymentIntent, Refund } from './objects.ts'
import type { Shop } from './shop.ts'

/** Charges of test cards, refunds and disputes. */

export type PaymentResult = { paid: true } | { paid: false; decline: string } | { paid: false; asks: true }
type Presence = { isPresent: boolean; isConfirmed: boolean }

export function decide(number: string, { isPresent, isConfirmed }: Presence): PaymentResult {
  const card = behaviourOf(number)
  if (!card) return { paid: false, decline: 'invalid_number' }
  if (card.declines !== undefined) return { paid: false, decline: card.declines }
  if (card.asks && isPresent && !isConfirmed) return { paid: false, asks: true }
  if (card.declinesLater && !isPresent) return { paid: false, decline: 'generic_decline' }
  return { paid: true }
}

/** Charges an invoice once; a declined charge leaves a payment that needs another card. */
export function chargeInvoice(
  shop: Shop,
  invoice: Invoice,
  customer: Customer,
  presence: Presence,
): PaymentResult {
  const result = decide(customer.card, presence)
  if (!result.paid && 'asks' in result) return result
  const id = shop.store.newId('payment_intent')
  const charge: Charge = shop.store.add({
    ...shop.base(),
    id: shop.store.newId('charge'),
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
  const intent: PaymentIntent = shop.store.add({
    ...shop.base(),
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
  shop.emit(result.paid ? 'charge.succeeded' : 'charge.failed', charge, customer.origin)
  shop.emit(
    result.paid ? 'payment_intent.succeeded' : 'payment_intent.payment_failed',
    intent,
    customer.origin,
  )
  return result
}

export function markPaid(shop: Shop, invoice: Invoice): void {
  invoice.status = 'paid'
  invoice.amount_paid = invoice.total
  invoice.amount_remaining = 0
  invoice.next_payment_attempt = null
  invoice.status_transitions.paid_at = shop.seconds()
  const origin = shop.originOf(invoice.customer)
  shop.emit('invoice.paid', invoice, origin)
  shop.emit('invoice.payment_succeeded', invoice, origin)
}

export function disputeIfAsked(shop: Shop, invoice: Invoice, customer: Customer): void {
  if (!behaviourOf(customer.card)?.disputes || invoice.payment_intent === null) return
  const charge = shop.store.get(
    'charge',
    shop.store.get('payment_intent', invoice.payment_intent).latest_charge,
  )
  charge.disputed = true
  const dispute: Dispute = shop.store.add({
    ...shop.base(),
    id: shop.store.newId('dispute'),
    object: 'dispute',
    amount: charge.amount,
    currency: charge.currency,
    charge: charge.id,
    payment_intent: charge.payment_intent,
    reason: 'fraudulent',
    status: 'needs_response',
    metadata: {},
  })
  shop.emit('charge.dispute.created', dispute, customer.origin)
}

export function refund(
  shop: Shop,
  charge: Charge,
  given: { amount: number; reason: string | null; metadata: Refund['metadata'] },
) {
  const left = charge.amount_captured - charge.amount_refunded
  if (left === 0)
    throw invalid(`Charge ${charge.id} has already been refunded.`, { code: 'charge_already_refunded' })
  if (charge.disputed) throw invalid('This charge has been charged back.', { code: 'charge_disputed' })
  if (given.amount > left || given.amount <= 0)
    throw invalid(`Refund amount (${given.amount}) is greater than unrefunded amount on charge (${left}).`, {
      param: 'amount',
    })
  charge.amount_refunded += given.amount
  charge.refunded = charge.amount_refunded === charge.amount_captured
  const made: Refund = shop.store.add({
    ...shop.base(),
    id: shop.store.newId('refund'),
    object: 'refund',
    currency: charge.currency,
    charge: charge.id,
    payment_intent: charge.payment_intent,
    status: 'succeeded',
    ...given,
  })
  const origin = shop.originOf(charge.customer)
  shop.emit('refund.created', made, origin)
  shop.emit('charge.refunded', charge, origin)
  return made
}

export function closeDispute(shop: Shop, dispute: Dispute, status: 'won' | 'lost'): void {
  dispute.status = status
  shop.emit(
    'charge.dispute.closed',
    dispute,
    shop.originOf(shop.store.get('charge', dispute.charge).customer),
  )
  shop.store.save()
}
