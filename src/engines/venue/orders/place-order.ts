import { evaluateBracket, sumFills } from '#engines/venue/records/bracket.ts'
import { recordLeverage } from '#engines/venue/records/leverage-store.ts'
import { assertReducible } from '#engines/venue/records/reducible-part.ts'
import {
  addToResult,
  createEffect,
  type EffectNames,
  type EffectRules,
  type EffectStep,
  type EffectSteps,
  type Settled,
} from '#kernel/task/effect-steps.ts'
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
import type { OrderEnd, OrderStep, PlaceOrderDeps } from './place-order-deps.ts'
import { positionNote } from './position-after-fills.ts'
import { type VenuePlan, venueDriver } from './venue-effect.ts'

/** Runs up to three effects, each only if it is needed: collateral transfer, leverage, and the order with its exits. */

/**
 * Builds the steps of a task with an order. The first effect is signed in `begin`, each further one after the previous
 * effect. `order` is the effect of `orderRules`, with the settlement of its market.
 */
export function placeOrderSteps<Data extends OrderTaskData, More extends string>(
  deps: PlaceOrderDeps,
  order: EffectSteps<Data, OrderStep | More>,
): Record<OrderStep, EffectStep<Data, OrderStep | More>> {
  const leverage = leverageEffect(deps, order.sign)
  const transfer = transferEffect<Data, OrderStep | More>(deps, {
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

type OrderPlan<Data, More extends string> =
  | VenuePlan<Data, OrderStep | More>
  | StepResultOf<Partial<Data>, OrderStep | More>

const leverageEffect = <Data extends OrderTaskData, More extends string>(
  deps: PlaceOrderDeps,
  order: EffectStep<Data, OrderStep | More>,
): EffectSteps<Data, OrderStep | More> =>
  createEffect({
    steps: { sign: 'begin', confirm: 'leverage' },
    driver: venueDriver<Data, true, OrderStep | More>(deps, {
      actionKey: 'leverage',
      search: ({ data: { account, symbol, leverage: wanted } }) => ({
        parseReply: () => true,
        async lookUp() {
          const { isCross, leverage } = await deps.venue.marketSettings(account, symbol)
          return isCross === wanted?.is_cross && leverage === wanted.value ? true : undefined
        },
      }),
    }),
    async plan(task, context): Promise<OrderPlan<Data, More>> {
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
      return addToResult(await order(task, context), { writes: recordLeverage(task, context.now) })
    },
  })

type OrderRules<Data, More extends string> = EffectRules<
  Data,
  VenuePlan<Data, OrderStep | More>,
  ObservedEntry,
  OrderStep | More
> & { steps: EffectNames<OrderStep> }

/** Returns how an order is signed and found. What follows from it differs by market: see `evaluateOrder`. */
export const orderRules = <Data extends OrderTaskData, More extends string>(
  deps: PlaceOrderDeps,
): Omit<OrderRules<Data, More>, 'settle'> => ({
  steps: { sign: 'order', confirm: 'confirm' },
  driver: venueDriver<Data, ObservedEntry, OrderStep | More>(deps, {
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
})

/**
 * What is known of an order that was sent. A `decided` one needs no further action: it failed, or its records are read
 * again later. `observed` is the entry as the last read has shown it.
 */
export type EvaluatedOrder =
  | { type: 'decided'; result: Settled<OrderTaskData, OrderStep> }
  | { type: 'incomplete'; orderOutcome: OrderOutcome }
  | { type: 'complete'; orderOutcome: OrderOutcome; end: OrderEnd; observed: ObservedEntry }

/** Reads the records of an order that was sent, and evaluates its bracket. */
export async function evaluateOrder(
  deps: PlaceOrderDeps,
  task: TaskView<OrderTaskData>,
  seen: ObservedEntry,
  { now, signal }: StepContext,
): Promise<EvaluatedOrder> {
  if (seen.entry.status === 'rejected' && seen.entry.error) {
    const result = orderResult(task.executionId, task.data, { entry: seen.entry, exits: [], fills: [] })
    const { code, message } = seen.entry.error
    return { type: 'decided', result: { ...failed(code, message), result, rejected: true } }
  }
  const { orderOutcome, observed } = await completeOutcome(deps, task, seen, signal)
  if (!orderOutcome) {
    const known = { observed_entry: observed }
    const result = deps.signedActions.waitForRecords<OrderTaskData, OrderStep>(task, 'confirm', known)
    return { type: 'decided', result }
  }
  const { entry, fills, exits } = orderOutcome
  const evaluation = evaluateBracket(entry, sumFills(fills).size, exits)
  if (evaluation === 'nothing') {
    const message = 'The order was not filled: no liquidity within the accepted price'
    return { type: 'decided', result: failed('slippage', message) }
  }
  if (evaluation !== 'complete') return { type: 'incomplete', orderOutcome }
  return { type: 'complete', orderOutcome, observed, end: completed(task, orderOutcome, now) }
}

/** Stores the observed entry with a result that continues the task, so that it is not looked up again. */
export const withObserved = <Data extends OrderTaskData, Names extends string>(
  result: StepResultOf<Partial<OrderTaskData> | Partial<Data>, Names>,
  observed_entry: ObservedEntry,
): StepResultOf<Partial<OrderTaskData> | Partial<Data>, Names> =>
  'end' in result ? result : { ...result, data: { ...result.data, observed_entry } }

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
