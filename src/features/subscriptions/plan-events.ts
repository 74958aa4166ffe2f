import type { NewEvent } from '#kernel/task/task.ts'
import type { PlanInvoiceRow, PlanSubscriptionRow } from '#store/tables/subscriptions.ts'

/** The events about a plan that its user gets. */

type EventType =
  | 'subscription.started'
  | 'subscription.renewed'
  | 'subscription.changed'
  | 'subscription.payment_failed'
  | 'subscription.cancelled'
  | 'subscription.resumed'
  | 'subscription.ended'
  | 'subscription.credits_changed'
  | 'subscription.duplicate_refunded'

type Details = { credits?: bigint; reason?: string; payUrl?: string | null }
export type EventOf = (type: EventType, details?: Details) => NewEvent

export const eventsOf =
  (row: PlanSubscriptionRow, plan: string): EventOf =>
  (type, { credits = 0n, reason, payUrl }: Details = {}) => ({
    type,
    subject: { kind: 'subscription', id: row.id },
    data: {
      subscription_id: row.id,
      plan,
      price_id: row.price_id,
      status: row.status,
      current_period_end: row.current_period_end.toISOString(),
      cancel_at_period_end: row.cancel_at_period_end,
      credits: Number(credits),
      reason: reason ?? null,
      pay_url: payUrl ?? null,
    },
  })

const grantEvents = {
  subscription_create: 'subscription.started',
  subscription_update: 'subscription.changed',
} as const

export const grantEventOf = ({ reason }: PlanInvoiceRow): EventType =>
  reason === 'subscription_create' || reason === 'subscription_update'
    ? grantEvents[reason]
    : 'subscription.renewed'

/** Returns the events of what changed in a subscription itself; `before` is undefined for a new one. */
export function changeEvents(
  before: PlanSubscriptionRow | undefined,
  after: PlanSubscriptionRow,
  eventOf: EventOf,
): NewEvent[] {
  if (!before) return after.ended_at ? [eventOf('subscription.ended')] : []
  const events: NewEvent[] = []
  if (before.cancel_at_period_end !== after.cancel_at_period_end && after.ended_at === null)
    events.push(eventOf(after.cancel_at_period_end ? 'subscription.cancelled' : 'subscription.resumed'))
  if (before.ended_at === null && after.ended_at !== null) events.push(eventOf('subscription.ended'))
  return events
}
