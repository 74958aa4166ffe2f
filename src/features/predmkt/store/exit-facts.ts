import {
  type EntryFacts,
  type ExitFacts,
  leftUnits,
  type PairFacts,
  pauseMs,
  releasesOf,
  type SaleFacts,
} from '#features/predmkt/exit-rules.ts'
import { later } from '#kernel/clock.ts'
import { mulDiv } from '#kernel/money/money.ts'
import type { OutcomeOrder } from '#kernel/money/prediction-views.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, query } from '#store/query.ts'
import type { PredictionExitRow, PredictionFillRow, PredictionOrderRow } from '#store/tables/predmkt.ts'
import type { AccountKey } from './account-store.ts'
import { isLost } from './order-store.ts'

/** What is recorded of purchases with exits: their trades, the orders of their exits, and the tasks of these. */

const dollar = 1_000_000n

export type ExitRow = PredictionExitRow & { is_running: boolean; task_error: string | null }
type OrderSums = {
  confirmed: string
  failed: string
  open: string
  cost: string
  is_running: boolean
}
type OrderRow = PredictionOrderRow & OrderSums

/** A purchase, the orders of its exits, and its open exits. */
export type Pair = Pick<PairFacts, 'entry' | 'sales' | 'exits'> & { row: PredictionOrderRow; rows: ExitRow[] }

const runs = `t.status in ('pending', 'running')`

const exitColumns = `select e.*, coalesce(${runs}, false) as is_running, t.error ->> 'message' as task_error
  from prediction_exit e left join task t on t.id = e.exit_task_id
  where e.state in ('waiting', 'resting', 'watched', 'executing')`

const orderColumns = `select o.*, f.confirmed, f.failed, f.open, f.cost,
    exists (select from task t where t.id = o.task_id and ${runs}) as is_running
  from prediction_order o cross join lateral (
    select coalesce(sum(size) filter (where settlement = 'confirmed'), 0) as confirmed,
      coalesce(sum(size) filter (where settlement = 'failed'), 0) as failed,
      coalesce(sum(size) filter (where settlement not in ('confirmed', 'failed')), 0) as open,
      coalesce(sum(cash + fee) filter (where settlement = 'confirmed'), 0) as cost
    from prediction_fill where order_id = o.order_id) f
  where o.order_id = any($1) or o.entry_order_id = any($1)`

function orderFacts(row: OrderRow, now: Date) {
  return {
    isEnded: row.ended_at !== null,
    isEndKnown: !row.followed || isLost(row, now),
    sizeUnits: BigInt(row.size),
    matchedUnits: BigInt(row.matched),
    confirmedUnits: BigInt(row.confirmed),
    failedUnits: BigInt(row.failed),
    openUnits: BigInt(row.open),
  }
}

function entryFacts(row: OrderRow, now: Date): EntryFacts {
  const facts = orderFacts(row, now)
  const { confirmedUnits } = facts
  return {
    ...facts,
    releasedUnits: BigInt(row.released),
    averageMicros: confirmedUnits === 0n ? 0n : mulDiv(BigInt(row.cost), dollar, confirmedUnits),
    mayReturn: row.followed && isLost(row, now),
  }
}

const saleFacts = (row: OrderRow, now: Date): SaleFacts => ({
  ...orderFacts(row, now),
  orderId: row.order_id,
  leg: row.leg === 'tp' ? 'tp' : 'sl',
  taskId: row.task_id,
  isTaskRunning: row.is_running,
  isSent: row.status !== 'signed',
  isResolved: row.status === 'resolved',
})

const exitFacts = (row: ExitRow): ExitFacts => ({
  id: row.id,
  leg: row.leg,
  state: row.state,
  orderId: row.order_id,
  taskId: row.exit_task_id,
  isTaskRunning: row.is_running,
  taskError: row.task_error,
  error: row.error,
  triggerMicros: row.trigger_price,
  triggerPercentage: row.trigger_percentage === null ? null : BigInt(row.trigger_percentage),
  attempts: row.attempts,
  retryAt: row.attempts === 0 ? null : later(row.updated_at, pauseMs(row)),
})

/** One purchase with what its open exits stand for. */
export async function pairOf(db: Queryable, entryOrderId: string, now: Date): Promise<Pair | undefined> {
  const [pair] = await pairsOf(db, { entryIds: [entryOrderId], now })
  return pair
}

/** The purchases of an account that have open exits, or open orders of exits that have ended. */
export async function openPairs(db: Queryable, { userId, venue }: AccountKey, now: Date): Promise<Pair[]> {
  const rows = await query<{ id: string }>(
    db,
    `select entry_order_id as id from prediction_exit
       where user_id = $1 and venue = $2 and state in ('waiting', 'resting', 'watched', 'executing')
     union select entry_order_id from prediction_order
       where user_id = $1 and venue = $2 and followed and ended_at is null and entry_order_id is not null`,
    [userId, venue],
  )
  return pairsOf(db, { entryIds: rows.map(({ id }) => id), now })
}

async function pairsOf(
  db: Queryable,
  { entryIds, now }: { entryIds: readonly string[]; now: Date },
): Promise<Pair[]> {
  if (entryIds.length === 0) return []
  const [exits, orders] = await Promise.all([
    query<ExitRow>(db, `${exitColumns} and e.entry_order_id = any($1) order by e.id`, [entryIds]),
    query<OrderRow>(db, orderColumns, [entryIds]),
  ])
  return entryIds.flatMap((id) => {
    const row = orders.find((order) => order.order_id === id)
    if (!row) return []
    const rows = exits.filter((exit) => exit.entry_order_id === id)
    const sales = orders.filter((order) => order.entry_order_id === id)
    return {
      row,
      rows,
      entry: entryFacts(row, now),
      sales: sales.map((sale) => saleFacts(sale, now)),
      exits: rows.map(exitFacts),
    }
  })
}

type FoundSale = Pick<OutcomeOrder, 'outcomeId' | 'sizeUnits' | 'priceMicros' | 'timeInForce'>

/** The venue takes sales of whole hundredths of a share. */
const hundredth = 10_000n

/**
 * The purchase that a sale without a task has sold as its exit: by its size, which is all that is left of the purchase,
 * and by its price. Any other sale was one by hand.
 */
export async function purchaseOfSale(
  tx: Tx,
  { userId, venue }: AccountKey,
  { outcomeId, sizeUnits, priceMicros, timeInForce }: FoundSale,
): Promise<string | undefined> {
  const rows = await query<{ id: string }>(
    tx,
    `select entry_order_id as id from prediction_exit where user_id = $1 and venue = $2 and outcome_id = $3
       and state in ('waiting', 'resting', 'watched', 'executing') group by entry_order_id order by min(created_at)`,
    [userId, venue, outcomeId],
  )
  const pairs = await pairsOf(tx, { entryIds: rows.map(({ id }) => id), now: new Date(0) })
  const isOf = ({ leg, triggerMicros }: ExitFacts): boolean => {
    if (triggerMicros === null) return false
    const matches = timeInForce === 'fak'
    return leg === 'tp'
      ? priceMicros === triggerMicros || (matches && priceMicros > triggerMicros)
      : matches && priceMicros <= triggerMicros
  }
  const found = pairs.find((pair) => {
    // A reading of the venue may have counted the sale as one by hand before.
    const unreleased = { ...pair, entry: { ...pair.entry, releasedUnits: 0n } }
    const isAll = [pair, unreleased].map(leftUnits).some((left) => left - (left % hundredth) === sizeUnits)
    return isAll && pair.exits.some(isOf)
  })
  return found?.row.order_id
}

/** Shares by the chain after a sale, of the outcomes where they were read. */
export type ChainUnits = ReadonlyMap<string, bigint>

/**
 * Makes purchases with exits give up what was sold by hand, in the commit that records the trades. Shares whose trades
 * are open count as bought, because they may be on the chain already. The chain may have more shares than the record,
 * because some came from elsewhere.
 */
export async function releaseSold(
  tx: Tx | Queryable,
  { userId, venue }: AccountKey,
  { fills, chainUnits }: { fills: readonly PredictionFillRow[]; chainUnits: ChainUnits },
): Promise<void> {
  for (const outcomeId of new Set(fills.map(({ outcome_id }) => outcome_id))) {
    const entries = await query<{ order_id: string }>(
      tx,
      `select order_id from prediction_order where order_id in (select entry_order_id from prediction_exit
         where user_id = $1 and venue = $2 and outcome_id = $3
           and state in ('waiting', 'resting', 'watched', 'executing')) order by at, order_id for update`,
      [userId, venue, outcomeId],
    )
    if (entries.length === 0) continue
    const entryIds = entries.map(({ order_id }) => order_id)
    const pairs = await pairsOf(tx, { entryIds, now: new Date(0) })
    const lots = pairs.map((pair) => ({ id: pair.row.order_id, leftUnits: leftUnits(pair) }))
    const recorded = await recordedUnits(tx, { userId, venue }, outcomeId)
    const onChain = chainUnits.get(outcomeId) ?? 0n
    const releases = releasesOf(lots, recorded > onChain ? recorded : onChain)
    await release(tx, releases)
  }
}

/** Shares of an outcome by the record: bought, less those that were sold by hand, and those that exits sell. */
async function recordedUnits(
  tx: Tx | Queryable,
  { userId, venue }: AccountKey,
  outcomeId: string,
): Promise<bigint> {
  const [row] = await query<{ units: string }>(
    tx,
    `select coalesce((select sum(case f.side when 'buy' then f.size else -f.size end)
         from prediction_fill f left join prediction_order o using (order_id)
         where f.user_id = $1 and f.venue = $2 and f.outcome_id = $3
           and (case f.side when 'buy' then f.settlement <> 'failed'
             else f.settlement = 'confirmed' and coalesce(o.leg, 'order') = 'order' end)), 0)
       - coalesce((select sum(greatest(o.matched - f.failed, f.valid)) from prediction_order o
         cross join lateral (select coalesce(sum(size) filter (where settlement = 'failed'), 0) as failed,
           coalesce(sum(size) filter (where settlement <> 'failed'), 0) as valid
           from prediction_fill where order_id = o.order_id) f
         where o.user_id = $1 and o.venue = $2 and o.outcome_id = $3 and o.leg <> 'order'), 0) as units`,
    [userId, venue, outcomeId],
  )
  return BigInt(row?.units ?? 0)
}

export async function release(
  tx: Tx | Queryable,
  releases: readonly { id: string; units: bigint }[],
): Promise<void> {
  for (const { id, units } of releases)
    await query(
      tx,
      'update prediction_order set released = released + $2, short_since = null where order_id = $1',
      [id, String(units)],
    )
}
