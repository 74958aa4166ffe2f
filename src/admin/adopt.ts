import { orderViews } from '#compose/orders.ts'
import { venueChainId } from '#compose/settings.ts'
import { appendEvents } from '#durable/append-events.ts'
import type { Task } from '#durable/task-row.ts'
import { taskEvent } from '#durable/task-view.ts'
import { ordersById } from '#engines/trigger-orders/store.ts'
import { effectKind } from '#engines/venue/orders/action-outcome.ts'
import type { FoundOrder, FoundWithdrawal } from '#engines/venue/orders/found-executions.ts'
import { nonceKind } from '#engines/venue/orders/signed-action.ts'
import { scheduleNow } from '#engines/venue/records/account-store.ts'
import { noteFoundOrder } from '#engines/venue/records/store.ts'
import { firedExecutionId } from '#kernel/execution-id.ts'
import { shardOf, systemRandom, uuidv7 } from '#kernel/id.ts'
import type { JsonObject } from '#kernel/json.ts'
import type { Tx } from '#kernel/task.ts'
import type { TriggerOrder } from '#kernel/trigger-order.ts'
import { adoptedKind, recordFoundEffect } from '#store/found-effect.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import { raiseCounter } from './raise-counter.ts'
import type { Session } from './session.ts'

/**
 * Makes tasks of what the chains and the venue executed and the database forgot. An order that fired ends with such a task, and so do
 * the others of its group. A request under a key gets a task that shows it: its repeat finds the execution by itself and
 * takes the place of that task, with all that its operation books. What is adopted of the venue is not foreign to the
 * comparison of its account.
 */

type Execution = {
  chain: string
  execution_id: string
  sequence: number
  user_id: string
  tx_hash: string | null
  balance_changes: JsonObject[]
  executed_at: Date
  venue: FoundOrder | FoundWithdrawal | null
}
export type Adoption = {
  user_id: string
  execution_id: string
  became: 'task' | 'order' | 'known'
  task_id: string
}

export const readUnadopted = (db: Queryable): Promise<Execution[]> =>
  query<Execution>(
    db,
    `select chain, execution_id, sequence, user_id, tx_hash, balance_changes, executed_at, venue from found_execution
       where adopted_at is null order by executed_at, sequence`,
  )

/** All that one execution did: it may have run several batches, also on several chains. */
export const byExecution = (all: readonly Execution[]): Execution[][] => [
  ...Map.groupBy(all, (each) => `${each.user_id} ${each.execution_id}`).values(),
]

export const adoptExecution = (session: Session, executions: readonly Execution[]): Promise<Adoption> =>
  session.database.transaction(async (tx) => {
    const { user_id: userId, venue } = executions[0]!
    const known = await knownTask(tx, executions[0]!)
    if (known) {
      if (venue) await noteAtVenue(session, tx, { ...executions[0]!, taskId: known, venue })
      return finish(session, tx, executions, { became: 'known', taskId: known })
    }
    const order = await firedOrder(tx, executions[0]!)
    const task = adoptedTask(executions, session.clock.now())
    await insertTask(tx, task)
    if (venue) await noteAtVenue(session, tx, { ...executions[0]!, taskId: task.id, venue })
    const changed = order ? await endOrder(tx, order, task) : []
    const rows = await ordersById<never>(
      tx,
      userId,
      changed.map(({ id }) => id),
    )
    const orderEvents = rows.flatMap((row) => orderViews.get(row.kind)?.event(row) ?? [])
    await appendEvents(tx, userId, [taskEvent('task.completed', task), ...orderEvents], task.updated_at)
    return finish(session, tx, executions, { became: order ? 'order' : 'task', taskId: task.id })
  })

/** Where it has not ended, it looks its execution up by itself, and has the time for it: its own may have passed. */
async function knownTask(
  tx: Tx,
  { user_id: userId, execution_id: own, venue }: Execution,
): Promise<string | undefined> {
  const executionId = venue?.type === 'order' ? (venue.task_execution_id ?? own) : own
  const [row] = await query<{ id: string }>(
    tx,
    `update task set deadline = greatest(deadline, clock_timestamp() + interval '15 minutes')
       where user_id = $1 and coalesce(execution_id, id) = $2 returning id`,
    [userId, executionId],
  )
  return row?.id
}

async function firedOrder(
  tx: Tx,
  { user_id: userId, execution_id: executionId, venue }: Execution,
): Promise<TriggerOrder | undefined> {
  const armed = await query<TriggerOrder>(
    tx,
    `select * from trigger_order where user_id = $1 and status in ('waiting', 'armed') for update`,
    [userId],
  )
  if (venue) return armed.find(({ id }) => venue.type === 'order' && id === venue.trigger_order_id)
  return armed.find((order) => firedExecutionId(order, { perAttempt: false }) === executionId)
}

type Noted = Execution & { taskId: string; venue: FoundOrder | FoundWithdrawal }

/** The comparison of the account finds the owner of an order by its id, and the signature of a withdrawal by its nonce. */
async function noteAtVenue(
  { clock }: Session,
  tx: Tx,
  { user_id: userId, taskId, venue, executed_at: at }: Noted,
): Promise<void> {
  await scheduleNow(tx, userId, clock.now())
  if (venue.type === 'order') return noteFoundOrder(tx, userId, { taskId, order: venue, at })
  const { account, nonce, amount_usd, fee_usd } = venue
  const nonceSequence = { kind: nonceKind, chain: venueChainId, signer: account }
  await raiseCounter(tx, { ...nonceSequence, next: BigInt(nonce) + 1n })
  await recordFoundEffect(tx, {
    taskId,
    step: adoptedKind,
    kind: effectKind,
    externalId: `${account}:${nonce}`,
    intent: { amount_usd, fee_usd },
    nonceSequence,
    nonce: BigInt(nonce),
    proof: {},
    at,
  })
}

function adoptedTask(executions: readonly Execution[], now: Date): Task {
  const { user_id: userId, execution_id: executionId, executed_at: at, venue } = executions[0]!
  const transactions = executions.map(({ chain, tx_hash }) => ({
    chain_id: chain,
    tx_hash,
    explorer_url: null,
    status: 'finalized',
    block: null,
    nonce: null,
  }))
  return {
    id: uuidv7(at, systemRandom),
    shard: shardOf(userId),
    user_id: userId,
    kind: adoptedKind,
    kind_version: 1,
    status: 'completed',
    state: 'completed',
    outcome: 'executed',
    step: adoptedKind,
    data: {
      note: `found ${venue ? 'at the venue' : 'on the chain'}, after the database had lost it`,
      transactions: venue ? [] : transactions,
      balance_changes: executions.flatMap(({ balance_changes: changes }) => changes),
    },
    input: {},
    result: venue ? resultOf(venue) : { tx_hash: executions[0]!.tx_hash, chain_id: executions[0]!.chain },
    error: null,
    attempts: 0,
    version: 1,
    cancel_requested: false,
    deadline: now,
    parent_id: null,
    idempotency_key: null,
    execution_id: executionId,
    created_at: at,
    updated_at: now,
    completed_at: now,
  }
}

const resultOf = (venue: FoundOrder | FoundWithdrawal): JsonObject => {
  if (venue.type === 'withdrawal') return { amount_usd: venue.amount_usd, fee_usd: venue.fee_usd }
  const { cloid, order_id, market, symbol, is_buy, size, filled_size, average_price, status } = venue
  const order = { order_id, cloid, market, asset: symbol, side: is_buy ? 'buy' : 'sell', size }
  return { ...order, filled_size, avg_price: average_price, venue_status: status }
}

async function insertTask(tx: Tx, task: Task): Promise<void> {
  await query(tx, 'insert into task select * from jsonb_populate_record(null::task, $1::jsonb)', [
    jsonText(task),
  ])
}

async function endOrder(tx: Tx, { id }: TriggerOrder, task: Task): Promise<TriggerOrder[]> {
  await query(tx, `update trigger_order set status = 'armed' where id = $1 and status = 'waiting'`, [id])
  const changed = await query<TriggerOrder>(tx, 'select * from trigger_fire($1, $2)', [[id], task.updated_at])
  await query(tx, `update trigger_order set task_id = $2, task_end = 'completed' where id = $1`, [
    id,
    task.id,
  ])
  return changed
}

async function finish(
  session: Session,
  tx: Tx,
  executions: readonly Execution[],
  { became, taskId }: Pick<Adoption, 'became'> & { taskId: string },
): Promise<Adoption> {
  const { user_id: userId, execution_id: executionId } = executions[0]!
  await query(
    tx,
    `update found_execution set adopted_at = clock_timestamp(), task_id = $3 where user_id = $1 and execution_id = $2`,
    [userId, executionId, taskId],
  )
  const adoption = { execution_id: executionId, became, task_id: taskId }
  await session.record(tx, { command: 'time adopt', subject: userId, details: adoption })
  return { user_id: userId, ...adoption }
}
