import type { ScheduleRun } from '#kernel/contract/caller.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Queryable, query } from '#store/query.ts'

/** The part of a holding that a scheduled run may reduce, whatever its limits are: what its schedule has opened. */

type Holding = {
  userId: string
  market: 'perp' | 'spot'
  symbol: string
  /** Whether the holding is a long position or a spot balance; false for a short position. */
  isLong: boolean
  /** The size that the account holds, without a sign. */
  held: string
}

/**
 * Returns the part of a holding that the schedule of the run has opened and not closed, or the whole holding if no
 * schedule bounds the caller. Fills of exits that rest at the venue belong to the task of their entry.
 */
export async function reduciblePart(
  db: Queryable,
  run: ScheduleRun | undefined,
  { userId, market, symbol, isLong, held }: Holding,
): Promise<string> {
  if (!run?.reducesOwn) return held
  const [row] = await query<{ own: string }>(
    db,
    `select trim_scale(greatest(0, coalesce(sum(case when $4 then 1 else -1 end
       * (f.signed_size - case when f.fee_token = f.base then f.fee else 0 end)), 0)))::text as own
     from venue_order o join venue_fill f on f.user_id = o.user_id and f.venue = o.venue and f.cloid = o.cloid
       join task t on t.id = o.task_id join strategy_execution e on e.id = t.parent_id
     where o.user_id = $1 and o.market = $2 and o.symbol = $3 and e.strategy_id = $5`,
    [userId, market, symbol, isLong, run.schedule],
  )
  const own = row?.own ?? '0'
  if (compareDecimals(own, '0') === 0)
    throw new Fault('policy_denied', `The schedule has opened nothing of ${symbol} that is still open`, {
      extras: {
        rule: 'own_position',
        limit: own,
        remaining: own,
        reason: 'a run reduces what it has opened',
      },
    })
  return compareDecimals(own, held) < 0 ? own : held
}
