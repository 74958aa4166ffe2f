import type { EventLog } from '#durable/events/event-log.ts'
import { type CancelTasks, cancelOrders, type PublishOrders } from '#engines/trigger-orders/cancel.ts'
import { cancelledBy, type OrderRow, openOrdersOf, ordersById } from '#engines/trigger-orders/store.ts'
import type { Clock } from '#kernel/clock.ts'
import type { RequestFacts } from '#kernel/contract/caller.ts'
import { exactlyOneOf } from '#kernel/contract/fault.ts'
import { implement, type Operation } from '#kernel/contract/operation.ts'
import type { NewEvent } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Queryable } from '#store/query.ts'
import { type CancelInput, contract } from './contract.ts'

export type OrderViews = {
  orderKind: 'hook' | 'limit_order'
  view(row: OrderRow<never>, now: Date): JsonObject & { status: string }
  event(row: OrderRow<never>): NewEvent
}
type Kinds = ReadonlyMap<string, OrderViews>
type Deps = {
  db: Queryable
  clock: Clock
  publish: PublishOrders
  tasks: CancelTasks
  /** The functions that show an order in the interface, by the kind of task that the order creates. */
  kinds: Kinds
}
type Row = OrderRow<never>

export const createOrderPublisher =
  (events: Pick<EventLog, 'add' | 'notify'>, kinds: Kinds): PublishOrders =>
  async ({ tx, afterCommit }, userId, { cancelled, armed }) => {
    const rows = await ordersById<never>(
      tx,
      userId,
      [...cancelled, ...armed].map(({ id }) => id),
    )
    const changes = rows.flatMap((row) => kinds.get(row.kind)?.event(row) ?? [])
    if (changes.length === 0) return
    await events.add(tx, userId, changes)
    afterCommit(() => events.notify(userId))
  }

export function createOutstandingOrders({ db, clock, publish, tasks, kinds }: Deps): Operation[] {
  const names = [...kinds.keys()]
  const viewsOf = (row: Row): OrderViews => kinds.get(row.kind)!

  return implement(contract, {
    async list(_input, { userId }) {
      const rows = await openOrdersOf<never>(db, userId, names)
      const outstanding_orders = rows.map((row) => {
        const { orderKind, view } = viewsOf(row)
        return { ...view(row, clock.now()), id: row.id, order_kind: orderKind }
      })
      return { outstanding_orders, total: outstanding_orders.length }
    },

    async cancel(input, { userId }, { tx, afterCommit }: RequestFacts) {
      const ids = await wantedIds(tx!, input, userId)
      const act = { tx: tx!, afterCommit: afterCommit! }
      await publish(
        act,
        userId,
        await cancelOrders(act, tasks, userId, { ids, kinds: names, at: clock.now() }),
      )
      const rows = (await ordersById<never>(tx!, userId, ids)).filter(({ kind }) => kinds.has(kind))
      const known = new Set(rows.map(({ id }) => id))
      const isCancelled = ({ status }: Row) => status === 'cancelled' || status === 'expired'
      return {
        cancelled: rows.filter(isCancelled).map(({ id }) => id),
        not_found: ids.filter((id) => !known.has(id)),
        not_cancellable: rows
          .filter((row) => !isCancelled(row))
          .map((row) => ({ id: row.id, status: viewsOf(row).view(row, clock.now()).status })),
      }
    },
  })

  async function wantedIds(
    on: Queryable,
    { outstanding_order_ids: ids, all }: CancelInput,
    userId: string,
  ): Promise<string[]> {
    if (ids ? all === true : all === false)
      throw exactlyOneOf('outstanding_order_ids', 'all', { hasBoth: ids !== undefined })
    if (ids) return [...new Set(ids.map((id) => id.toLowerCase()))]
    const open = (await openOrdersOf(on, userId, names)).map(({ id }) => id)
    return [...open, ...(await cancelledBy(on, open)).map(({ id }) => id)]
  }
}
