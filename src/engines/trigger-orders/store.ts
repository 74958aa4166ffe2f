import type { JsonObject, Tx } from '#kernel/task.ts'
import type { TriggerOrder } from '#kernel/trigger-order.ts'
import { type Queryable, query } from '#store/query.ts'

/** The rows of orders that wait for a price, of every kind. */

export type NewTriggerOrder = Pick<
  TriggerOrder,
  'id' | 'user_id' | 'kind' | 'market' | 'direction' | 'trigger_price' | 'input'
> &
  Partial<
    Pick<
      TriggerOrder,
      'quote_key' | 'trail' | 'high_water' | 'oco_group' | 'entry_cloid' | 'source_task_id' | 'expires_at'
    >
  > & { status?: 'waiting' | 'armed'; created_at: Date }

/** A repeated insert changes nothing, so the ids come from what asked for the orders. */
export async function insertTriggerOrders(tx: Tx, orders: readonly NewTriggerOrder[]): Promise<void> {
  if (orders.length === 0) return
  const rows = orders.map((order) => ({
    status: 'armed',
    attempts: 0,
    ...order,
    updated_at: order.created_at,
  }))
  await query(
    tx,
    `insert into trigger_order select r.* from jsonb_populate_recordset(null::trigger_order, $1::jsonb) r
       on conflict do nothing`,
    [JSON.stringify(rows)],
  )
}

export type RearmRequest = { orderId: string; taskId: string; input?: JsonObject; at: Date }

/**
 * Arms an order again whose task executed nothing, and with it the orders of its group that it had cancelled. Runs in
 * the commit that ends this task; a later task of the order, or an order that was cancelled since, stays as it is.
 */
export async function rearmTriggerOrder(
  tx: Tx,
  { orderId, taskId, input = {}, at }: RearmRequest,
): Promise<TriggerOrder[]> {
  return query<TriggerOrder>(
    tx,
    `with again as (
       update trigger_order set status = 'armed', input = input || $3::jsonb, updated_at = $4
         where id = $1 and task_id = $2 and status = 'fired' returning *),
     siblings as (
       update trigger_order t set status = 'armed', cancelled_by = null, updated_at = $4
         from again where t.cancelled_by = again.id and t.status = 'cancelled' returning t.*)
     select * from again union all select * from siblings`,
    [orderId, taskId, JSON.stringify(input), at],
  )
}

/** Markets with open orders. */
export const marketsWithOrders = async (
  db: Queryable,
  prefix: string,
): Promise<{ market: string; waiting: boolean }[]> => {
  const markets = await query<{ market: string; waiting: boolean }>(db, 'select * from trigger_markets($1)', [
    marketsMax,
  ])
  return markets.filter(({ market }) => market.startsWith(prefix))
}
const marketsMax = 5_000
