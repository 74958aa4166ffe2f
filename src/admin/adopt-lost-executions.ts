import { orderViews } from '#compose/trigger-orders.ts'
import { createTaskIntake } from '#durable/accept/task-intake.ts'
import { appendEvents } from '#durable/events/append-events.ts'
import { approvalStep, type Task } from '#durable/task/task-row.ts'
import { taskEvent } from '#durable/task/task-view.ts'
import { toRow } from '#engines/trigger-orders/after-task-end.ts'
import { createOrderTasks } from '#engines/trigger-orders/fired-order-tasks.ts'
import { orderKindVersion } from '#engines/trigger-orders/order-kind-rules.ts'
import { ordersById, rearmTriggerOrder } from '#engines/trigger-orders/store.ts'
import { addChange, vaultRefOf } from '#features/earn/earn-account-store.ts'
import { newestPosition } from '#features/earn/store.ts'
import { spendOf } from '#features/swap/orders/run-order.ts'
import { shardOf, systemRandom, uuidv7 } from '#kernel/id.ts'
import { firedExecutionId, rearmedExecutionId } from '#kernel/task/execution-id.ts'
import type { TaskKind, Tx } from '#kernel/task/task.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { jsonText, type Queryable, query } from '#store/query.ts'
import { adoptedKind } from '#store/record-found-effect.ts'
import { type FoundAtVenue, noteFoundAtVenue } from './note-found-at-venue.ts'
import type { Session } from './session.ts'

/**
 * This module adopts executions: after the restore of an old backup, it creates tasks for what the chains and the venue
 * executed and the database has lost. An execution of a trigger order fires that order, and the fired task looks the
 * execution up. Any other execution becomes an ended task. If a client repeats the lost request under its key, the new
 * task replaces the ended one. Orders and withdrawals at the venue are recorded, so that the reconciler does not report
 * them as foreign.
 */

type Execution = {
  chain: string
  execution_id: string
  sequence: number
  user_id: string
  tx_hash: string | null
  balance_changes: JsonObject[]
  executed_at: Date
  venue: FoundAtVenue | null
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

/** Groups what one execution did: it may have run several batches, even on several chains. */
export const byExecution = (all: readonly Execution[]): Execution[][] => [
  ...Map.groupBy(all, (each) => `${each.user_id} ${each.execution_id}`).values(),
]

export const adoptExecution = (session: Session, executions: readonly Execution[]): Promise<Adoption> =>
  session.database.transaction(async (tx) => {
    const { user_id: userId, venue, executed_at: at } = executions[0]!
    const order = await firedOrder(session, tx, executions[0]!)
    if (order && !venue)
      return finish(session, tx, executions, { became: 'order', taskId: await fireOrder(session, tx, order) })
    const known = order ? undefined : await knownTask(tx, executions[0]!)
    if (known) {
      if (venue) await noteFoundAtVenue(session, tx, { userId, taskId: known, venue, at })
      return finish(session, tx, executions, { became: 'known', taskId: known })
    }
    const task = adoptedTask(executions, session.clock.now())
    const positionId = await openPosition(session, tx, executions)
    if (positionId !== undefined) task.data.position_id = positionId
    await insertTask(tx, task)
    if (venue) await noteFoundAtVenue(session, tx, { userId, taskId: task.id, venue, at })
    if (order) await endOrder(tx, order, task)
    await appendEvents(tx, userId, [taskEvent('task.completed', task)], task.updated_at)
    return finish(session, tx, executions, { became: order ? 'order' : 'task', taskId: task.id })
  })

/**
 * Returns the task that already has this execution. If this task has not ended, it looks the execution up by itself:
 * its deadline is extended, because it may have passed, and on a chain no cancel ends the task before the look-up has
 * an answer. A task that executed nothing is not returned, because it is an earlier attempt of an order. A task that
 * waits for an approval is not returned either, because it may end without one: the execution gets a separate task,
 * which the approved task replaces.
 */
async function knownTask(
  tx: Tx,
  { user_id: userId, execution_id: own, venue }: Execution,
): Promise<string | undefined> {
  const executionId = venue && 'task_execution_id' in venue ? (venue.task_execution_id ?? own) : own
  const [row] = await query<{ id: string }>(
    tx,
    `update task t set deadline = greatest(deadline, clock_timestamp() + interval '15 minutes')
       where user_id = $1 and coalesce(execution_id, id) = $2 and outcome is distinct from 'not_executed' and step <> $3
       returning id`,
    [userId, executionId, approvalStep],
  )
  if (row && !venue) await markLookingUp(tx, row.id)
  return row?.id
}

/** The steps of tasks on a chain that look for an earlier execution before they sign. */
const lookUpSteps = ['prepare', 'sign', 'swap']

/** Sets the outcome of a task to `unknown`. The task then looks its execution up, and a cancel cannot end it before. */
const markLookingUp = (tx: Tx, taskId: string) =>
  query(
    tx,
    `update task set status = 'running', outcome = 'unknown', state = 'reconciling'
       where id = $1 and status in ('pending', 'running') and step = any($2) and not exists
         (select from effect where task_id = $1 and effect.status not in ('dropped', 'rejected'))`,
    [taskId, lookUpSteps],
  )

/** Finds the order of an execution. The order has not fired, or its known attempt was refunded earlier. */
async function firedOrder(
  { clock }: Session,
  tx: Tx,
  { user_id: userId, execution_id: executionId, venue }: Execution,
): Promise<TriggerOrder | undefined> {
  if (venue) {
    const [order] = await query<TriggerOrder>(
      tx,
      `select * from trigger_order where user_id = $1 and id = $2 and task_end is null for update`,
      [userId, venue.type === 'order' ? venue.trigger_order_id : null],
    )
    if (order?.status !== 'fired') return order
    const cancelled = await query(tx, 'select id from task_cancel($1, $2, $3)', [
      order.task_id,
      userId,
      clock.now(),
    ])
    return cancelled.length > 0 ? order : undefined
  }
  const open = await query<TriggerOrder>(
    tx,
    `with fired as (select id from trigger_order where user_id = $1 and status = 'fired' and task_end is null)
     select * from trigger_order where user_id = $1 and (status in ('waiting', 'armed') or id in (select id from fired)
       or (status = 'cancelled' and cancelled_by in (select id from fired))) for update`,
    [userId],
  )
  const order = attemptsOf(open).get(executionId)
  const before = open.find(({ id }) => id === (order?.status === 'fired' ? order.id : order?.cancelled_by))
  if (before) await armAgain(tx, before, clock.now())
  return order
}

/**
 * Arms a fired order again, because a later execution shows that its attempt was refunded. The task of the refunded
 * attempt then does not arm the order a second time.
 */
const armAgain = (tx: Tx, fired: TriggerOrder, at: Date) =>
  rearmTriggerOrder(tx, {
    orderId: fired.id,
    taskId: fired.task_id!,
    input: { failures: Number(fired.input.failures ?? 0) + 1 },
    executionId: rearmedExecutionId(fired),
    at,
  })

/** A refunded order is armed again under another id, at most this many times. */
const refundsMax = 10

/** Returns the orders by the execution id of each attempt that they may have made, one after each refund. */
function attemptsOf(open: readonly TriggerOrder[]): Map<string, TriggerOrder> {
  const attempts = new Map<string, TriggerOrder>()
  for (let orders = open, refunds = 0; refunds <= refundsMax; refunds++) {
    for (const order of orders)
      if (order.status !== 'fired' || refunds > 0)
        attempts.set(firedExecutionId(order, { perAttempt: false }), order)
    orders = orders.map((order) => ({ ...order, execution_id: rearmedExecutionId(order) }))
  }
  return attempts
}

/**
 * A user whose first deposit was lost has no position to which a sync could add its shares, so an empty one is
 * opened. The sync, or the repeat of the deposit, fills it.
 */
async function openPosition(
  { config, clock }: Session,
  tx: Tx,
  executions: readonly Execution[],
): Promise<string | undefined> {
  const { EARN_CHAIN_ID: chainId, EARN_VAULT_ADDRESS: address } = config
  const vaultRef = vaultRefOf({ chainId, address })
  const isShare = ({ token_address: token }: JsonObject) => String(token).toLowerCase() === vaultRef.vault
  const bought = executions.find(
    ({ chain, balance_changes: changes }) =>
      chain === chainId && changes.some((each) => isShare(each) && BigInt(String(each.amount)) > 0n),
  )
  if (!bought || (await newestPosition(tx, bought.user_id, vaultRef))) return undefined
  const { user_id: userId, executed_at: createdAt } = bought
  const position = { positionId: uuidv7(createdAt, systemRandom), createdAt, now: clock.now() }
  await addChange(tx, userId, vaultRef, { ...position, assetsUnits: 0n, sharesUnits: 0n, block: 0n })
  return position.positionId
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

const resultOf = (venue: FoundAtVenue): JsonObject => {
  if (venue.type === 'outcome_order') return venue
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

async function fire(tx: Tx, { id, execution_id: own }: TriggerOrder, at: Date): Promise<TriggerOrder[]> {
  await query(
    tx,
    `update trigger_order set status = 'armed', execution_id = $2
       where id = $1 and (status = 'waiting' or execution_id is distinct from $2::uuid)`,
    [id, own],
  )
  return query<TriggerOrder>(tx, 'select * from trigger_fire($1, $2)', [[id], at])
}

async function fireOrder(session: Session, tx: Tx, order: TriggerOrder): Promise<string> {
  const deps = { ...session, random: systemRandom }
  const { enqueueAll } = createTaskIntake(deps)
  const tasks = createOrderTasks({ ...deps, enqueueAll, kindOf: (name) => firedKinds.get(name) })
  const { trigger_price: price } = order
  await tasks.create(tx, await fire(tx, order, session.clock.now()), { low: price, high: price })
  const [fired] = await ordersById(tx, order.user_id, [order.id])
  await markLookingUp(tx, fired!.task_id!)
  return fired!.task_id!
}

const runElsewhere = async (): Promise<never> => {
  throw new Error('a gateway runs the tasks of orders')
}

/** The kinds of swapping orders, reduced to what `time adopt` needs to create their tasks: a gateway runs them. */
const firedKinds: ReadonlyMap<string, TaskKind> = new Map(
  [...orderViews].map(([kind, { event }]): [string, TaskKind] => [
    kind,
    {
      kind,
      version: orderKindVersion,
      priority: 0,
      steps: { prepare: runElsewhere },
      spendOf: spendOf({ policy: { check: runElsewhere } }, kind),
      orderEvent: (order) => event(toRow(order as TriggerOrder<never>)),
    },
  ]),
)

async function endOrder(tx: Tx, order: TriggerOrder, task: Task): Promise<void> {
  await fire(tx, order, task.updated_at)
  await query(tx, `update trigger_order set task_id = $2, task_end = 'completed' where id = $1`, [
    order.id,
    task.id,
  ])
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
