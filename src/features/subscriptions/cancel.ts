import type { Asker, Caller } from '#kernel/contract/caller.ts'
import { conflict } from '#kernel/contract/fault.ts'
import { type EndedTask, type InputOf, taskOf } from '#kernel/contract/operation.ts'
import type { StepResult, TaskView } from '#kernel/task/task.ts'
import { applyReading } from './apply-reading.ts'
import { byPerson, notSubscribed } from './checkout-admission.ts'
import type { contract } from './contract.ts'
import type { PlanCatalogue } from './plan-catalogue.ts'
import { subscriptionView } from './plan-views.ts'
import { beginReading, currentSubscription, daySeconds, watch } from './store.ts'
import type { SyncDeps } from './sync.ts'
import { answerOf } from './task-answer.ts'

/** Ends a plan with its period, or lets it renew again: a repeated request changes nothing further. */

export type CancelDeps = SyncDeps & { catalogue: PlanCatalogue }
type Input = InputOf<(typeof contract)['entries']['cancel']>
type Data = { subscription: string; undo: boolean }

export const createCancel = (deps: CancelDeps) =>
  taskOf({
    async admit(input: Input, { userId, principal }: Pick<Asker, 'userId' | 'principal'>) {
      const undo = input?.undo === true
      // A plan that renews again charges the stored card.
      if (undo && principal !== 'app') throw byPerson('let a plan renew again')
      const row = await currentSubscription(deps.db, userId)
      if (!row) throw notSubscribed()
      const data: Data = { subscription: row.id, undo }
      return { data, first: 'send' as const }
    },
    steps: { send: (task: TaskView<Data>) => send(deps, task) },
    retry: { attemptsMax: 6, firstMs: 300, maxMs: 5_000 },
    async finish(task: EndedTask, { userId }: Caller) {
      answerOf(task)
      return subscriptionView(deps.db, deps.catalogue, userId)
    },
  })

async function send(deps: CancelDeps, { data, userId }: TaskView<Data>): Promise<StepResult<Data, 'send'>> {
  const { db, stripe, providerClock } = deps
  const subscription = await stripe.setCancelAtPeriodEnd(data.subscription, { isWanted: !data.undo })
  if (!subscription) throw conflict('The plan has ended already', 'not_subscribed')
  // A reading that began before the change, and ends after it, must not hide it; another one follows below.
  const order = await beginReading(db, data.subscription)
  const now = providerClock.now()
  const reading = {
    order,
    userId,
    subscription,
    invoices: [],
    payments: new Map(),
    wholeCents: new Map(),
    now,
  }
  return {
    end: 'completed',
    outcome: 'executed',
    result: { cancel_at_period_end: subscription.cancelAtPeriodEnd },
    complete: async (tx) => {
      const { events } = await applyReading(deps, tx, reading)
      await watch(tx, { id: subscription.id, userId, nextAt: now, everySeconds: daySeconds })
      return { events }
    },
  }
}
