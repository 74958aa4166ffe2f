import { type CancelTasks, cancelOrders, type PublishOrders } from '#engines/trigger-orders/cancel.ts'
import { ordersOf } from '#engines/trigger-orders/store.ts'
import type { RequestFacts } from '#kernel/contract/caller.ts'
import { Fault, notFound } from '#kernel/contract/fault.ts'
import { implement, type Operation, taskOf } from '#kernel/contract/operation.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { contract, type LimitOrderView, type ListInput } from './contract.ts'
import { admitLimitOrder, findLimitOrder, type LimitOrderDeps, limitOrderSteps } from './create.ts'
import { type LimitOrderData, limitOrderKind, limitOrderView, statusFilters } from './view.ts'

type Deps = LimitOrderDeps & { publish: PublishOrders; tasks: CancelTasks }

export const createLimitOrders = (deps: Deps): Operation[] =>
  implement(contract, {
    create: taskOf({
      admit: admitLimitOrder(deps),
      steps: limitOrderSteps,
    }),
    list: (input, { userId }) => list(deps, input, userId),
    async get({ order_id }, { userId }) {
      const row = await findLimitOrder(deps.db, userId, order_id)
      if (!row) throw unknownOrder()
      return limitOrderView(row, deps.clock.now())
    },
    cancel: ({ order_id }, { userId }, request) => cancel(deps, order_id, userId, request),
  })

const unknownOrder = () => notFound('limit order', 'limit_orders_list')

async function list(
  { db, clock }: Deps,
  { status = 'all', limit = 500, after }: ListInput,
  userId: string,
): Promise<LimitOrderView[]> {
  const rows = await ordersOf<LimitOrderData & JsonObject>(db, userId, {
    kind: limitOrderKind,
    limit,
    after: after ?? null,
    filters: status === 'all' ? null : statusFilters[status === 'pending' ? 'active' : status],
  })
  return rows.map((row) => limitOrderView(row, clock.now()))
}

async function cancel(
  { db, clock, publish, tasks }: Deps,
  id: string,
  userId: string,
  { tx, afterCommit, isReplay }: RequestFacts,
): Promise<LimitOrderView> {
  const on = tx ?? db
  const before = await findLimitOrder(on, userId, id)
  if (!before) throw unknownOrder()
  const request = { ids: [id], kinds: [limitOrderKind], at: clock.now() }
  const act = { tx: tx!, afterCommit: afterCommit! }
  if (!isReplay) await publish(act, userId, await cancelOrders(act, tasks, userId, request))
  const row = await findLimitOrder(on, userId, id)
  if (!row) throw unknownOrder()
  const view = limitOrderView(row, clock.now())
  if (row.status === 'cancelled' || row.status === 'expired') return view
  throw new Fault(
    'order_not_cancellable',
    `The order has fired and is ${view.status}: it cannot be cancelled`,
    {
      extras: { status: view.status, reason: `the order is ${view.status}`, task_id: row.task_id },
    },
  )
}
