import type { OrderTaskData } from '#engines/venue/orders/order-task.ts'
import { venueName } from '#engines/venue/records/store.ts'
import type { StepContext, StepResultOf, TaskView, Tx } from '#kernel/task.ts'
import { type Queryable, query } from '#store/query.ts'

/** The leverage of a market that was last set through the gateway. */
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

type Row = { userId: string; symbol: string; isCross: boolean; leverage: number; at: Date }

const record = (tx: Tx, { userId, symbol, isCross, leverage, at }: Row) =>
  query(
    tx,
    `insert into venue_leverage (user_id, venue, symbol, is_cross, leverage, set_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (user_id, venue, symbol)
       do update set is_cross = excluded.is_cross, leverage = excluded.leverage, set_at = excluded.set_at`,
    [userId, venueName, symbol, isCross, leverage, at],
  )

type OrderTaskStep<Patch, Names extends string> = (
  task: TaskView<OrderTaskData>,
  context: StepContext,
) => Promise<StepResultOf<Patch, Names>>

/** Adds the record of the setting to the commit that continues with the order. */
export const withLeverageRecord =
  <Patch, Names extends string>(inner: OrderTaskStep<Patch, Names>): OrderTaskStep<Patch, Names> =>
  async (task, context) => {
    const result = await inner(task, context)
    const { leverage: wanted, symbol } = task.data
    if (!wanted || !('sign' in result)) return result
    const before = result.writes
    const row: Row = {
      userId: task.userId,
      symbol,
      isCross: wanted.is_cross,
      leverage: wanted.value,
      at: context.now,
    }
    return {
      ...result,
      writes: async (tx: Tx) => {
        await before?.(tx)
        await record(tx, row)
      },
    }
  }
