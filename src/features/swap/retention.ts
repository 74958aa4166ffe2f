import type { Deletion } from '#durable/retention.ts'

/** Quotes are of no use soon after they expired. Their executions are remembered for longer than they can be. */

const quoteMs = 3_600_000
const useMs = 48 * 3_600_000

export const swapDeletions: readonly Deletion[] = [
  {
    name: 'retention of quotes',
    ageMs: quoteMs,
    text: `delete from swap_quote where id in
      (select id from swap_quote where expires_at < $1 order by expires_at limit $2) returning id`,
  },
  {
    name: 'retention of executed quotes',
    ageMs: useMs,
    text: `delete from swap_quote_use where quote_id in
      (select quote_id from swap_quote_use where at < $1 order by at limit $2) returning quote_id`,
  },
]
