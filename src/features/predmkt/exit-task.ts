import { conflict } from '#kernel/contract/fault.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import { pollAgain } from '#kernel/task/poll-again.ts'
import {
  defineTaskKind,
  type StepContext,
  type StepResultOf,
  type TaskKind,
  type TaskView,
} from '#kernel/task/task.ts'
import { credentialsOf } from './account-checks.ts'
import type { PredmktDeps } from './deps.ts'
import { orderSteps } from './order-steps.ts'
import type { OrderStepName, OrderTaskData } from './order-task.ts'
import { setExitOrder } from './store/exit-store.ts'
import { settledOfOrder } from './store/fill-store.ts'
import { changeOrder, leastUnits, soldOfEntry } from './store/order-store.ts'

/**
 * Sells the shares of a purchase by its take-profit or stop-loss, after the order of the other one is cancelled. What
 * that order sold in the meantime is not sold again.
 */

export const exitKind = 'predmkt_exit'
export type ExitTaskData = OrderTaskData & {
  /** The resting order of the other exit, whose shares the sale needs. */
  replaces?: string | null
}
export type ExitStepName = 'release' | OrderStepName
type Result = StepResultOf<Partial<ExitTaskData>, ExitStepName>

const pollBackoff = { firstMs: 300, maxMs: 5_000 }

export function createExitKind(deps: PredmktDeps): TaskKind {
  const order = orderSteps(deps)
  return defineTaskKind<ExitTaskData, ExitStepName>({
    kind: exitKind,
    version: 1,
    priority: 0,
    retry: { attemptsMax: 1_000, firstMs: 300, maxMs: 10_000 },
    steps: {
      ...order,
      release: (task, context) => releaseShares(deps, task, context),
      async sign(task, context) {
        const sizeUnits = await unsoldUnits(deps, task)
        if (sizeUnits < leastUnits)
          return notExecuted({ code: 'no_position', message: 'The other exit has sold the shares' })
        const terms = { ...task.data.terms, sizeUnits: String(sizeUnits) }
        return unlessCancelled(task, await order.sign({ ...task, data: { ...task.data, terms } }, context))
      },
    },
  })
}

/** The signature of a sale is refused once its exit was cancelled, so that nothing is sold against the user's will. */
function unlessCancelled({ id }: TaskView<ExitTaskData>, result: Result): Result {
  const orderId = result.data?.order_id
  if (!('sign' in result) || orderId === undefined) return result
  const build: typeof result.sign.build = async (tx) => {
    if (!(await setExitOrder(tx, id, orderId))) throw conflict('The exit was cancelled', 'exit_cancelled')
    return result.sign.build(tx)
  }
  return { ...result, sign: { ...result.sign, build } }
}

/** The shares of the sale that no exit of the purchase has sold meanwhile. */
async function unsoldUnits({ db }: PredmktDeps, { data }: TaskView<ExitTaskData>): Promise<bigint> {
  const [settledUnits, { soldUnits }] = await Promise.all([
    settledOfOrder(db, data.entry_order_id!),
    soldOfEntry(db, data.entry_order_id!),
  ])
  const sizeUnits = BigInt(data.terms.sizeUnits!)
  const leftUnits = settledUnits - soldUnits
  return sizeUnits < leftUnits ? sizeUnits : leftUnits
}

async function releaseShares(
  deps: PredmktDeps,
  task: TaskView<ExitTaskData>,
  { now }: StepContext,
): Promise<Result> {
  const { replaces: orderId } = task.data
  if (orderId == null) return { next: 'sign' }
  const credentials = await credentialsOf(deps, task.userId)
  const reply = await deps.venue.cancelOrders([orderId], credentials)
  if (reply.type !== 'answered') return { ...pollAgain(task, 'release', pollBackoff), state: 'waiting' }
  const isCanceled = reply.canceled.some((id) => id.toLowerCase() === orderId.toLowerCase())
  const order = await deps.venue.order(orderId, credentials)
  // It may have sold a part until its end, so that a reading from before its end does not count.
  if (order?.status === 'live' || order?.status === 'delayed')
    return { ...pollAgain(task, 'release', pollBackoff), state: 'waiting' }
  const status = order?.status === 'matched' ? 'matched' : order || isCanceled ? 'cancelled' : undefined
  return {
    next: 'sign',
    data: { polls: 0 },
    ...(status && {
      async writes(tx) {
        const matched = order && { matchedUnits: order.matchedUnits }
        await changeOrder(tx, { orderId, status, ...matched, now })
      },
    }),
  }
}
