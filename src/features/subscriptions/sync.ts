import type { EventLog } from '#durable/events/event-log.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { defineTaskKind, type NewEvent, type TaskKind, type TaskView, type Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, type Queryable, query } from '#store/query.ts'
import type { Stripe } from '#upstreams/stripe/stripe.ts'
import { type ApplyDeps, applyReading, invoicesToRead, type Reading } from './apply-reading.ts'
import {
  beginReading,
  currentSubscription,
  daySeconds,
  eagerSeconds,
  unwatch,
  unwatchUnknown,
  watch,
} from './store.ts'

/** Reads an object of the provider again and makes the records equal to it. */

export const syncKind = 'subscriptions_sync'

export type SyncDeps = ApplyDeps & {
  db: Queryable
  stripe: Stripe
  events: Pick<EventLog, 'add' | 'notify'>
  /** The clock by which the provider's objects end. */
  providerClock: Clock
}
export type SyncData = {
  /** A session or a subscription, by the provider's id. */
  object: string
  user_id: string
  /** The second reading of a duplicate, after it was cancelled and refunded. */
  isSettled?: boolean
}
type Task = TaskView<SyncData>

/** A session is read again every two minutes, but a subscription only once a day: its task outlasts an outage. */
const sessionDeadlineMs = 600_000
const subscriptionDeadlineMs = 86_400_000
const unpaidStatuses = ['incomplete', 'incomplete_expired']

export const firstStepOf = (object: string) =>
  object.startsWith('cs_') ? ('session' as const) : ('read' as const)
export const syncAdmission = (data: SyncData) => {
  const first = firstStepOf(data.object)
  return { data, first, deadlineMs: first === 'session' ? sessionDeadlineMs : subscriptionDeadlineMs }
}

export const createSync = (deps: SyncDeps): TaskKind =>
  defineTaskKind<SyncData, 'session' | 'read' | 'settle'>({
    kind: syncKind,
    version: 1,
    priority: 2,
    retry: { attemptsMax: 300, firstMs: 500, maxMs: 300_000 },
    stepTimeoutMs: 60_000,
    steps: {
      session: (task) => readSession(deps, task),
      read: (task) => readSubscription(deps, task),
      settle: (task) => settle(deps, task),
    },
  })

const done = { end: 'completed' as const, outcome: 'executed' as const, result: {} }

/** A paid session leads to its subscription; one that has ended is not read again. */
async function readSession({ db, stripe, providerClock }: SyncDeps, { data }: Task) {
  await beginReading(db, data.object)
  const session = await stripe.session(data.object)
  if (session?.status === 'open') return done
  const close = (tx: Tx, state: 'complete' | 'expired') =>
    query(tx, 'update plan_checkout set state = $2 where session_id = $1', [data.object, state])
  const subscriptionId = session?.subscriptionId
  if (session?.status !== 'complete' || subscriptionId === undefined)
    return {
      ...done,
      writes: async (tx: Tx) => {
        await close(tx, 'expired')
        await unwatch(tx, data.object)
      },
    }
  // If the rest of this task fails, another one reads the subscription soon.
  const nextAt = later(providerClock.now(), eagerSeconds * 1_000)
  return {
    next: 'read' as const,
    data: { object: subscriptionId },
    writes: async (tx: Tx) => {
      await close(tx, 'complete')
      await unwatch(tx, data.object)
      await watch(tx, { id: subscriptionId, userId: data.user_id, nextAt, everySeconds: daySeconds })
    },
  }
}

/** Reads a subscription with its invoices, and the payments that may have been refunded or disputed. */
async function read(
  { db, stripe, catalogue, clock, providerClock }: SyncDeps,
  id: string,
  userId: string,
): Promise<Reading | 'missing' | undefined> {
  const order = await beginReading(db, id)
  const subscription = await stripe.subscription(id)
  if (subscription === undefined) return 'missing'
  // Another shop at the same provider, or another database, may sell subscriptions too.
  if (subscription.userId !== userId) return undefined
  const invoices = await stripe.invoices(id)
  const wanted = await invoicesToRead(db, invoices, clock.now())
  const payments = new Map<string, Awaited<ReturnType<Stripe['payment']>>>()
  for (const { id: invoiceId, paymentIntentId } of invoices)
    if (paymentIntentId !== undefined && wanted.has(invoiceId))
      payments.set(invoiceId, await stripe.payment(paymentIntentId))
  const wholeCents = new Map<string, bigint>()
  // A line of a part of a period names the amount of the part, and not the price.
  for (const priceId of new Set(invoices.map((each) => each.priceId))) {
    const priced = await catalogue.priced(priceId)
    if (priced) wholeCents.set(priceId, priced.cents)
  }
  return { order, userId, subscription, invoices, payments, wholeCents, now: providerClock.now() }
}

async function readSubscription(deps: SyncDeps, { data }: Task) {
  const { db, events } = deps
  const { object, user_id: userId } = data
  // The end of the plan before may be unknown yet; without it this one would count as a duplicate.
  const current = await currentSubscription(db, userId)
  const other = current && current.id !== object ? await read(deps, current.id, userId) : undefined
  const own = await read(deps, object, userId)
  if (own === undefined) return { ...done, writes: async (tx: Tx) => unwatch(tx, object) }
  if (own === 'missing') return { ...done, writes: (tx: Tx) => unwatchUnknown(tx, object) }
  // Nobody has paid for it yet; as the plan of the user it would stand in the way of one that is paid.
  if (unpaidStatuses.includes(own.subscription.status)) return done
  return {
    next: 'settle' as const,
    writes: async (tx: Tx) => {
      const found: NewEvent[] = []
      if (other === 'missing') await end(deps, tx, current!.id)
      else if (other) found.push(...(await applyReading(deps, tx, other)).events)
      found.push(...(await applyReading(deps, tx, own)).events)
      if (found.length > 0) await events.add(tx, userId, found)
    },
  }
}

/** Ends the record of a subscription that the provider does not know, although it knows another one of the user. */
const end = ({ providerClock }: SyncDeps, tx: Tx, id: string) =>
  query(
    tx,
    `update plan_subscription set status = 'canceled', ended_at = $2 where id = $1 and ended_at is null`,
    [id, providerClock.now()],
  )

/** Cancels and refunds a subscription that was paid beside another one; the main one needs nothing. */
async function settle({ db, stripe, events }: SyncDeps, { data }: Task) {
  events.notify(data.user_id)
  const [row] = await fetchAll(
    db,
    builder.selectFrom('plan_subscription').selectAll().where('id', '=', data.object),
  )
  if (row?.role !== 'duplicate' || data.isSettled) return done
  const unpaid = await fetchAll(
    db,
    builder
      .selectFrom('plan_invoice')
      .select(['payment_intent'])
      .where('subscription_id', '=', row.id)
      .where('status', '=', 'paid')
      .where('payment_intent', 'is not', null)
      .where('dispute', 'is', null)
      .whereRef('refunded_cents', '<', 'paid_cents'),
  )
  if (row.ended_at !== null && unpaid.length === 0) return done
  // The record that it is a duplicate is committed, so that a crash between these calls repeats them.
  if (row.ended_at === null) await stripe.cancel(row.id)
  for (const { payment_intent: payment } of unpaid) if (payment !== null) await stripe.refund(payment)
  return { next: 'read' as const, data: { isSettled: true } }
}
