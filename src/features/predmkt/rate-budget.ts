import { later } from '#kernel/clock.ts'
import type { Unsettled } from '#kernel/money/prediction-refusals.ts'
import type { SignerLimit } from '#kernel/money/prediction-venue.ts'
import { builder, fetchOne, query } from '#store/query.ts'
import type { PredmktDeps } from './deps.ts'
import { endMode, isVenueMode, noteMode } from './store/venue-mode.ts'

/** What the venue said last of a signer's budget, and of what it takes from anybody; all instances share it through the database. */

export type Blocked = { until: Date; text: string }
/** The venue counts orders and cancels apart. */
type BudgetKind = 'order' | 'cancel'
type Reply = { limit: SignerLimit | null } & ({ type: string } | Unsettled)
type Deps = Pick<PredmktDeps, 'db' | 'venue' | 'log'>

/** Orders that spend leave this much of the budget to exits. */
const exitReserve = 5
/** The buckets of the venue fill within seconds, so that a time beyond this is none. */
const resetMaxMs = 86_400_000

export const createRateBudget = ({ db, venue, log }: Deps, kind: BudgetKind) => ({
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
        .where('signer', '=', signer.toLowerCase())
        .where('kind', '=', kind),
    )
    const text = 'venue_rate_limited: the venue limits the requests of this account'
    if (row?.blocked_until && row.blocked_until > now) return { until: row.blocked_until, text }
    const isSpent = row?.remaining != null && row.remaining <= (isExit ? 0 : exitReserve)
    return isSpent && row?.reset_at && row.reset_at > now ? { until: row.reset_at, text } : undefined
  },

  /** Stores what a reply says. It never throws, because the reply itself says what became of an order. */
  async note(signer: string, reply: Reply, now: Date): Promise<void> {
    try {
      await noteModeOf(db, venue.name, reply, now)
      await noteLimit({ db, venue: venue.name, kind, signer }, reply, now)
    } catch (error) {
      log.warn({ error, venue: venue.name, kind }, 'the budget of a signer was not stored')
    }
  },
})

type Noted = Pick<Deps, 'db'> & { venue: string; kind: BudgetKind; signer: string }

async function noteLimit({ db, venue, kind, signer }: Noted, reply: Reply, now: Date): Promise<void> {
  const { limit } = reply
  const refusal =
    'reason' in reply && reply.type === 'later' && reply.reason === 'rate_limited' ? reply : undefined
  if (!limit && !refusal) return
  const resetMs = limit?.resetAtSeconds == null ? null : limit.resetAtSeconds * 1_000
  const isFar = resetMs !== null && Math.abs(resetMs - now.getTime()) > resetMaxMs
  const blockedUntil = refusal?.retryAfterMs == null ? null : later(now, refusal.retryAfterMs)
  await query(
    db,
    `insert into prediction_rate_budget as b (venue, signer, kind, remaining, reset_at, blocked_until, updated_at)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (venue, signer, kind) do update set remaining = excluded.remaining, reset_at = excluded.reset_at,
       blocked_until = excluded.blocked_until, updated_at = excluded.updated_at`,
    [
      venue,
      signer.toLowerCase(),
      kind,
      limit?.remaining ?? null,
      resetMs === null || isFar ? null : new Date(resetMs),
      blockedUntil,
      now,
    ],
  )
}

/** A refusal says what the venue takes now, and an order that it took ends that. */
async function noteModeOf(db: PredmktDeps['db'], venue: string, reply: Reply, now: Date): Promise<void> {
  if (reply.type === 'accepted') return endMode(db, venue)
  if (!('reason' in reply) || reply.type !== 'later' || !isVenueMode(reply.reason)) return
  const until = reply.retryAfterMs === null ? null : later(now, reply.retryAfterMs)
  await noteMode(db, { venue, mode: reply.reason, until, now })
}
