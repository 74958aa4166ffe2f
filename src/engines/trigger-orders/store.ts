import { conflict, type Fault } from '#kernel/contract/fault.ts'
import type { JsonObject, Tx } from '#kernel/task/task.ts'
import type { OrderRoom, TriggerOrder, TriggerStatus } from '#kernel/task/trigger-order.ts'
import { type Queryable, query, settleAll } from '#store/query.ts'

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
      | 'execution_id'
      | 'expires_at'
    >
  > & { status?: 'waiting' | 'armed'; created_at: Date }

/** Inserts orders under ids that follow from the request, so that a repeated insert changes nothing. */
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

export type RearmRequest = {
  orderId: string
  taskId: string
  input?: JsonObject
  /** The new quote key; null leaves the order's quote key unchanged. */
  quoteKey?: string | null
  /** The new execution id; null leaves the order's execution id unchanged. */
  executionId?: string | null
  at: Date
}

/**
 * Arms an order again whose task executed nothing, and the orders of its group that it had cancelled, in the commit
 * that ends the task. An order that has a later task, or was cancelled since, stays as it is.
 */
export async function rearmTriggerOrder<Input = JsonObject>(
  tx: Tx,
  { orderId, taskId, input = {}, quoteKey = null, executionId = null, at }: RearmRequest,
): Promise<TriggerOrder<Input>[]> {
  return query<TriggerOrder<Input>>(
    tx,
    `with again as (
       update trigger_order set status = 'armed', input = input || $3::jsonb, updated_at = $4,
           quote_key = coalesce($5, quote_key), execution_id = coalesce($6, execution_id)
         where id = $1 and task_id = $2 and status = 'fired' returning *),
     siblings as (
       update trigger_order t set status = 'armed', cancelled_by = null, updated_at = $4
         from again where t.cancelled_by = again.id and t.status = 'cancelled' returning t.*)
     select * from again union all select * from siblings`,
    [orderId, taskId, JSON.stringify(input), at, quoteKey, executionId],
  )
}

/**
 * Reduces, by `units`, what a group of orders may still sell of the purchase to which the group is limited; negative
 * units increase it again.
 */
export async function takeFromLot(tx: Tx, orderId: string, units: bigint): Promise<void> {
  await query(
    tx,
    `update trigger_order set input = input || jsonb_build_object('lot_left',
         least(greatest((input ->> 'lot_left')::numeric - $2::numeric, 0), (input ->> 'lot_units')::numeric)::text)
       where input ? 'lot_left' and id = any(array(select id from trigger_order
         where id = $1 or oco_group = (select oco_group from trigger_order where id = $1) order by id for update))`,
    [orderId, String(units)],
  )
}

export const marketsWithOrders = (
  db: Queryable,
  prefix: string,
): Promise<{ market: string; waiting: boolean }[]> =>
  query<{ market: string; waiting: boolean }>(db, 'select * from trigger_markets($1, $2)', [
    prefix,
    marketsMax,
  ])
/** The most markets that are read; if more have orders, a round watches a part of them. */
const marketsMax = 50_000

/** Records when markets had a price; without a recent price, the orders of a market do not fire. */
export const notePriced = (db: Queryable, markets: readonly string[], at: Date) =>
  query(db, 'update market_lease set priced_at = $2 where market = any($1)', [markets, at])

export type NearQuote = {
  market: string
  quote_key: string
  /** The nearest trigger of orders that fire at or below the price; `gte` is that of orders at or above it. */
  lte: string | null
  gte: string | null
  /** Users who have an order of this quote, those with the fewest first; one of them is asked for the quote. */
  owners: string[]
  /** How many orders of these owners were read. */
  orders: number
}
export type Band = { market: string; low: string; high: string }

/**
 * Returns quotes that may fire an order, whose trigger is within the band of its market or beyond it. The markets
 * are read in order, and at most `ordersMax` orders in all.
 */
export const quotesNear = (
  db: Queryable,
  bands: readonly Band[],
  { except = [], ordersMax = nearOrdersMax }: { except?: readonly string[]; ordersMax?: number } = {},
): Promise<NearQuote[]> =>
  query<NearQuote>(db, 'select * from trigger_quotes_near($1, $2, $3, $4, $5, $6, $7, $8)', [
    bands.map(({ market }) => market),
    bands.map(({ low }) => low),
    bands.map(({ high }) => high),
    except,
    nearMax,
    nearPerUserMax,
    nearReadMax,
    ordersMax,
  ])
/** The most orders that are read on each side of a market. */
const nearMax = 500
const nearPerUserMax = 10
/** The most orders that are looked through on a side of a market: enough for fifty users at their order limit. */
const nearReadMax = 10_000
/** The most orders that are read of all markets together: enough for at least twenty of the fullest markets. */
export const nearOrdersMax = 20_000

/** An order with the state of its last task, and when its market last had a price. */
export type OrderRow<Input = JsonObject> = TriggerOrder<Input> & {
  task_status: string | null
  task_state: string | null
  task_result: JsonObject | null
  task_error: { code?: string } | null
  priced_at: Date | null
}
const orderColumns = `o.*, coalesce(o.task_end, t.status) as task_status, t.state as task_state, t.result as task_result, t.error as task_error,
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

/** A filter of orders: by their own status, or, for fired orders, by the end of their task. */
export type StatusFilter =
  | { status: Exclude<TriggerStatus, 'fired'> }
  | { taskEnd: NonNullable<TriggerOrder['task_end']> | null }
type OrderPage = { kind: string; limit: number; after: string | null }

/** Returns the SQL of a filter; its literals let the planner use the partial indexes on ends. */
function filterSql(filter: StatusFilter | null): string {
  if (filter === null) return ''
  if ('status' in filter) return `and o.status = '${filter.status}'`
  const { taskEnd } = filter
  return `and o.status = 'fired' and o.task_end ${taskEnd === null ? 'is null' : `= '${taskEnd}'`}`
}

/** Returns orders of a kind, newest first, that match one of the filters; each filter reads one range of an index. */
export async function ordersOf<Input = JsonObject>(
  db: Queryable,
  userId: string,
  { kind, limit, after, filters }: OrderPage & { filters: readonly StatusFilter[] | null },
): Promise<OrderRow<Input>[]> {
  const parts = filters ?? [null]
  const pages = await settleAll(
    parts.map((filter) =>
      query<OrderRow<Input>>(
        db,
        `select ${orderColumns} where o.user_id = $1 and o.kind = $2 and o.id < coalesce($3::uuid, '${lastId}')
           ${filterSql(filter)} order by o.id desc limit $4`,
        [userId, kind, after, limit],
      ),
    ),
  )
  return pages
    .flat()
    .sort((one, other) => (one.id < other.id ? 1 : -1))
    .slice(0, limit)
}
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Returns the user's orders that may still fire, or whose task has not ended. */
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

/** Returns orders of a kind and a market that have not fired, and those that are armed again if the fired one fails. */
export const openOrdersOn = <Input = JsonObject>(
  db: Queryable,
  userId: string,
  { kind, market }: { kind: string; market: string },
): Promise<OrderRow<Input>[]> =>
  query<OrderRow<Input>>(
    db,
    `select ${orderColumns} where o.kind = $2 and o.market = $3 and o.id in (
       select id from trigger_order where user_id = $1 and status in ('waiting', 'armed')
       union all select s.id from task_queue q join trigger_order f on f.task_id = q.task_id and f.status = 'fired'
         join trigger_order s on s.cancelled_by = f.id and s.status = 'cancelled' where q.user_id = $1)
     order by o.id`,
    [userId, kind, market],
  )

/** Returns the orders that other orders cancelled and that are armed again if those execute nothing. */
export const cancelledBy = <Input = JsonObject>(
  db: Queryable,
  orderIds: readonly string[],
): Promise<TriggerOrder<Input>[]> =>
  query<TriggerOrder<Input>>(
    db,
    `select * from trigger_order where cancelled_by = any($1::uuid[]) and status = 'cancelled'`,
    [orderIds],
  )

/** The age at which a market's last price is stale; a watched market gets a price every few seconds. */
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

const limitFault = (open: number, field?: string): Fault =>
  conflict(
    `${field === undefined ? '' : `\`${field}\`: `}At most ${ordersPerUserMax} limit orders and hooks wait per user: cancel some of them first`,
    `${open} orders are open`,
  )

/**
 * Returns how many orders an acceptance adds to the user's open orders, with the maximum and the fault for exceeding
 * it. The fault names the request's `field`.
 */
export const orderRoom = (count: number, field?: string): OrderRoom => ({
  count,
  max: ordersPerUserMax,
  refuse: (open) => limitFault(open, field),
})

/** Throws 409 if the user would have more open orders than allowed. */
export async function assertOrderLimit(
  db: Queryable,
  userId: string,
  { added, field }: { added: number; field?: string },
): Promise<void> {
  const [row] = await query<{ open: number }>(db, 'select orders_open($1) as open', [userId])
  const open = row?.open ?? 0
  if (open + added > ordersPerUserMax) throw limitFault(open, field)
}

/** Checks the limit in the transaction that inserted orders; the lock lets one such transaction count at a time. */
export async function assertOrdersFit(tx: Tx, userId: string, at: Date): Promise<void> {
  await query(tx, 'select policy_lock($1, $2)', [userId, at])
  await assertOrderLimit(tx, userId, { added: 0 })
}
