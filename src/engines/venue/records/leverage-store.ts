import type { OrderTaskData } from '#engines/venue/orders/order-task.ts'
import type { TaskView, Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import { venueName } from './order-store.ts'

export type LeverageSetting = { isCross: boolean; leverage: number; setAt: Date }

export async function leverageSettingOf(
  db: Queryable,
  userId: string,
  symbol: string,
): Promise<LeverageSetting | undefined> {
  const [row] = await query<{ is_cross: boolean; leverage: number; set_at: Date }>(
    db,
    'select is_cross, leverage, set_at from venue_leverage where user_id = $1 and venue = $2 and symbol = $3',
    [userId, venueName, symbol],
  )
  return row && { isCross: row.is_cross, leverage: row.leverage, setAt: row.set_at }
}

export const recordLeverage =
  ({ userId, data: { leverage, symbol } }: TaskView<OrderTaskData>, now: Date) =>
  async (tx: Tx): Promise<void> => {
    if (!leverage) return
    await query(
      tx,
      `insert into venue_leverage (user_id, venue, symbol, is_cross, leverage, set_at)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (user_id, venue, symbol)
         do update set is_cross = excluded.is_cross, leverage = excluded.leverage, set_at = excluded.set_at`,
      [userId, venueName, symbol, leverage.is_cross, leverage.value, now],
    )
  }
