import { later } from '#kernel/clock.ts'
import type { Unsettled } from '#kernel/money/prediction-refusals.ts'
import type { SignerLimit } from '#kernel/money/prediction-venue.ts'
import { builder, fetchOne, query } from '#store/query.ts'
import type { PredmktDeps } from './deps.ts'
import { endMode, isVenueMode, noteMode } from './store/venue-mode.ts'

/** What the venue said last of a signer's budget, and of what it takes from anybody; all instances share it through the database. */

export type Blocked = { until: Date; text: string }
type Reply = { limit: SignerLimit | null } & ({ type: string } | Unsettled)

/** Orders that spend leave this much of the budget to cancels and exits. */
const exitReserve = 5

export const createRateBudget = ({ db, venue }: Pick<PredmktDeps, 'db' | 'venue'>) => ({
  async blockedUntil(
    signer: string,
    { isExit, now }: { isExit: boolean; now: Date },
  ): Promise<Blocked | undefined> {
    const row = await fetchOne(
      db,
      builder
        .selectFrom('prediction_rate_budget')
        .selectAll()
        .where('venue', '=', venue.name)
        .where('signer', '=', signer.toLowerCase()),
    )
    const text = 'venue_rate_limited: the venue limits the requests of this account'
    if (row?.blocked_until && row.blocked_until > now) return { until: row.blocked_until, text }
    const isSpent = row?.remaining != null && row.remaining <= (isExit ? 0 : exitReserve)
    return isSpent && row?.reset_at && row.reset_at > now ? { until: row.reset_at, text } : undefined
  },

  async note(signer: string, reply: Reply, now: Date): Promise<void> {
    const { limit } = reply
    await noteModeOf(db, venue.name, reply, now)
    const refusal =
      'reason' in reply && reply.type === 'later' && reply.reason === 'rate_limited' ? reply : undefined
    if (!limit && !refusal) return
    const resetAt = limit?.resetAtSeconds == null ? null : later(new Date(0), limit.resetAtSeconds * 1_000)
    const blockedUntil = refusal?.retryAfterMs == null ? null : later(now, refusal.retryAfterMs)
    await query(
      db,
      `insert into prediction_rate_budget as b (venue, signer, remaining, reset_at, blocked_until, updated_at)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (venue, signer) do update set remaining = excluded.remaining, reset_at = excluded.reset_at,
         blocked_until = excluded.blocked_until, updated_at = excluded.updated_at`,
      [venue.name, signer.toLowerCase(), limit?.remaining ?? null, resetAt, blockedUntil, now],
    )
  },
})

/** A refusal says what the venue takes now, and an order that it took ends that. */
async function noteModeOf(db: PredmktDeps['db'], venue: string, reply: Reply, now: Date): Promise<void> {
  if (reply.type === 'accepted') return endMode(db, venue)
  if (!('reason' in reply) || reply.type !== 'later' || !isVenueMode(reply.reason)) return
  const until = reply.retryAfterMs === null ? null : later(now, reply.retryAfterMs)
  await noteMode(db, { venue, mode: reply.reason, until, now })
}
