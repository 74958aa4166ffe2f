import { afterFill, type HeldShares, noShares } from '#features/predmkt/held-shares.ts'
import { mulDiv } from '#kernel/money/money.ts'
import { type Queryable, query } from '#store/query.ts'
import type { PredictionFillRow } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'

/**
 * What is held of an outcome after each of its confirmed fills, in the order of the matches. Of those of one moment
 * purchases come first, because a sale needs shares.
 */

const order = 'matched_at, side, trade_id, order_id'
const reversed = 'matched_at desc, side desc, trade_id desc, order_id desc'

type Counted = Pick<PredictionFillRow, 'held' | 'held_cost' | 'realized'>
const heldOf = ({ held, held_cost: cost, realized }: Counted): HeldShares => ({
  units: BigInt(held ?? 0),
  costUnits: BigInt(cost ?? 0),
  realizedUnits: BigInt(realized ?? 0),
})

/** What a share of an outcome has cost on average, in micro-dollars; null where none is held. */
export async function averageCostMicros(
  db: Queryable,
  { userId, venue }: AccountKey,
  outcomeId: string,
): Promise<bigint | null> {
  const [last] = await query<Counted>(
    db,
    `select held, held_cost, realized from prediction_fill where user_id = $1 and venue = $2 and outcome_id = $3
       and settlement = 'confirmed' and held is not null order by ${reversed} limit 1`,
    [userId, venue, outcomeId],
  )
  const { units, costUnits } = last ? heldOf(last) : noShares
  return units === 0n ? null : mulDiv(costUnits, 1_000_000n, units)
}

/** Counts from the first fill on that is not counted yet: a trade can be confirmed after one that was matched later. */
export async function countHeld(
  db: Queryable,
  { userId, venue }: AccountKey,
  outcomeId: string,
): Promise<void> {
  const ofOutcome = `user_id = $1 and venue = $2 and outcome_id = $3 and settlement = 'confirmed'`
  const values = [userId, venue, outcomeId]
  const rows = await query<PredictionFillRow>(
    db,
    `select * from prediction_fill where ${ofOutcome} and (${order}) >=
       (select ${order} from prediction_fill where ${ofOutcome} and held is null order by ${order} limit 1)
     order by ${order}`,
    values,
  )
  const [first] = rows
  if (!first) return
  const [before] = await query<Counted>(
    db,
    `select held, held_cost, realized from prediction_fill
     where ${ofOutcome} and (${order}) < ($4, $5, $6, $7) order by ${reversed} limit 1`,
    [...values, first.matched_at, first.side, first.trade_id, first.order_id],
  )
  let held = before ? heldOf(before) : noShares
  for (const { trade_id, order_id, side, size, cash, fee } of rows) {
    held = afterFill(held, {
      side,
      sizeUnits: BigInt(size),
      cashUnits: BigInt(cash),
      feeUnits: BigInt(fee),
    })
    await query(
      db,
      `update prediction_fill set held = $5, held_cost = $6, realized = $7
       where user_id = $1 and venue = $2 and trade_id = $3 and order_id = $4`,
      [
        userId,
        venue,
        trade_id,
        order_id,
        String(held.units),
        String(held.costUnits),
        String(held.realizedUnits),
      ],
    )
  }
}
