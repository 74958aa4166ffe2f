import { Fault } from '#kernel/contract/fault.ts'
import { isSpotAsset, type VenueOrder } from '#kernel/money/venue-actions.ts'
import type { JsonObject, Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, jsonText, type Queryable, query } from '#store/query.ts'
import { adoptedKind } from '#store/record-found-effect.ts'
import { recentTasks } from './recent-tasks-sql.ts'

export const venueName = 'hyperliquid'

export type OrderNote = { cloid: string; leg: string; symbol: string }
type OrdersSent = { userId: string; taskId: string; at: Date; orders: readonly VenueOrder[] }

export const orderRows = (
  notes: readonly OrderNote[],
  { userId, taskId, at, orders }: OrdersSent,
): JsonObject[] =>
  notes.map(({ cloid, leg, symbol }) => {
    const order = orders.find((each) => each.cloid === cloid)
    if (!order) throw new Error(`the action does not contain the noted order ${cloid}`)
    const { asset, isBuy, size, price, when, reduceOnly } = order
    return {
      cloid,
      venue: venueName,
      user_id: userId,
      task_id: taskId,
      leg,
      symbol,
      at: at.toISOString(),
      market: isSpotAsset(asset) ? 'spot' : 'perp',
      is_buy: isBuy,
      size,
      price,
      trigger_price: 'triggerPrice' in when ? when.triggerPrice : null,
      reduce_only: reduceOnly,
    }
  })

/** Records orders in the transaction that signs them; a repeated step records them once. */
export async function noteOrders(tx: Tx, notes: readonly OrderNote[], sent: OrdersSent): Promise<void> {
  if (notes.length === 0) return
  await query(
    tx,
    `insert into venue_order select * from jsonb_populate_recordset(null::venue_order, $1::jsonb) on conflict do nothing`,
    [jsonText(orderRows(notes, sent))],
  )
}

/** Records an order that was found at the venue, for the task that shows the order to its user. */
export async function noteFoundOrder(
  tx: Tx,
  userId: string,
  { taskId, order, at }: { taskId: string; order: FoundOrderRow; at: Date },
): Promise<void> {
  await query(
    tx,
    `insert into venue_order (cloid, venue, user_id, task_id, leg, symbol, at, market, is_buy, size, price, trigger_price, reduce_only)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) on conflict do nothing`,
    [
      order.cloid,
      venueName,
      userId,
      taskId,
      order.leg,
      order.symbol,
      at,
      order.market,
      order.is_buy,
      order.size,
      order.price,
      order.trigger_price,
      order.reduce_only,
    ],
  )
}
type FoundOrderRow = OrderNote & {
  market: 'perp' | 'spot'
  is_buy: boolean
  size: string
  price: string
  trigger_price: string | null
  reduce_only: boolean
}

export type OrderOwner = { taskId: string; leg: string }

/** Returns the task and leg of orders by client order id; orders of the account's other clients are missing. */
export async function ownersOfOrders(
  db: Queryable,
  userId: string,
  cloids: readonly string[],
): Promise<Map<string, OrderOwner>> {
  if (cloids.length === 0) return new Map()
  const rows = await fetchAll(
    db,
    builder
      .selectFrom('venue_order')
      .select(['cloid', 'task_id', 'leg'])
      .where('user_id', '=', userId)
      .where('cloid', '=', (eb) => eb.fn.any(eb.val([...cloids]))),
  )
  return new Map(rows.map(({ cloid, task_id, leg }) => [cloid, { taskId: task_id, leg }]))
}

/**
 * Whether one of the orders belongs to an adopted task: it was found at the venue, and no request has replaced that
 * task.
 */
export async function isAnyAdopted(
  db: Queryable,
  userId: string,
  cloids: readonly string[],
): Promise<boolean> {
  const [row] = await query<{ task_id: string }>(
    db,
    `select o.task_id from venue_order o join task t on t.id = o.task_id
       where o.user_id = $1 and o.cloid = any($2) and t.kind = $3 limit 1`,
    [userId, cloids, adoptedKind],
  )
  return row !== undefined
}

export async function tasksOfOrders(
  db: Queryable,
  userId: string,
  cloids: readonly string[],
): Promise<Map<string, string>> {
  const owners = await ownersOfOrders(db, userId, cloids)
  return new Map([...owners].map(([cloid, { taskId }]) => [cloid, taskId]))
}

/** Returns those of the keys whose transfers other tasks have claimed. */
export async function claimedTransferKeys(db: Queryable, keys: readonly string[], taskId: string) {
  if (keys.length === 0) return new Set<string>()
  const rows = await fetchAll(
    db,
    builder
      .selectFrom('claimed_transfer')
      .select('key')
      .where('venue', '=', venueName)
      .where('task_id', '<>', taskId)
      .where('key', '=', (eb) => eb.fn.any(eb.val([...keys]))),
  )
  return new Set(rows.map(({ key }) => key))
}

/** Claims a transfer for a task; returns false if another task has claimed it. */
export async function claimTransfer(
  tx: Tx,
  { key, userId, taskId, at }: { key: string; userId: string; taskId: string; at: Date },
): Promise<boolean> {
  const rows = await query<{ task_id: string }>(
    tx,
    `insert into claimed_transfer (venue, key, user_id, task_id, at) values ($1, $2, $3, $4, $5)
     on conflict (venue, key) do update set at = claimed_transfer.at returning task_id`,
    [venueName, key, userId, taskId, at],
  )
  return rows[0]?.task_id === taskId
}

/**
 * The fault for a transfer that another task has claimed. The step runs again, and then searches transfers that nobody
 * has claimed.
 */
export const claimedByAnother = (what: string): Fault =>
  new Fault('unavailable', `The ${what} that was found belongs to another task; the search is repeated`)

export type LastTask = { id: string; status: string; error: JsonObject | null }
/** Returns a user's last task of a kind. A range, not an equality, makes the planner use the index by kind. */
export const lastTaskOf = (db: Queryable, userId: string, kind: string) =>
  fetchOne(
    db,
    builder
      .selectFrom('task')
      .select(['id', 'status', 'error'])
      .where('user_id', '=', userId)
      .where('kind', '>=', kind)
      .where('kind', '<=', kind)
      .orderBy('kind')
      .orderBy('id', 'desc')
      .limit(1),
  ) as Promise<LastTask | undefined>

type RecentOrder = { userId: string; orderId: string; kind: string; since: Date }

/** Returns the market of an order that a recent task of the user placed. */
export async function marketOfRecentOrder(
  db: Queryable,
  { userId, orderId, kind, since }: RecentOrder,
): Promise<{ symbol: string; asset: number } | undefined> {
  const [row] = await query<{ symbol: string; asset: number }>(
    db,
    `with ${recentTasks}
     select data ->> 'symbol' as symbol, (data -> 'asset')::integer as asset from recent
     where data ->> 'market' = $3
       and (result ->> 'order_id' = $4 or result -> 'tp_oids' ? $4 or result -> 'sl_oids' ? $4) limit 1`,
    [userId, since, kind, orderId],
  )
  return row
}

/** Whether an id is that of an order at the venue; triggers held by the gateway have ids of another format. */
export const isVenueOrderId = (id: string): boolean => /^\d{1,15}$/.test(id)

export type RecentOrders = {
  symbol: string
  asset: number
  /** The order id of the entry if it rests in the book; null otherwise. */
  resting: string | null
  /** Whether the entry is filled, so that its exits are active; other exits wait for their entry. */
  is_filled: boolean
  tp_oids: string[]
  sl_oids: string[]
}

/** Returns orders that recent tasks of the user placed; the venue's lists may not contain them yet. */
export const recentOrders = (
  db: Queryable,
  { userId, kind, since }: Omit<RecentOrder, 'orderId'>,
): Promise<RecentOrders[]> =>
  query<RecentOrders>(
    db,
    `with ${recentTasks}
     select data ->> 'symbol' as symbol, (data -> 'asset')::integer as asset,
       case when result ->> 'order_status' = 'resting' then result ->> 'order_id' end as resting,
       coalesce(result ->> 'order_status', 'filled') = 'filled' as is_filled,
       coalesce(result -> 'tp_oids', '[]') as tp_oids, coalesce(result -> 'sl_oids', '[]') as sl_oids
     from recent where data ->> 'market' = $3 and result is not null
     order by id desc limit 200`,
    [userId, since, kind],
  )
