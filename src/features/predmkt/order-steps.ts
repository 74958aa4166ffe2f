import { Fault } from '#kernel/contract/fault.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { PreparedOrder } from '#kernel/money/prediction-venue.ts'
import { pollsOf } from '#kernel/task/poll-again.ts'
import type { StepContext, Steps } from '#kernel/task/task.ts'
import { credentialsOf } from './account-checks.ts'
import type { PredmktDeps } from './deps.ts'
import { lookUpForgotten, orderIdentity } from './forgotten-order.ts'
import { type OrderDeps, orderFacts, quoteNow } from './order-admission.ts'
import { type OrderTerms, toVenueTerms } from './order-request.ts'
import { settleOrder } from './order-settle.ts'
import { refused, submitOrder, unwanted, waiting } from './order-submission.ts'
import {
  type OrderStepName,
  type OrderStepResult,
  type OrderTask,
  type OrderTaskData,
  termsOf,
} from './order-task.ts'
import { signEffect } from './signed-effect.ts'
import { coveredByCancel, noteOrder, orderRow } from './store/order-store.ts'

/** An order is signed and stored, sent and looked up, and followed until its trades settle. */

/** So often the venue may contradict itself about a market before the order ends. */
const contradictionsMax = 3

export function orderSteps(deps: OrderDeps): Steps<OrderTaskData, OrderStepName> {
  return {
    sign: (task, context) => signOrder(deps, task, context),
    async submit(task, context) {
      const row = await orderRow(deps.db, task.data.order_id ?? '')
      return submitOrder(deps, row?.cancel_asked ? unwanted(task) : task, context)
    },
    settle: (task, context) => settleOrder(deps, task, context),
  }
}

async function signOrder(deps: PredmktDeps, task: OrderTask, context: StepContext): Promise<OrderStepResult> {
  const { venue } = deps
  const { now } = context
  const { userId, data, executionId } = task
  const signed = task.effects.filter(({ kind }) => kind === 'prediction_order').length
  const forgotten = await lookUpForgotten(deps, task, context)
  if (forgotten) return forgotten
  if (now > task.deadline) return refused('expired', 'The order could not be placed in time')
  const credentials = await credentialsOf(deps, userId)
  let prepared: PreparedOrder
  try {
    prepared = await prepare(deps, data, orderIdentity(executionId, signed))
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return afterPrepareFault(task, fault)
  }
  const terms = termsOf(data.terms)
  const costlier = costlierThanHeld(terms, BigInt(data.cost_units), prepared)
  if (costlier) {
    // A purchase by dollars is sized anew, since fee and tick may have changed between two readings.
    const isSizedAnew = terms.allInUnits !== null && pollsOf(task) < contradictionsMax
    return isSizedAnew ? unsigned(task, costlier) : refused('fee_changed', costlier)
  }
  return signEffect<OrderTaskData, OrderStepName>(
    deps,
    task,
    {
      kind: 'prediction_order',
      externalId: prepared.orderId,
      account: data.wallet.owner,
      action: prepared.action,
      facts: orderFacts(deps, BigInt(data.counted_units)),
      bodyOf: (signature) => venue.orderBody(prepared, signature, credentials.key),
      writes: (tx) =>
        noteOrder(tx, {
          userId,
          venue: venue.name,
          taskId: task.id,
          acceptedAt: task.createdAt,
          leg: data.leg ?? 'order',
          entryOrderId: data.entry_order_id ?? null,
          prepared,
          expiresAt: terms.expiresAt,
          now,
        }),
    },
    {
      now,
      next: 'submit',
      data: signedOrderData(prepared),
      onRefused: ({ code, message, extras }) =>
        refused(extras.reason === coveredByCancel ? 'cancelled' : code, message),
    },
  )
}

/** Ends the order, or prepares it again if the fault may pass. */
function afterPrepareFault(task: OrderTask, { code, message, retryable, extras }: Fault): OrderStepResult {
  if (!retryable || code === 'insufficient_liquidity') return refused(code, message)
  const { reason } = extras
  if (reason === 'upstream_inconsistent' && pollsOf(task) >= contradictionsMax)
    return refused(reason, `${message}; nothing was signed`)
  return unsigned(task, message)
}

const signedOrderData = ({ orderId, market, action }: PreparedOrder): Partial<OrderTaskData> => ({
  order_id: orderId,
  market_id: market.marketId,
  match_delay_ms: market.matchDelaySeconds * 1_000,
  protocol: market.protocol,
  making_units: String(action.makerUnits),
  taking_units: String(action.takerUnits),
  polls: 0,
  note: null,
  progress: null,
})

/** Waits to sign; what was looked up before is not looked up again. */
function unsigned(task: OrderTask, text: string): OrderStepResult {
  const result = waiting(task, 'sign', { text })
  return { ...result, data: { ...result.data, looked_up: true } }
}

/** Says how an order can cost more than was accepted, by the fee that the order book charges now. */
function costlierThanHeld(
  { side, maxFeeUnits: acceptedUnits }: OrderTerms,
  heldUnits: bigint,
  { action, maxFeeUnits }: PreparedOrder,
): string | undefined {
  const fee = `The fee of the venue can be ${fromUnits(maxFeeUnits, usdcDecimals)} USD now`
  if (acceptedUnits !== null && maxFeeUnits > acceptedUnits)
    return `${fee}, which is more than \`max_fee_usd\`; nothing was signed`
  if (side === 'buy' && action.makerUnits + maxFeeUnits > heldUnits)
    return `${fee}, and the order could cost more than was reserved for it; nothing was signed`
  return undefined
}

/** Routes the order by what venue and book say now; a stale reading of the admission is never signed. */
async function prepare(
  deps: PredmktDeps,
  { terms: stored, wallet }: OrderTaskData,
  identity: string,
): Promise<PreparedOrder> {
  const { venue } = deps
  const terms = termsOf(stored)
  const { outcomeId, timeInForce, postOnly, expiresAt } = terms
  const quote = await quoteNow(deps, terms)
  const market = await venue.market({ outcomeId })
  if (!market) throw new Fault('market_closed', 'The venue does not know the market any more')
  return venue.prepareOrder({
    identity,
    wallet,
    outcome: { venue: venue.name, marketId: market.marketId, outcomeId },
    terms: toVenueTerms(terms, quote),
    timeInForce,
    postOnly,
    expiresAt,
  })
}
