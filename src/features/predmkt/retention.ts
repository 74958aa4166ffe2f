import type { Deletion } from '#durable/upkeep/retention.ts'

/** Quotes live for seconds, and a signer's budget says nothing after a day. Orders, fills and payouts are kept. */

const dayMs = 24 * 3_600_000

export const deletions: readonly Deletion[] = [
  {
    name: 'retention of prediction quotes',
    ageMs: 3_600_000,
    text: `delete from prediction_quote where id in
      (select id from prediction_quote where expires_at < $1 order by expires_at limit $2) returning id`,
  },
  {
    name: 'retention of prediction rate budgets',
    ageMs: dayMs,
    text: `delete from prediction_rate_budget where (venue, signer, kind) in
      (select venue, signer, kind from prediction_rate_budget where updated_at < $1 order by updated_at limit $2)
      returning signer`,
  },
]
