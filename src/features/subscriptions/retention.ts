import type { Deletion } from '#durable/upkeep/retention.ts'
import type { Plan } from './plan-catalogue.ts'

const dayMs = 86_400_000

/** By the end of the last page, so that one that is open stays. */
const deleteCheckouts = (which: string): string => `delete from plan_checkout where id in
  (select id from plan_checkout where ${which} and expires_at < $1 order by expires_at limit $2) returning id`

/** The provider repeats an event for days, and not for weeks. Payments and their credits stay. */
export const subscriptionDeletions: readonly Deletion[] = [
  {
    name: 'retention of events of the payment provider',
    ageMs: 30 * dayMs,
    text: `delete from plan_event where id in
      (select id from plan_event where received_at < $1 order by received_at limit $2) returning id`,
  },
  {
    // The provider repeats its answer under a key for a day; after that the pages of an intent may be counted anew.
    name: 'retention of unpaid checkouts',
    ageMs: 2 * dayMs,
    text: deleteCheckouts("state <> 'complete'"),
  },
  { name: 'retention of paid checkouts', ageMs: 90 * dayMs, text: deleteCheckouts("state = 'complete'") },
]

export const subscriptionFacts = (plans: readonly Plan[]) => ({
  plans: plans.map(({ name, priceId, credits }) => ({
    plan: name,
    price_id: priceId,
    credits: Number(credits),
  })),
})
