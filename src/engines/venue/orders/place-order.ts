import { evaluateBracket, sumFills } from '#engines/venue/records/bracket.ts'
import { assertReducible } from '#engines/venue/records/reducible-part.ts'
import { addToResult, createEffect, type EffectStep, type EffectSteps } from '#kernel/task/effect-steps.ts'
import type { StepContext, StepResultOf, TaskView } from '#kernel/task/task.ts'
import { deriveCloid } from './action-outcome.ts'
import { bracketAction } from './bracket-action.ts'
import { transferEffect } from './collateral-transfer.ts'
import { completeOutcome, entryOfReply, lookUpEntry } from './entry-outcome.ts'
import { failed } from './order-failures.ts'
import { placedBefore } from './order-lookup.ts'
import { fillViews, type OrderOutcome, orderResult, resultNote } from './order-result.ts'
import { factsOf, type ObservedEntry, type OrderTaskData, planOf } from './order-task.ts'
import { noteSpent } from './pending-spends.ts'
import type { OrderEnd, OrderStep, OrderStepResult, PlaceOrderDeps } from './place-order-deps.ts'
import { positionNote } from './position-after-fills.ts'
import { ofTask, type VenuePlan, venueDriver } from './venue-effect.ts'

/** Runs up to three effects, each only if it is needed: collateral transfer, leverage, and the order with its exits. */

/** Builds an order's steps. The first effect is signed in `begin`, each further one after the previous effect. */
export function placeOrderSteps<Data extends OrderTaskData, Repair extends string>(
  deps: PlaceOrderDeps<Data, Repair>,
): Record<OrderStep, EffectStep<Data, OrderStep | Repair>> {
  const order = orderEffect(deps)
  const leverage = leverageEffect(deps, order.sign)
  const transfer = transferEffect<Data, OrderStep | Repair>(deps, {
    steps: { sign: 'begin', confirm: 'transferred' },
    purpose: ({ operation, exit, market }) => ({ operation, exit, to: market }),
    next: leverage.sign,
  })
  return {
    begin: transfer.sign,
    transferred: transfer.confirm,
    leverage: leverage.confirm,
    order: order.sign,
    confirm: order.confirm,
  }
}

type OrderPlan<Data, Repair extends string> =
  | VenuePlan<Data, OrderStep | Repair>
  | StepResultOf<Partial<Data>, OrderStep | Repair>

const leverageEffect = <Data extends OrderTaskData, Repair extends string>(
  deps: PlaceOrderDeps<Data, Repair>,
  order: EffectStep<Data, OrderStep | Repair>,
): EffectSteps<Data, OrderStep | Repair> =>
  createEffect({
    steps: { sign: 'begin', confirm: 'leverage' },
    driver: venueDriver<Data, true, OrderStep | Repair>(deps, {
      actionKey: 'leverage',
      search: ({ data: { account, symbol, leverage: wanted } }) => ({
        parseReply: () => true,
        async lookUp() {
          const { isCross, leverage } = await deps.venue.marketSettings(account, symbol)
          return isCross === wanted?.is_cross && leverage === wanted.value ? true : undefined
        },
      }),
    }),
    async plan(task, context): Promise<OrderPlan<Data, Repair>> {
      const { data } = task
      if (!data.leverage) return order(task, context)
      const { is_cross: isCross, value: leverage } = data.leverage
      return {
        ...planOf(data),
        facts: factsOf(data, { usdMicros: 0n }),
        action: { type: 'set_leverage', asset: data.asset, isCross, leverage },
      }
    },
    async settle(task, _isSet, context) {
      const writes = deps.onLeverageSet?.(task, context.now)
      return addToResult(await order(task, context), { writes })
    },
  })

const orderEffect = <Data extends OrderTaskData, Repair extends string>(
  deps: PlaceOrderDeps<Data, Repair>,
): EffectSteps<Data, OrderStep | Repair> =>
  createEffect({
    steps: { sign: 'order', confirm: 'confirm' },
    driver: venueDriver<Data, ObservedEntry, OrderStep | Repair>(deps, {
      actionKey: 'entry',
      search: (task) => ({
        known: task.data.observed_entry,
        parseReply: (legs) => entryOfReply(legs, task.data, deps.rejections),
        lookUp: (how) => lookUpEntry(deps, task, how),
      }),
      before: (task) => placedBefore(deps, task, [deriveCloid(task.executionId, 'entry')]),
    }),
    plan({ id: taskId, userId, executionId, data, deadline }, { now }) {
      if (now > deadline) return failed('expired', 'The deadline passed before the order was sent')
      return {
        ...planOf(data),
        facts: factsOf(data),
        ...bracketAction(executionId, data, deps.pricing),
        ...(data.own_part && { beforeSigning: (tx) => assertReducible(tx, { userId, taskId, data }) }),
      }
    },
    async settle(task, observed, context) {
      const { entry } = observed
      if (entry.status === 'rejected' && entry.error) {
        const result = orderResult(task.executionId, task.data, { entry, exits: [], fills: [] })
        return { ...failed(entry.error.code, entry.error.message), result, rejected: true }
      }
      return ofTask<OrderTaskData, Data, OrderStep | Repair>(await filled(deps, task, observed, context))
    },
  })

/** Ends the task of an order that was filled or rests, continues with an incomplete bracket, or reads again later. */
async function filled<Data extends OrderTaskData, Repair extends string>(
  deps: PlaceOrderDeps<Data, Repair>,
  task: TaskView<Data>,
  observed: ObservedEntry,
  context: StepContext,
): Promise<OrderStepResult<Data, Repair>> {
  const { orderOutcome, observed: now } = await completeOutcome(deps, task, observed, context.signal)
  const known: Partial<OrderTaskData> = { observed_entry: now }
  if (!orderOutcome)
    return deps.signedActions.waitForRecords<OrderTaskData, OrderStep>(task, 'confirm', known)
  const { entry, fills, exits } = orderOutcome
  const evaluation = evaluateBracket(entry, sumFills(fills).size, exits)
  if (evaluation === 'nothing')
    return failed('slippage', 'The order was not filled: no liquidity within the accepted price')
  if (evaluation !== 'complete') return deps.repairBracket(task, context, orderOutcome)
  const result = completed(task, orderOutcome, context.now)
  const finished = (await deps.onFilled?.(task, context, orderOutcome, result)) ?? result
  return 'end' in finished ? finished : { ...finished, data: { ...finished.data, ...known } }
}

export const completed = (
  task: TaskView<OrderTaskData>,
  orderOutcome: OrderOutcome,
  now: Date,
): OrderEnd => ({
  end: 'completed',
  outcome: orderOutcome.entry.status === 'partial' ? 'partial' : 'executed',
  result: orderResult(task.executionId, task.data, orderOutcome),
  data: {
    fills: fillViews(orderOutcome.fills),
    ...resultNote(task.data, orderOutcome),
    ...positionNote(task.data.market, orderOutcome.fills),
    ...noteSpent(task, task.data, orderOutcome, now),
  },
})
