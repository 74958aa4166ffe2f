import { later } from '#kernel/clock.ts'
import { builder, fetchOne, type Queryable, query } from '#store/query.ts'
import type { PredictionVenueModeRow } from '#store/tables/predmkt.ts'

/** What a venue takes now, where that is less than everything, as its last refusal said. */

export type VenueMode = PredictionVenueModeRow['mode']
const modes: readonly string[] = ['restarting', 'post_only', 'cancel_only'] satisfies VenueMode[]
export const isVenueMode = (reason: string): reason is VenueMode => modes.includes(reason)

/** How long a refusal without a time counts; an order that waits for its end asks again before. */
const unnamedMs = 60_000

export async function noteMode(
  db: Queryable,
  { venue, mode, until, now }: { venue: string; mode: VenueMode; until: Date | null; now: Date },
): Promise<void> {
  await query(
    db,
    `insert into prediction_venue_mode (venue, mode, until, seen_at) values ($1, $2, $3, $4)
     on conflict (venue) do update set mode = excluded.mode, until = excluded.until, seen_at = excluded.seen_at`,
    [venue, mode, until, now],
  )
}

/** An order that the venue took ends a mode in which it takes none. */
export async function endMode(db: Queryable, venue: string): Promise<void> {
  await query(db, `delete from prediction_venue_mode where venue = $1 and mode <> 'post_only'`, [venue])
}

export async function modeOf(
  db: Queryable,
  venue: string,
  now: Date,
): Promise<{ mode: VenueMode; until: Date | null } | undefined> {
  const row = await fetchOne(
    db,
    builder.selectFrom('prediction_venue_mode').selectAll().where('venue', '=', venue),
  )
  return row && (row.until ?? later(row.seen_at, unnamedMs)) > now ? row : undefined
}
