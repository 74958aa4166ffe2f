import { conflict } from '#kernel/contract/fault.ts'
import { type Queryable, query } from '#store/query.ts'
import type { AccountKey } from './account-store.ts'

/** How many orders one user may have open. */

const isOpen = `o.ended_at is null and o.status <> 'signed'`
/** Each reading of an account reads all of its open orders. */
const openOrdersMax = 200

/** Refuses an order beyond what one user may have open; one that is on its way counts, and the orders of exits do not. */
export async function assertOrderRoom(db: Queryable, { userId, venue }: AccountKey): Promise<void> {
  const [row] = await query<{ count: number }>(
    db,
    `select (select count(*) from prediction_order o
         where user_id = $1 and venue = $2 and leg = 'order' and ${isOpen})::integer
       + (select count(*) from task t where user_id = $1 and status in ('pending', 'running')
         and kind = 'predmkt_order'
         and not exists (select from prediction_order o where task_id = t.id and ${isOpen}))::integer as count`,
    [userId, venue],
  )
  const count = row?.count ?? 0
  if (count < openOrdersMax) return
  throw conflict(
    `A user has at most ${openOrdersMax} open orders: cancel some of them first`,
    `${count} orders are open`,
  )
}
