import { later } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { NewEvent, Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, query } from '#store/query.ts'
import type { PlanInvoiceRow, PlanSubscriptionRow } from '#store/tables/subscriptions.ts'
import type { Invoice, Payment, Subscription } from '#upstreams/stripe/stripe.ts'
import type { PlanCatalogue } from './plan-catalogue.ts'
import { type CreditDeps, expireEnded, grantCredits, settleReturns } from './plan-credits.ts'
import { changeEvents, type EventOf, eventsOf, grantEventOf } from './plan-events.ts'
import { endedStatuses } from './plan-views.ts'
import { currentSubscription, daySeconds, eagerSeconds, setInterval } from './store.ts'

/** Makes the records equal to what the provider shows, in one transaction, however often and in whatever order. */

export type Reading = {
  /** The place in the order of readings; a later reading is never replaced by this one. */
  order: bigint
  userId: string
  subscription: Subscription
  /** Newest first, as the provider lists them; empty if only the subscription was read. */
  invoices: readonly Invoice[]
  /** The payments that were read, by the ids of their invoices. */
  payments: ReadonlyMap<string, Payment>
  /** What the prices of the invoices cost for a whole period, where plans have them. */
  wholeCents: ReadonlyMap<string, bigint>
  now: Date
}
export type ApplyDeps = CreditDeps & {
  catalogue: Pick<PlanCatalogue, 'find' | 'priced'>
  log: Pick<Log, 'warn'>
}
type Applied = { events: NewEvent[]; role: PlanSubscriptionRow['role'] }

const hourSeconds = 3_600

/** An end that the provider's status shows although it names no time is the time of the reading. */
const endOf = ({ subscription: { endedAt, status }, now }: Reading): Date | null =>
  endedAt ?? (endedStatuses.includes(status) ? now : null)

const rowOf = (reading: Reading, role: PlanSubscriptionRow['role']): PlanSubscriptionRow => {
  const { order, userId, subscription } = reading
  return {
    id: subscription.id,
    user_id: userId,
    customer_id: subscription.customerId,
    item_id: subscription.itemId,
    price_id: subscription.priceId,
    status: subscription.status,
    role,
    current_period_end: subscription.currentPeriodEnd,
    cancel_at_period_end: subscription.cancelAtPeriodEnd,
    created_at: subscription.createdAt,
    ended_at: endOf(reading),
    reading: order,
  }
}

export async function applyReading(deps: ApplyDeps, tx: Tx, reading: Reading): Promise<Applied> {
  const { order, userId, subscription } = reading
  // Two subscriptions that are paid at once are read one after the other, so that one of them is the main one.
  await query(tx, 'select pg_advisory_xact_lock(hashtextextended($1, 17))', [userId])
  const before = await fetchOne(
    tx,
    builder.selectFrom('plan_subscription').selectAll().where('id', '=', subscription.id).forUpdate(),
  )
  if (before && before.reading > order) return { events: [], role: before.role }
  const isFirst = before === undefined && (await currentSubscription(tx, userId)) === undefined
  const row = rowOf(reading, before?.role ?? (isFirst ? 'main' : 'duplicate'))
  const { id: _id, ...changed } = row
  await fetchAll(
    tx,
    builder
      .insertInto('plan_subscription')
      .values(row)
      .onConflict((oc) => oc.column('id').doUpdateSet(changed)),
  )
  const eventOf = eventsOf(row, deps.catalogue.find(row.price_id)?.name ?? row.price_id)
  const failed = await storeInvoices(tx, reading, { row, before })
  const invoices = await fetchAll(
    tx,
    builder
      .selectFrom('plan_invoice')
      .selectAll()
      .where('subscription_id', '=', row.id)
      .orderBy('created_at')
      // Invoices of one second are ordered by these words: creation, renewal, change.
      .orderBy('reason')
      .orderBy('id')
      .forUpdate(),
  )
  const events =
    row.role === 'main'
      ? await settleCredits(deps, tx, { row, invoices, eventOf })
      : duplicateEvents(before, row, invoices, eventOf)
  const unnamed = row.role === 'main' ? invoices.find((each) => isUnnamed(deps, each)) : undefined
  if (unnamed)
    deps.log.warn(
      { invoice: unnamed.id, price: unnamed.price_id },
      'a paid invoice brings no credits: STRIPE_PLANS does not name its price',
    )
  await setInterval(tx, row.id, intervalOf(row, { invoices, unnamed, now: reading.now }))
  const failures = failed.map(({ pay_url: payUrl }) => eventOf('subscription.payment_failed', { payUrl }))
  const own = row.role === 'main' ? [...failures, ...changeEvents(before, row, eventOf)] : []
  return { events: [...events, ...own], role: row.role }
}

const isUnnamed = (
  { catalogue }: ApplyDeps,
  { status, granted, price_id: priceId }: PlanInvoiceRow,
): boolean => status === 'paid' && granted === null && !catalogue.find(priceId)

const isUnpaid = ({ status }: PlanInvoiceRow): boolean => status === 'draft' || status === 'open'

type Seen = { invoices: readonly PlanInvoiceRow[]; unnamed: PlanInvoiceRow | undefined; now: Date }
function intervalOf(row: PlanSubscriptionRow, { invoices, unnamed, now }: Seen) {
  // Credits of a plan that was ended early last until the end of their period, and may be refunded until then.
  if (row.ended_at !== null && row.current_period_end <= now) return { everySeconds: null, latestAt: null }
  // While a release that names another plan is rolled out, an instance that knows it reads the invoice soon.
  const isFresh = unnamed?.paid_at && later(unnamed.paid_at, hourSeconds * 1_000) > now
  if (unnamed) return every(isFresh ? eagerSeconds : hourSeconds, now)
  if (row.ended_at !== null) return every(daySeconds, now)
  // A renewal comes soon, or its invoice is made and not paid yet.
  const isDue = row.current_period_end <= later(now, daySeconds * 1_000) || invoices.some(isUnpaid)
  return every(row.status !== 'active' || isDue ? hourSeconds : daySeconds, now)
}

const every = (everySeconds: number, now: Date) => ({
  everySeconds,
  latestAt: later(now, everySeconds * 1_000),
})

const billingOf = (
  { priceId, billedCents, periodEnd }: Invoice,
  wholeCents: ReadonlyMap<string, bigint>,
) => ({
  price_id: priceId,
  billed_cents: billedCents,
  price_cents: wholeCents.get(priceId) ?? billedCents,
  period_end: periodEnd,
})

/** Stores what was read of the invoices, and returns those whose payment has failed since. */
async function storeInvoices(
  tx: Tx,
  { invoices, payments, wholeCents, userId }: Reading,
  { row: subscription, before }: { row: PlanSubscriptionRow; before: PlanSubscriptionRow | undefined },
): Promise<PlanInvoiceRow[]> {
  const { id: subscriptionId, role } = subscription
  const isPastDue = subscription.status === 'past_due'
  const failed: PlanInvoiceRow[] = []
  for (const invoice of invoices) {
    const known = await fetchOne(
      tx,
      builder.selectFrom('plan_invoice').selectAll().where('id', '=', invoice.id),
    )
    const payment = payments.get(invoice.id)
    const changed = {
      status: invoice.status,
      total_cents: invoice.totalCents,
      paid_cents: invoice.paidCents,
      pay_url: invoice.payUrl ?? null,
      payment_intent: invoice.paymentIntentId ?? null,
      paid_at: invoice.paidAt ?? null,
      // The amounts of an invoice may change until its credits are granted.
      ...((known?.granted ?? null) === null && billingOf(invoice, wholeCents)),
      ...(payment && { refunded_cents: payment.refundedCents, dispute: payment.dispute ?? null }),
    }
    const [row] = await fetchAll(
      tx,
      builder
        .insertInto('plan_invoice')
        .values({
          id: invoice.id,
          subscription_id: subscriptionId,
          user_id: userId,
          reason: invoice.reason,
          ...billingOf(invoice, wholeCents),
          currency: invoice.currency,
          created_at: invoice.createdAt,
          refunded_cents: 0n,
          dispute: null,
          granted: null,
          taken_back: 0n,
          changes: 0,
          expires_at: null,
          ...changed,
        })
        .onConflict((oc) => oc.column('id').doUpdateSet(changed))
        .returningAll(),
    )
    const isNews = known?.status !== 'open' || before?.status !== 'past_due'
    if (role === 'main' && isPastDue && invoice.status === 'open' && isNews && row) failed.push(row)
  }
  return failed
}

type Settlement = { row: PlanSubscriptionRow; invoices: PlanInvoiceRow[]; eventOf: EventOf }

/** Two changes of one second have no order, so that the one that is read first may be listed last. */
const isTwin = (one: PlanInvoiceRow, other: PlanInvoiceRow): boolean =>
  one.id !== other.id &&
  one.reason === other.reason &&
  one.created_at.getTime() === other.created_at.getTime()

/** Grants what is paid and not granted yet, and takes back what was refunded or is disputed. */
async function settleCredits(
  deps: ApplyDeps,
  tx: Tx,
  { row, invoices, eventOf }: Settlement,
): Promise<NewEvent[]> {
  const events: NewEvent[] = []
  for (const [index, invoice] of invoices.entries()) {
    const plan = deps.catalogue.find(invoice.price_id)
    if (invoice.status !== 'paid' || invoice.granted !== null || !plan) continue
    const earlier = invoices.filter(
      (each, place) => each.granted !== null && (place < index || isTwin(each, invoice)),
    )
    const credits = await grantCredits(deps, tx, { invoice, earlier, credits: plan.credits })
    events.push(eventOf(grantEventOf(invoice), { credits }))
  }
  for (const invoice of invoices) {
    if (invoice.granted === null) continue
    if (row.ended_at !== null) await expireEnded(deps, tx, invoice, row.ended_at)
    const settled = await settleReturns(deps, tx, invoice)
    if (settled) events.push(eventOf('subscription.credits_changed', settled))
  }
  return events
}

const isRefunded = ({ status, paid_cents, refunded_cents }: PlanInvoiceRow): boolean =>
  status === 'paid' && paid_cents > 0n && refunded_cents >= paid_cents

function duplicateEvents(
  before: PlanSubscriptionRow | undefined,
  row: PlanSubscriptionRow,
  invoices: readonly PlanInvoiceRow[],
  eventOf: EventOf,
): NewEvent[] {
  const hasJustEnded = before !== undefined && before.ended_at === null && row.ended_at !== null
  return hasJustEnded && invoices.some(isRefunded) ? [eventOf('subscription.duplicate_refunded')] : []
}

/** Payers dispute for up to 120 days, and refunds after that are seldom. */
const disputableMs = 120 * 86_400_000

/** Returns the ids of invoices whose payments may still be refunded or disputed, or which are new. */
export async function invoicesToRead(
  tx: Parameters<typeof query>[0],
  invoices: readonly Invoice[],
  now: Date,
): Promise<Set<string>> {
  const ids = invoices.filter(({ paymentIntentId, paidAt }) => paymentIntentId && paidAt).map(({ id }) => id)
  const settled = await query<{ id: string }>(
    tx,
    `select id from plan_invoice where id = any($1) and granted is not null and expires_at <= $2
       and dispute is distinct from 'open' and status = 'paid'`,
    [ids, later(now, -disputableMs)],
  )
  const done = new Set(settled.map(({ id }) => id))
  return new Set(ids.filter((id) => !done.has(id)))
}
