import type { Deletion } from '#durable/upkeep/retention.ts'

/**
 * The record that a quote was executed is kept longer than the quote, and the record of a counted payment longer than a
 * swap can be open at its provider.
 */

const quoteMs = 3_600_000
const useMs = 48 * 3_600_000
const arrivalMs = 400 * 24 * 3_600_000

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
  {
    name: 'retention of arrivals',
    ageMs: arrivalMs,
    text: `delete from claimed_arrival where (chain_id, tx_hash, account, part) in
      (select chain_id, tx_hash, account, part from claimed_arrival where at < $1 order by at limit $2) returning tx_hash`,
  },
]
