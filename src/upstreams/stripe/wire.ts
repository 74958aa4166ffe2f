import { Fault } from '#kernel/contract/fault.ts'
import { isRecord } from '#kernel/wire/json.ts'

/** The provider's objects, in our names. Amounts are whole cents, times are dates. */

export type Interval = 'month' | 'year'
export type Price = { id: string; cents: bigint; currency: string; interval: Interval; isActive: boolean }
export type Session = {
  id: string
  url: string | undefined
  status: 'open' | 'complete' | 'expired'
  subscriptionId: string | undefined
}
export type Page = { id: string; url: string }
export type Subscription = {
  id: string
  customerId: string
  /** The user whom the subscription names since its checkout. */
  userId: string | undefined
  status: string
  itemId: string
  priceId: string
  currentPeriodEnd: Date
  cancelAtPeriodEnd: boolean
  createdAt: Date
  endedAt: Date | undefined
  /** The schedule that holds another price for the next period. */
  scheduleId: string | undefined
}
export type Invoice = {
  id: string
  status: string
  reason: string
  /** The price that the invoice bills for the period that ends last. */
  priceId: string
  /** What it bills at that price; less than the whole price for a part of a period. */
  billedCents: bigint
  periodEnd: Date
  currency: string
  totalCents: bigint
  paidCents: bigint
  payUrl: string | undefined
  paymentIntentId: string | undefined
  createdAt: Date
  paidAt: Date | undefined
}
export type Payment = { refundedCents: bigint; dispute: 'open' | 'lost' | 'won' | undefined }

/** The part of an event that is read; it only hints at the object to read. */
export type ProviderEvent = {
  id: string
  type: string
  isLive: boolean
  /** The session or subscription that changed; undefined where the event names neither. */
  objectId: string | undefined
  /** The payment that was refunded or disputed. */
  paymentIntentId: string | undefined
  userId: string | undefined
}

/** The key of the metadata that names the user, at the session and the subscription. */
export const userField = 'portico_user'

class Unreadable extends Error {}
type Fields = Record<string, unknown>

const record = (value: unknown, name: string): Fields => {
  if (isRecord(value)) return value
  throw new Unreadable(`${name} is no object`)
}
const text = (fields: Fields, name: string): string => {
  const value = fields[name]
  if (typeof value === 'string' && value !== '') return value
  throw new Unreadable(`${name} is no text`)
}
const optionalText = (fields: Fields, name: string): string | undefined => {
  const value = fields[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}
const integer = (fields: Fields, name: string): number => {
  const value = fields[name]
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  throw new Unreadable(`${name} is no integer`)
}
const signedCents = (fields: Fields, name: string): bigint => BigInt(integer(fields, name))
const cents = (fields: Fields, name: string): bigint => {
  const value = signedCents(fields, name)
  if (value < 0n) throw new Unreadable(`${name} is negative`)
  return value
}
/** The last second of the year 9999, beyond which a time has another form. */
const secondsMax = 253_402_300_799
const time = (fields: Fields, name: string): Date => {
  const seconds = integer(fields, name)
  if (seconds < 0 || seconds > secondsMax) throw new Unreadable(`${name} is no time`)
  return new Date(seconds * 1_000)
}
const optionalTime = (fields: Fields, name: string): Date | undefined =>
  typeof fields[name] === 'number' ? time(fields, name) : undefined
const list = (value: unknown, name: string): Fields[] => {
  const { data } = record(value, name)
  if (!Array.isArray(data)) throw new Unreadable(`${name} has no data`)
  return data.map((each) => record(each, name))
}
/** A reference is an id, or the object itself where it was expanded. */
const reference = (value: unknown): string | undefined => {
  if (typeof value === 'string' && value !== '') return value
  return isRecord(value) ? optionalText(value, 'id') : undefined
}
const metadataUser = (fields: Fields): string | undefined =>
  isRecord(fields.metadata) ? optionalText(fields.metadata, userField) : undefined

/** Reads a reply, and turns what cannot be read into a fault that names the provider. */
export function readReply<T>(body: string, read: (fields: Fields) => T): T {
  try {
    return read(record(JSON.parse(body), 'the reply'))
  } catch (cause) {
    if (!(cause instanceof Unreadable || cause instanceof SyntaxError)) throw cause
    throw new Fault('upstream_changed', 'The payment provider sent a reply that cannot be read', { cause })
  }
}

export function priceOf(fields: Fields): Price {
  const { interval, interval_count: count } = record(fields.recurring, 'recurring')
  if ((interval !== 'month' && interval !== 'year') || count !== 1)
    throw new Unreadable('the price is neither monthly nor yearly')
  return {
    id: text(fields, 'id'),
    cents: cents(fields, 'unit_amount'),
    currency: text(fields, 'currency'),
    interval,
    isActive: fields.active === true,
  }
}

const sessionStatuses = ['open', 'complete', 'expired'] as const
export function sessionOf(fields: Fields): Session {
  const status = sessionStatuses.find((each) => each === fields.status)
  if (!status) throw new Unreadable('the session has an unknown status')
  return {
    id: text(fields, 'id'),
    url: optionalText(fields, 'url'),
    status,
    subscriptionId: reference(fields.subscription),
  }
}

export const pageOf = (fields: Fields): Page => ({ id: text(fields, 'id'), url: text(fields, 'url') })

export function subscriptionOf(fields: Fields): Subscription {
  const [item] = list(fields.items, 'items')
  if (!item) throw new Unreadable('the subscription has no item')
  return {
    id: text(fields, 'id'),
    customerId: reference(fields.customer) ?? text(fields, 'customer'),
    userId: metadataUser(fields),
    status: text(fields, 'status'),
    itemId: text(item, 'id'),
    priceId: text(record(item.price, 'price'), 'id'),
    currentPeriodEnd: time(item, 'current_period_end'),
    cancelAtPeriodEnd: fields.cancel_at_period_end === true,
    createdAt: time(fields, 'created'),
    endedAt: optionalTime(fields, 'ended_at'),
    scheduleId: reference(fields.schedule),
  }
}

type Line = { priceId: string; end: Date; amount: bigint }
function lineOf(fields: Fields): Line | undefined {
  const details = isRecord(fields.pricing) ? fields.pricing.price_details : undefined
  const priceId = isRecord(details) ? reference(details.price) : undefined
  if (priceId === undefined) return undefined
  return { priceId, end: time(record(fields.period, 'period'), 'end'), amount: signedCents(fields, 'amount') }
}

const isPaidPart = ({ status }: Fields): boolean => status === 'paid'

function paymentIntentOf(fields: Fields): string | undefined {
  const parts = fields.payments === undefined ? [] : list(fields.payments, 'payments')
  const payment = (parts.find(isPaidPart) ?? parts[0])?.payment
  return isRecord(payment) ? reference(payment.payment_intent) : undefined
}

/** Returns undefined for an invoice that bills no price, such as one that an operator wrote by hand. */
export function invoiceOf(fields: Fields): Invoice | undefined {
  const lines = list(fields.lines, 'lines').flatMap((each) => lineOf(each) ?? [])
  const billed = lines.filter(({ amount }) => amount >= 0n)
  const main = billed.reduce<Line | undefined>(
    (last, line) => (last === undefined || line.end >= last.end ? line : last),
    undefined,
  )
  if (!main) return undefined
  const transitions = record(fields.status_transitions, 'status_transitions')
  return {
    id: text(fields, 'id'),
    status: text(fields, 'status'),
    reason: text(fields, 'billing_reason'),
    priceId: main.priceId,
    billedCents: main.amount,
    periodEnd: main.end,
    currency: text(fields, 'currency'),
    totalCents: signedCents(fields, 'total'),
    paidCents: cents(fields, 'amount_paid'),
    payUrl: optionalText(fields, 'hosted_invoice_url'),
    paymentIntentId: paymentIntentOf(fields),
    createdAt: time(fields, 'created'),
    paidAt: optionalTime(transitions, 'paid_at'),
  }
}

export const invoicesOf = (fields: Fields): Invoice[] =>
  list(fields, 'invoices').flatMap((each) => invoiceOf(each) ?? [])

export function chargeOf(fields: Fields): { refundedCents: bigint; isDisputed: boolean } {
  const charge = fields.latest_charge === null ? {} : record(fields.latest_charge, 'latest_charge')
  return {
    refundedCents: charge.amount_refunded === undefined ? 0n : cents(charge, 'amount_refunded'),
    isDisputed: charge.disputed === true,
  }
}

/** Inquiries take no money; while one is open, and after it, the payment counts as undisputed. */
const undisputed = ['warning_needs_response', 'warning_under_review', 'warning_closed', 'prevented']
export function disputeOf(fields: Fields): Payment['dispute'] {
  const statuses = list(fields, 'disputes')
    .map((each) => text(each, 'status'))
    .filter((status) => !undisputed.includes(status))
  if (statuses.length === 0) return undefined
  if (statuses.includes('lost')) return 'lost'
  return statuses.every((status) => status === 'won') ? 'won' : 'open'
}

export function eventOf(fields: Fields): ProviderEvent {
  const object = record(record(fields.data, 'data').object, 'object')
  const kind = optionalText(object, 'object')
  const parent = isRecord(object.parent) ? object.parent.subscription_details : undefined
  const details = isRecord(parent) ? parent : {}
  const isOwnId = kind === 'checkout.session' || kind === 'subscription'
  return {
    id: text(fields, 'id'),
    type: text(fields, 'type'),
    isLive: fields.livemode === true,
    objectId: isOwnId ? text(object, 'id') : kind === 'invoice' ? reference(details.subscription) : undefined,
    paymentIntentId: kind === 'charge' || kind === 'dispute' ? reference(object.payment_intent) : undefined,
    userId: kind === 'invoice' ? metadataUser(details) : metadataUser(object),
  }
}

export type ProviderError = { code: string | undefined; message: string }
export function errorOf(body: string): ProviderError {
  try {
    const { error } = record(JSON.parse(body), 'the reply')
    const fields = record(error, 'error')
    return { code: optionalText(fields, 'code'), message: optionalText(fields, 'message') ?? 'no message' }
  } catch {
    return { code: undefined, message: 'an error that cannot be read' }
  }
}
