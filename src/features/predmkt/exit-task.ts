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
import type { OrderDeps } from './order-admission.ts'
import { orderSteps } from './order-steps.ts'
import type { OrderStepName, OrderTaskData } from './order-task.ts'
import { changeOrder } from './store/order-store.ts'

/** Sells the shares of a purchase by its take-profit or stop-loss, after the order of the other one is cancelled. */

export const exitKind = 'predmkt_exit'
export type ExitTaskData = OrderTaskData & {
  /** The resting order of the other exit, whose shares the sale needs. */
  replaces?: string | null
}
export type ExitStepName = 'release' | OrderStepName
type Result = StepResultOf<Partial<ExitTaskData>, ExitStepName>

const pollBackoff = { firstMs: 300, maxMs: 5_000 }

export const createExitKind = (deps: OrderDeps): TaskKind =>
  defineTaskKind<ExitTaskData, ExitStepName>({
    kind: exitKind,
    version: 1,
    priority: 0,
    retry: { attemptsMax: 1_000, firstMs: 300, maxMs: 10_000 },
    steps: {
      release: (task, context) => releaseShares(deps, task, context),
      ...orderSteps(deps),
    },
  })

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
  return {
    next: 'sign',
    data: { polls: 0 },
    ...(isCanceled && {
      writes: async (tx) => void (await changeOrder(tx, { orderId, status: 'cancelled', now })),
    }),
  }
}
