import type { NewTask } from '#durable/accept/task-intake.ts'
import type { Engine } from '#durable/engine.ts'
import type { Clock } from '#kernel/clock.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import { firedExecutionId } from '#kernel/task/execution-id.ts'
import { bodyHash, internalKey } from '#kernel/task/idempotency-key.ts'
import type { NewEvent, TaskKind, Tx } from '#kernel/task/task.ts'
import type { PriceRange, TriggerOrder } from '#kernel/task/trigger-order.ts'
import { query, settleAll } from '#store/query.ts'

export type OrderTaskDeps = Pick<Engine, 'kindOf' | 'enqueueAll'> & {
  clock: Clock
  random: Random
}
export type OrderTasks = {
  /** Inserts the tasks of orders that were fired in this transaction, and returns their number. */
  create(tx: Tx, changed: readonly TriggerOrder[], price: PriceRange): Promise<number>
  eventsOf(orders: readonly TriggerOrder[]): NewEvent[]
}

export function createOrderTasks({ kindOf, enqueueAll, clock, random }: OrderTaskDeps): OrderTasks {
  const kindOfOrder = ({ kind, id }: TriggerOrder): TaskKind => {
    const found = kindOf(kind)
    if (!found)
      throw new Error(`order ${id} creates tasks of the kind ${kind}, which this instance does not know`)
    return found
  }
  const eventsOf = (orders: readonly TriggerOrder[]): NewEvent[] =>
    orders.flatMap((order) => kindOf(order.kind)?.orderEvent?.(order) ?? [])

  const taskOf = (order: TriggerOrder, cancelled: readonly TriggerOrder[], price: PriceRange) => {
    const { id, user_id: userId, input, attempts, direction } = order
    const kind = kindOfOrder(order)
    const taskId = uuidv7(clock.now(), random)
    const siblings = cancelled.filter((each) => each.cancelled_by === id)
    return {
      id: taskId,
      executionId: firedExecutionId(order, { perAttempt: kind.hasExecutionPerAttempt ?? false }),
      userId,
      kind,
      input,
      admission: {
        data: { trigger_order_id: id, trigger_price: direction === 'lte' ? price.high : price.low },
        first: Object.keys(kind.steps)[0]!,
        ...(kind.spendOf && { spend: kind.spendOf(userId, input) }),
      },
      key: {
        // An order that fires again after a task that executed nothing gets a further task under a further key.
        key: internalKey('trigger', attempts === 1 ? id : `${id}:${attempts}`),
        operation: `trigger:${order.kind}`,
        hash: bodyHash(order.kind, input),
      },
      events: eventsOf([{ ...order, task_id: taskId }, ...siblings]),
    } satisfies Omit<NewTask, 'leased'>
  }

  return {
    eventsOf,
    async create(tx, changed, price) {
      const fired = changed.filter(({ status }) => status === 'fired')
      if (fired.length === 0) return 0
      const cancelled = changed.filter(({ status }) => status === 'cancelled')
      const tasks = fired.map((order) => taskOf(order, cancelled, price))
      await settleAll([
        query(
          tx,
          `update trigger_order t set task_id = f.task_id from unnest($1::uuid[], $2::uuid[]) f (id, task_id)
             where t.id = f.id`,
          [fired.map(({ id }) => id), tasks.map(({ id }) => id)],
        ),
        enqueueAll(tx, tasks),
      ])
      return fired.length
    },
  }
}
