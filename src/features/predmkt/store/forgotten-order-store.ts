import { mulDiv } from '#kernel/money/money.ts'
import type { OutcomeOrder, PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { Tx } from '#kernel/task/task.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import { adoptedKind } from '#store/record-found-effect.ts'
import type { PredictionOrderRow, PredictionOrderStatus } from '#store/tables/predmkt.ts'
import { type AccountKey, lockAccount } from './account-store.ts'
import { purchaseOfSale } from './exit-facts.ts'
import { isEndStatus } from './order-store.ts'

/** Orders of an account that no task of this database has signed. */

/** So many orders without a task are looked at, newest first. */
const ordersMax = 200

type Outcome = AccountKey & { outcomeId: string | null }

/** The ids of orders whose trades are recorded, and which have no row. */
export async function idsOfUnknownFills(
  db: Queryable,
  { userId, venue, outcomeId }: Outcome,
): Promise<string[]> {
  const rows = await query<{ order_id: string }>(
    db,
    `select f.order_id from prediction_fill f where f.user_id = $1 and f.venue = $2
       and ($3::text is null or f.outcome_id = $3)
       and not exists (select from prediction_order o where o.order_id = f.order_id)
     group by f.order_id order by max(f.matched_at) desc limit $4`,
    [userId, venue, outcomeId, ordersMax],
  )
  return rows.map(({ order_id }) => order_id)
}

/** Returns those of the ids that have no row. */
export async function withoutRow(db: Queryable, orderIds: readonly string[]): Promise<string[]> {
  if (orderIds.length === 0) return []
  const rows = await query<{ order_id: string }>(
    db,
    'select order_id from prediction_order where order_id = any($1)',
    [orderIds],
  )
  const known = new Set(rows.map(({ order_id }) => order_id))
  return [...new Set(orderIds)].filter((id) => !known.has(id)).slice(0, ordersMax)
}

/** Orders that a search has found for this task, or that an operator adopted, and orders whose task was deleted. */
export const ordersToRecognise = (
  db: Queryable,
  { userId, venue, outcomeId, taskId }: Outcome & { taskId: string },
): Promise<PredictionOrderRow[]> =>
  query<PredictionOrderRow>(
    db,
    `select o.* from prediction_order o left join task t on t.id = o.task_id
       where o.user_id = $1 and o.venue = $2 and ($3::text is null or o.outcome_id = $3)
         and (t.id is null or t.kind = $4 or t.id = $5) order by o.at desc limit $6`,
    [userId, venue, outcomeId, adoptedKind, taskId, ordersMax],
  )

export type FoundOrder = Pick<
  OutcomeOrder,
  | 'orderId'
  | 'marketId'
  | 'outcomeId'
  | 'outcome'
  | 'side'
  | 'timeInForce'
  | 'sizeUnits'
  | 'priceMicros'
  | 'expiresAt'
  | 'createdAt'
>
type Noted = AccountKey & {
  taskId: string
  order: FoundOrder
  market: Pick<PredictionMarket, 'question' | 'protocol' | 'isNegRisk' | 'fee'>
  status: PredictionOrderStatus
  matchedUnits: bigint
  now: Date
}

type Role = Pick<PredictionOrderRow, 'leg' | 'entry_order_id'>

/** The role of a found order: that of its task, or by its terms if the database has lost the task. */
async function roleOf(
  tx: Tx,
  { taskId, order, userId, venue }: Pick<Noted, 'taskId' | 'order' | keyof AccountKey>,
): Promise<Role> {
  const [task] = await query<{ kind: string; leg: Role['leg'] | null; entry: string | null }>(
    tx,
    `select kind, data ->> 'leg' as leg, data ->> 'entry_order_id' as entry from task where id = $1`,
    [taskId],
  )
  if (task && task.kind !== adoptedKind) return { leg: task.leg ?? 'order', entry_order_id: task.entry }
  const entry = order.side === 'sell' ? await purchaseOfSale(tx, { userId, venue }, order) : undefined
  return { leg: 'order', entry_order_id: entry ?? null }
}

/** Stores an order that was found at the venue for a task, in place of an adopted one. */
export async function noteFoundOrder(
  tx: Tx,
  { userId, venue, taskId, order, market, status, matchedUnits, now }: Noted,
): Promise<void> {
  await lockAccount(tx, { userId, venue })
  const role = await roleOf(tx, { userId, venue, taskId, order })
  const cashUnits = mulDiv(order.sizeUnits, order.priceMicros, dollarUnits, 'up')
  const [making, taking] = order.side === 'buy' ? [cashUnits, order.sizeUnits] : [order.sizeUnits, cashUnits]
  await query(
    tx,
    `insert into prediction_order (order_id, user_id, venue, task_id, leg, market_id, outcome_id, outcome, title,
       protocol, neg_risk, side, order_type, price, size, making, taking, matched, fee, status, rests, expires_at, at,
       ended_at, entry_order_id)
     values ($1, $2, $3, $4, $24, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
       $22, $23, $25)
     on conflict (order_id) do update set task_id = excluded.task_id, leg = excluded.leg,
       entry_order_id = excluded.entry_order_id`,
    [
      order.orderId,
      userId,
      venue,
      taskId,
      order.marketId,
      order.outcomeId,
      order.outcome,
      market.question,
      market.protocol,
      market.isNegRisk,
      order.side,
      order.timeInForce,
      order.priceMicros,
      String(order.sizeUnits),
      String(making),
      String(taking),
      String(matchedUnits),
      market.fee === null ? null : jsonText(market.fee),
      status,
      status === 'live',
      order.expiresAt,
      order.createdAt,
      isEndStatus(status) ? now : null,
      role.leg,
      role.entry_order_id,
    ],
  )
  // Trades are recorded without the market until their order is known.
  await query(tx, `update prediction_fill set title = $2 where order_id = $1 and title = ''`, [
    order.orderId,
    market.question,
  ])
}

const dollarUnits = 1_000_000n
