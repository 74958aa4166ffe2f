import { type Entry, evaluateBracket, sumFills } from '#engines/venue/records/bracket.ts'
import type { Fault } from '#kernel/fault.ts'
import type { EffectUpdate, StepContext, TaskView } from '#kernel/task.ts'
import { completeOutcome, entryOfReply, lookUpEntry } from './entry-outcome.ts'
import { failed, failedBy, rejectedResult } from './order-failures.ts'
import { fillViews, type OrderOutcome, orderResult, resultNote } from './order-result.ts'
import { factsOf, type ObservedEntry, type OrderTaskData, planOf } from './order-task.ts'
import type { OrderEnd, OrderStep, OrderStepResult, PlaceOrderDeps } from './place-order-deps.ts'
import { positionNote } from './read-after-write.ts'
import type { ActionPlan } from './signed-action.ts'
import { noteSpent } from './spending.ts'
import { bracketAction } from './venue-orders.ts'

/** Steps of an order: collateral transfer, leverage, the order with its exits, and its confirmation. */

type OrderSteps<Data extends OrderTaskData, Repair extends string> = {
  [Name in OrderStep]: (task: TaskView<Data>, context: StepContext) => Promise<OrderStepResult<Data, Repair>>
}

export function placeOrderSteps<Data extends OrderTaskData, Repair extends string>(
  deps: PlaceOrderDeps<Data, Repair>,
): OrderSteps<Data, Repair> {
  type Result = OrderStepResult<Data, Repair>
  const { signedActions, pricing } = deps

  const order = async (
    task: TaskView<OrderTaskData>,
    { now }: StepContext,
    effects: EffectUpdate[],
  ): Promise<OrderStepResult<OrderTaskData>> => {
    if (now > task.deadline)
      return failed('expired', 'The deadline passed before the order was sent', effects)
    const taskData = task.data
    const plan: ActionPlan = {
      actionKey: 'entry',
      ...planOf(taskData),
      facts: factsOf(taskData),
      ...bracketAction(task.id, taskData, pricing),
    }
    const onRefused = (fault: Fault) => failedBy(fault, effects)
    return signedActions.sign(task, plan, { now, next: 'confirm', effects, onRefused })
  }

  const begin = async (task: TaskView<Data>, context: StepContext): Promise<Result> => {
    const { transfer_usd, operation, exit } = task.data
    if (transfer_usd === null) return setLeverage(task, context, [])
    return deps.collateralTransfer.sign(task, context, { operation, exit }, (fault) => failedBy(fault))
  }

  const transferred = async (task: TaskView<Data>, context: StepContext): Promise<Result> => {
    const actionOutcome = await deps.collateralTransfer.confirm(task, context)
    return signedActions.matchOutcome(task, actionOutcome, {
      poll: 'transferred',
      async executed(transfer, effects) {
        const nextResult = await setLeverage(task, context, effects)
        return deps.collateralTransfer.recordTransfer(task, context, transfer, nextResult)
      },
      notExecuted: (outcome) => rejectedResult(deps, task, outcome),
    })
  }

  const setLeverage = async (
    task: TaskView<OrderTaskData>,
    context: StepContext,
    effects: EffectUpdate[],
  ): Promise<OrderStepResult<OrderTaskData>> => {
    const taskData = task.data
    if (!taskData.leverage) return order(task, context, effects)
    const { is_cross: isCross, value: leverage } = taskData.leverage
    const plan: ActionPlan = {
      actionKey: 'leverage',
      ...planOf(taskData),
      facts: factsOf(taskData, { usdMicros: 0n }),
      action: { type: 'set_leverage', asset: taskData.asset, isCross, leverage },
    }
    const onRefused = (fault: Fault) => failedBy(fault, effects)
    return signedActions.sign(task, plan, { now: context.now, next: 'leverage', effects, onRefused })
  }

  const leverage = async (task: TaskView<Data>, context: StepContext): Promise<Result> => {
    const actionOutcome = await confirmLeverage(deps, task, context)
    return signedActions.matchOutcome(task, actionOutcome, {
      poll: 'leverage',
      executed: (_isSet, effects) => order(task, context, effects),
      notExecuted: (outcome) => rejectedResult(deps, task, outcome),
    })
  }

  const finish = async (
    task: TaskView<Data>,
    context: StepContext,
    observed: ObservedEntry,
    effects: EffectUpdate[],
  ): Promise<Result> => {
    const taskData = task.data
    const { entry } = observed
    if (entry.status === 'rejected' && entry.error) return rejected(task, taskData, entry, effects)
    const { orderOutcome, observed: now } = await completeOutcome(deps, task, observed, context.signal)
    if (!orderOutcome) {
      const waiting = signedActions.pollLater(task, 'confirm', { effects })
      return { ...waiting, data: { ...waiting.data, observed_entry: now } }
    }
    const evaluation = evaluateBracket(entry, sumFills(orderOutcome.fills).size, orderOutcome.exits)
    if (evaluation === 'complete') {
      const result = completed(task, taskData, orderOutcome, { effects, now: context.now })
      const finished = (await deps.onFilled?.(task, context, orderOutcome, result)) ?? result
      if ('end' in finished) return finished
      return { ...finished, data: { ...finished.data, observed_entry: now } }
    }
    if (evaluation === 'nothing')
      return failed('slippage', 'The order was not filled: no liquidity within the accepted price', effects)
    return deps.repairBracket(task, context, orderOutcome, effects)
  }

  const confirm = async (task: TaskView<Data>, context: StepContext): Promise<Result> => {
    // A known reply is not read again.
    const known = task.data.observed_entry
    if (known) return finish(task, context, known, [])
    const actionOutcome = await confirmEntry(deps, task, context)
    return signedActions.matchOutcome(task, actionOutcome, {
      poll: 'confirm',
      retry: { actionKey: 'entry', next: 'order', now: context.now },
      executed: (entry, effects) => finish(task, context, entry, effects),
      notExecuted: (outcome) => rejectedResult(deps, task, outcome),
    })
  }

  return { begin, transferred, leverage, order: (task, context) => order(task, context, []), confirm }
}

type ConfirmDeps = Pick<PlaceOrderDeps, 'venue' | 'signedActions' | 'rejections'>

const confirmLeverage = (
  { signedActions, venue }: ConfirmDeps,
  task: TaskView<OrderTaskData>,
  { signal }: StepContext,
) =>
  signedActions.confirm<true>({
    task,
    actionKey: 'leverage',
    signal,
    parseReply: () => true,
    async lookUp() {
      const { account, symbol, leverage: wanted } = task.data
      const { isCross, leverage } = await venue.marketSettings(account, symbol)
      return isCross === wanted?.is_cross && leverage === wanted.value ? true : undefined
    },
  })

const confirmEntry = (deps: ConfirmDeps, task: TaskView<OrderTaskData>, { signal }: StepContext) =>
  deps.signedActions.confirm<ObservedEntry>({
    task,
    actionKey: 'entry',
    signal,
    parseReply: (legs) => entryOfReply(legs, task.data, deps.rejections),
    lookUp: (how) => lookUpEntry(deps, task, how),
  })

function rejected(
  task: TaskView<OrderTaskData>,
  taskData: OrderTaskData,
  entry: Entry,
  effects: EffectUpdate[],
): OrderEnd {
  const { code, message } = entry.error ?? { code: 'venue_rejected', message: 'The venue rejected the order' }
  return {
    ...failed(
      code,
      message,
      effects.map((each) => ({ ...each, status: 'rejected' as const })),
    ),
    result: orderResult(task.id, taskData, { entry, exits: [], fills: [] }),
  }
}

export function completed(
  task: TaskView<OrderTaskData>,
  taskData: OrderTaskData,
  orderOutcome: OrderOutcome,
  { effects, now }: { effects: EffectUpdate[]; now: Date },
): OrderEnd {
  return {
    end: 'completed',
    outcome: orderOutcome.entry.status === 'partial' ? 'partial' : 'executed',
    result: orderResult(task.id, taskData, orderOutcome),
    data: {
      fills: fillViews(orderOutcome.fills),
      ...resultNote(taskData, orderOutcome),
      ...positionNote(taskData.market, orderOutcome.fills),
      ...noteSpent(task, taskData, orderOutcome, now),
    },
    effects,
  }
}
