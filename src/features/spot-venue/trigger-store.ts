import { insertTriggerOrders, marketsWithOrders } from '#engines/trigger-orders/store.ts'
import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import { assetKey } from '#engines/venue/records/markets.ts'
import { conflict, Fault } from '#kernel/contract/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import { armedExecutionId } from '#kernel/task/execution-id.ts'
import type { JsonObject, Tx } from '#kernel/task/task.ts'
import { builder, fetchAll, fetchOne, type Queryable, query } from '#store/query.ts'

/** If the venue supports no spot triggers, the gateway holds them as rows that the price loop fires once. */

export const triggerKind = 'spot_trigger'
const openTriggersMax = 200
const triggersPerTask = 2

/** The stored input of a trigger; a `size` of null sells the balance that is free when the trigger fires. */
export type TriggerInput = {
  symbol: string
  leg: ExitLeg
  size: string | null
  trigger_price: string
  parent_order_id: string | null
  /** The limit price of the resting entry. While the market is above it, a fill is unlikely. */
  parent_price?: string
  /** How many sales of this trigger the venue has refused. */
  unsold?: number
  /** How many sales of this trigger have failed while the venue accepted no sale. */
  closed?: number
}
export type TriggerRow = {
  id: string
  user_id: string
  market: string
  trigger_price: string
  oco_group: string | null
  input: TriggerInput
  status: string
  entry_cloid: string | null
  source_task_id: string | null
  created_at: Date
}

/** Types the input of a trigger's row, which only `insertTriggers` writes. */
const toTriggerRow = <Row extends { input: unknown }>(row: Row) => ({
  ...row,
  input: row.input as TriggerInput,
})

/** Returns an id that follows from task and leg, so that a repeated step inserts no trigger twice. */
export function triggerId(taskId: string, leg: ExitLeg | 'group'): string {
  const hex = sha256(`${taskId}:trigger:${leg}`)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`]
  return [...parts, hex.slice(20, 32)].join('-')
}

export type NewTriggers = {
  userId: string
  taskId: string
  executionId: string
  symbol: string
  size: string | null
  exits: readonly { leg: ExitLeg; price: string }[]
  /** The resting entry of the exits; null if the exits are armed at once. */
  entry: { cloid: string; orderId: string | null; price: string } | null
  at: Date
}

/** Inserts triggers in the commit that ends the task, so that result and triggers appear together. */
export async function insertTriggers(tx: Tx, triggers: NewTriggers): Promise<void> {
  const { userId, taskId, executionId, symbol, size, exits, entry, at } = triggers
  const group = exits.length > 1 ? triggerId(taskId, 'group') : null
  await insertTriggerOrders(
    tx,
    exits.map(({ leg, price }) => {
      const input: TriggerInput = {
        symbol,
        leg,
        size,
        trigger_price: price,
        parent_order_id: entry?.orderId ?? null,
        ...(entry && { parent_price: entry.price }),
      }
      return {
        id: triggerId(taskId, leg),
        user_id: userId,
        kind: triggerKind,
        market: assetKey('spot', symbol),
        direction: leg === 'tp' ? 'gte' : 'lte',
        trigger_price: price,
        oco_group: group,
        input,
        status: entry ? 'waiting' : 'armed',
        entry_cloid: entry?.cloid ?? null,
        source_task_id: taskId,
        execution_id: armedExecutionId(executionId, leg),
        created_at: at,
      }
    }),
  )
}

const columns = [
  'id',
  'user_id',
  'market',
  'trigger_price',
  'oco_group',
  'input',
  'status',
  'entry_cloid',
  'source_task_id',
  'created_at',
] as const

export async function openTriggers(db: Queryable, userId: string): Promise<TriggerRow[]> {
  const rows = await fetchAll(
    db,
    builder
      .selectFrom('trigger_order')
      .select([...columns])
      .where('user_id', '=', userId)
      .where('kind', '=', triggerKind)
      .where('status', 'in', ['waiting', 'armed'])
      .orderBy('created_at'),
  )
  return rows.map(toTriggerRow)
}

export async function assertTriggerLimit(db: Queryable, userId: string): Promise<void> {
  const [row] = await query<{ count: number }>(
    db,
    `select count(*)::integer as count from trigger_order
       where user_id = $1 and kind = $2 and status in ('waiting', 'armed')`,
    [userId, triggerKind],
  )
  if ((row?.count ?? 0) + triggersPerTask <= openTriggersMax) return
  throw conflict(
    `The gateway holds at most ${openTriggersMax} exits per user: cancel some of them first`,
    `${row?.count} exits are open`,
  )
}

export async function findTrigger(
  db: Queryable,
  userId: string,
  id: string,
): Promise<TriggerRow | undefined> {
  const row = await fetchOne(
    db,
    builder
      .selectFrom('trigger_order')
      .select([...columns])
      .where('id', '=', id)
      .where('user_id', '=', userId)
      .where('kind', '=', triggerKind),
  )
  return row && toTriggerRow(row)
}

export type ArmedTrigger = Pick<TriggerRow, 'id' | 'entry_cloid' | 'created_at'>

export const armedTriggersIn = (db: Queryable, userId: string, symbol: string): Promise<ArmedTrigger[]> =>
  query<ArmedTrigger>(
    db,
    `select id, entry_cloid, created_at from trigger_order where user_id = $1 and market = $2 and kind = $3 and status = 'armed'`,
    [userId, assetKey('spot', symbol), triggerKind],
  )

export const isOpenTrigger = (status: string | undefined): boolean =>
  status === 'armed' || status === 'waiting'

/**
 * Cancels triggers in the commit that reports the cancel, so that a task cancelled earlier changes nothing. If a
 * trigger is firing or has changed since it was read, this throws and the step runs again.
 */
export async function cancelTriggers(tx: Tx, userId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  // A firing transaction holds its row while it waits for the user's event log, so waiting here could deadlock.
  const rows = await query(
    tx,
    `update trigger_order set status = 'cancelled', updated_at = clock_timestamp() where id in
       (select id from trigger_order where id = any($1) and user_id = $2 and status in ('waiting', 'armed')
        for update skip locked) returning id`,
    [ids, userId],
  )
  if (rows.length < ids.length) throw new Fault('unavailable', 'A trigger changed during its cancel')
}

/** Cancels triggers whose balance was sold; a later purchase has its own exits. */
export async function cancelArmedTriggers(tx: Tx, ids: readonly string[]): Promise<void> {
  await query(
    tx,
    `update trigger_order set status = 'cancelled', updated_at = clock_timestamp() where id = any($1) and status = 'armed'`,
    [ids],
  )
}

type OwnTriggers = { userId: string; symbol: string; schedule: string; left: string }
type OwnTrigger = { id: string; pair: string; size: string | null }

/**
 * Fits the armed triggers of a schedule to what is left of its part: the newest pairs stay, the first one that it does
 * not cover whole sells the rest, and the older ones are cancelled. A trigger that is firing is left alone.
 */
export async function trimTriggers(tx: Tx, { userId, symbol, schedule, left }: OwnTriggers): Promise<void> {
  const rows = await query<OwnTrigger>(
    tx,
    `select g.id, coalesce(g.oco_group, g.id) as pair, g.input ->> 'size' as size
     from trigger_order g join task source on source.id = g.source_task_id
       join strategy_execution e on e.id = source.parent_id
     where g.user_id = $1 and g.market = $2 and g.kind = $3 and g.status = 'armed' and e.strategy_id = $4
     order by g.created_at desc, pair for update of g skip locked`,
    [userId, assetKey('spot', symbol), triggerKind, schedule],
  )
  let rest = toFixedPoint(left)
  for (const triggers of Map.groupBy(rows, ({ pair }) => pair).values()) {
    const ids = triggers.map(({ id }) => id)
    const size = triggers[0]?.size ?? null
    const units = size === null ? undefined : toFixedPoint(size)
    if (rest <= 0n) await cancelArmedTriggers(tx, ids)
    else if (units === undefined || units > rest) await resizeTriggers(tx, ids, fromFixedPoint(rest))
    rest -= units ?? rest
  }
}

const resizeTriggers = (tx: Tx, ids: readonly string[], size: string) =>
  query(
    tx,
    `update trigger_order set input = input || jsonb_build_object('size', $2::text), updated_at = clock_timestamp()
     where id = any($1) and status = 'armed'`,
    [ids, size],
  )

export const marketsWithTriggers = (db: Queryable) => marketsWithOrders(db, assetKey('spot', ''))

export type PendingEntry = {
  market: string
  user_id: string
  entry_cloid: string
  price: string | null
  since: Date
}

export const pendingEntries = (db: Queryable, markets: readonly string[]): Promise<PendingEntry[]> =>
  query<PendingEntry>(
    db,
    `select market, user_id, entry_cloid, input->>'parent_price' as price, min(created_at) as since from trigger_order
       where market = any($1) and status = 'waiting' and kind = $2 and entry_cloid is not null
       group by 1, 2, 3, 4 limit 5000`,
    [markets, triggerKind],
  )

/** Arms the exits of an ended entry with its filled size, or cancels them if nothing was filled. */
export async function resolvePendingEntry(
  db: Queryable,
  entryCloid: string,
  filled: string | null,
): Promise<void> {
  const change: JsonObject = filled === null ? {} : { size: filled }
  await query(
    db,
    `update trigger_order set status = $2, input = input || $3::jsonb, updated_at = clock_timestamp() where entry_cloid = $1 and status = 'waiting'`,
    [entryCloid, filled === null ? 'cancelled' : 'armed', JSON.stringify(change)],
  )
}
