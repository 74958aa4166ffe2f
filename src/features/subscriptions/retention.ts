import type { Deletion } from '#durable/upkeep/retention.ts'
import type { Plan } from './plan-catalogue.ts'

const dayMs = 86_400_000

/** The provider repeats an event for days, and not for weeks. Payments and their credits stay. */
export const subscriptionDeletions: readonly Deletion[] = [
  {
    name: 'retention of events of the payment provider',
    ageMs: 30 * dayMs,
    text: `delete from plan_event where id in
      (select id from plan_event where received_at < $1 order by received_at limit $2) returning id`,
  },
  {
    name: 'retention of checkouts',
    ageMs: 90 * dayMs,
    text: `delete from plan_checkout where id in
      (select id from plan_checkout where created_at < $1 order by created_at limit $2) returning id`,
  },
]

export const subscriptionFacts = (plans: readonly Plan[]) => ({
  plans: plans.map(({ name, priceId, credits }) => ({
    plan: name,
    price_id: priceId,
    credits: Number(credits),
  })),
})
