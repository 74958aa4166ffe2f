import { Fault } from '#kernel/fault.ts'
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
      | 'quote_key'
      | 'trail'
      | 'high_water'
      | 'oco_group'
      | 'ends_group'
      | 'entry_cloid'
      | 'source_task_id'
      | 'expires_at'
    >
  > & { status?: 'waiting' | 'armed'; created_at: Date }

/** A repeated insert changes nothing, so the ids come from what asked for the orders. */
export async function insertTriggerOrders(tx: Tx, orders: readonly NewTriggerOrder[]): Promise<void> {
  if (orders.length === 0) return
  const rows = orders.map((order) => ({
    status: 'armed',
    attempts: 0,
    ends_group: true,
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

export type MarketPrice = { market: string; price: string; places: number }

/** The trigger price of trailing orders follows a higher price; at most a batch at a time. */
export const raiseTrails = (db: Queryable, prices: readonly MarketPrice[]): Promise<{ id: string }[]> =>
  query<{ id: string }>(
    db,
    `update trigger_order t set high_water = r.price,
       trigger_price = round(ceil(r.price * (1 - t.trail) * 10 ^ r.places) / 10 ^ r.places, r.places::integer)
     from (select o.id, m.price, m.places::numeric as places
       from unnest($1::text[], $2::numeric[], $3::integer[]) m (market, price, places),
         lateral (select id from trigger_order where market = m.market and status = 'armed' and trail is not null
           and high_water < m.price order by high_water limit ${trailsMax} for update skip locked) o) r
     where t.id = r.id returning t.id`,
    [
      prices.map(({ market }) => market),
      prices.map(({ price }) => price),
      prices.map(({ places }) => places),
    ],
  )
const trailsMax = 1_000

/** Without a recent price of its market an order does not fire. */
export const notePriced = (db: Queryable, markets: readonly string[], at: Date) =>
  query(db, 'update market_lease set priced_at = $2 where market = any($1)', [markets, at])

export type NearQuote = {
  market: string
  quote_key: string
  /** The nearest trigger of orders at or below their price, and of those at or above it. */
  lte: string | null
  gte: string | null
  /** One of those who have such an order. */
  user_id: string
}
export type Band = { market: string; low: string; high: string }

/** Quotes that may fire an order: its trigger is within the band of its market, or beyond it. */
export const quotesNear = (
  db: Queryable,
  bands: readonly Band[],
  except: readonly string[],
): Promise<NearQuote[]> =>
  query<NearQuote>(db, 'select * from trigger_quotes_near($1, $2, $3, $4, $5)', [
    bands.map(({ market }) => market),
    bands.map(({ low }) => low),
    bands.map(({ high }) => high),
    except,
    nearMax,
  ])
const nearMax = 500

/** An order with what became of its last task, and when its market last had a price. */
export type OrderRow<Input = JsonObject> = TriggerOrder<Input> & {
  task_status: string | null
  task_state: string | null
  task_result: JsonObject | null
  task_error: { code?: string } | null
  priced_at: Date | null
}
const orderColumns = `o.*, t.status as task_status, t.state as task_state, t.result as task_result, t.error as task_error,
  l.priced_at from trigger_order o left join task t on t.id = o.task_id left join market_lease l on l.market = o.market`

export const ordersById = <Input = JsonObject>(
  db: Queryable,
  userId: string,
  ids: readonly string[],
): Promise<OrderRow<Input>[]> =>
  query<OrderRow<Input>>(db, `select ${orderColumns} where o.user_id = $1 and o.id = any($2::uuid[])`, [
    userId,
    ids,
  ])

/** Newest first. */
export const ordersOf = <Input = JsonObject>(
  db: Queryable,
  userId: string,
  { kinds, limit, after = null }: { kinds: readonly string[]; limit: number; after?: string | null },
): Promise<OrderRow<Input>[]> =>
  query<OrderRow<Input>>(
    db,
    `select ${orderColumns} where o.user_id = $1 and o.kind = any($2) and ($3::uuid is null or o.id < $3)
       order by o.id desc limit $4`,
    [userId, kinds, after, limit],
  )

/** Orders that may still fire or whose task goes on. */
export const openOrdersOf = <Input = JsonObject>(
  db: Queryable,
  userId: string,
  kinds: readonly string[],
): Promise<OrderRow<Input>[]> =>
  query<OrderRow<Input>>(
    db,
    `select ${orderColumns} where o.id in (
       select id from trigger_order where user_id = $1 and status in ('waiting', 'armed') and kind = any($2)
       union select f.id from task_queue q join trigger_order f on f.task_id = q.task_id
         where q.user_id = $1 and f.status = 'fired' and f.kind = any($2))
     order by o.id desc`,
    [userId, kinds],
  )

export async function countArmed(db: Queryable, userId: string, kinds: readonly string[]): Promise<number> {
  const [row] = await query<{ count: number }>(
    db,
    `select count(*)::integer as count from trigger_order
       where user_id = $1 and status in ('waiting', 'armed') and kind = any($2)`,
    [userId, kinds],
  )
  return row?.count ?? 0
}

/**
 * Cancels orders that have not fired. Returns those that are cancelled now; one that was cancelled because another one
 * of its group fired is not armed again with it. Rows of a firing transaction are waited for.
 */
export const cancelOrders = async (
  tx: Tx,
  userId: string,
  { ids, at }: { ids: readonly string[]; at: Date },
): Promise<TriggerOrder[]> => {
  await query(
    tx,
    `update trigger_order set cancelled_by = null, updated_at = $3
       where user_id = $1 and id = any($2::uuid[]) and status = 'cancelled' and cancelled_by is not null`,
    [userId, ids, at],
  )
  return query<TriggerOrder>(
    tx,
    `update trigger_order set status = 'cancelled', updated_at = $3
       where user_id = $1 and id = any($2::uuid[]) and status in ('waiting', 'armed') returning *`,
    [userId, ids, at],
  )
}

/** A market is priced every few seconds while it is watched. */
const staleMs = 60_000
export function isPriceStale(
  { status, priced_at, created_at }: Pick<OrderRow, 'status' | 'priced_at' | 'created_at'>,
  now: Date,
): boolean {
  if (status !== 'armed') return false
  const since = Math.max(new Date(priced_at ?? 0).getTime(), new Date(created_at).getTime())
  return now.getTime() - since > staleMs
}

export const ordersPerUserMax = 200

/** Throws 409 where the user would have more open orders. Run it where the user's events are locked, or before. */
export async function assertOrderLimit(
  db: Queryable,
  userId: string,
  kinds: readonly string[],
  added: number,
) {
  const count = await countArmed(db, userId, kinds)
  if (count + added <= ordersPerUserMax) return
  throw new Fault(
    'conflict',
    `At most ${ordersPerUserMax} limit orders and hooks wait per user: cancel some of them first`,
    { extras: { reason: `${count} orders are open` } },
  )
}
