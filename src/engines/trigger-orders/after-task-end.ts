import { type FaultCode, faults } from '#kernel/contract/fault.ts'
import { rearmedExecutionId } from '#kernel/task/execution-id.ts'
import type { JsonObject, StepAddition, Tx } from '#kernel/task/task.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import { isRecord } from '#kernel/wire/json.ts'
import type { Attempts, OrderEnding, OrderRules, OrderTask } from './order-kind-rules.ts'
import { quoteKeyOf, tradeOf } from './quote-key.ts'
import { type OrderRow, ordersById, rearmTriggerOrder } from './store.ts'

/** What happens to an order when its task ends: the order ends with it, or is armed again. */

const failuresMax = 10
const movedMax = 100
/** Error codes after which nothing was sold and a later attempt can succeed; retryable faults count too. */
const retriedCodes = [
  'conflict',
  'ended_by_operator',
  'expired',
  'refunded',
  'slippage',
  'tx_failed',
  'upstream_changed',
  'upstream_rejected',
]
export const movedBack = 'price_moved_back'
/** A hold of the chain's money is no failure of the order, which is armed again for as long as the hold lasts. */
export const moneyHeld = 'money_on_hold'
/** After a refund of less than this part of a sale, the order ends: each of ten attempts could lose as much again. */
const refundMinBps = 9_800n

export const toRow = <Input>(order: TriggerOrder<Input>): OrderRow<Input> => ({
  ...order,
  task_status: order.status === 'fired' ? 'pending' : null,
  task_state: null,
  task_result: null,
  task_error: null,
  priced_at: null,
})

const isRetried = (code: string): boolean =>
  retriedCodes.includes(code) || faults[code as FaultCode]?.retryable === true

/** Returns the counts of the order's next attempt, or undefined if the order gets no further attempt. */
function attemptsAfter({ failures = 0, moved = 0 }: Attempts, code: string): Required<Attempts> | undefined {
  if (code === moneyHeld) return { failures, moved }
  if (code === movedBack) return moved < movedMax ? { failures, moved: moved + 1 } : undefined
  if (!isRetried(code) || failures >= failuresMax) return undefined
  return { failures: failures + 1, moved }
}

export type OrderEnd<Input> = { task: OrderTask<Input>; now: Date }

/**
 * Reports the end of the task as that of its order, or arms the order again if nothing was sold. The events show
 * the rows as committed: an order of the group that the user cancels at the same time is not armed.
 */
export function endOrder<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  { task, now }: OrderEnd<Input>,
  ending: OrderEnding,
): OrderEnding {
  const orderId = task.data.trigger_order_id
  if (orderId === undefined) throw new Error(`task ${task.id} belongs to no order`)
  const result = { ...ending.result, ...rules.resultOf(orderId) }
  const error = 'error' in ending ? ending.error : null
  const attempts = error && isUnsold(rules, task, ending) ? attemptsAfter(task.input, error.code) : undefined
  const ofTask = { task_status: ending.end, task_result: result, task_error: error }
  const complete = async (tx: Tx): Promise<StepAddition> => {
    const added = (await ending.complete?.(tx)) ?? {}
    const [order] = await ordersById<Input>(tx, task.userId, [orderId])
    if (!order) return added
    const changed = attempts
      ? await rearm(tx, { order, taskId: task.id, attempts, at: now, ending })
      : [order]
    const units = unitsGone(rules, task, ending)
    if (units > 0n) await rules.onSold?.(tx, order, units)
    const rows = changed.map((each) =>
      each.id === orderId ? { ...order, ...each, ...ofTask, updated_at: now } : toRow(each),
    )
    return { ...added, events: [...(added.events ?? []), ...rows.map(rules.event)] }
  }
  return { ...ending, result, complete } as OrderEnding
}

type Rearming<Input> = {
  order: OrderRow<Input>
  taskId: string
  attempts: Required<Attempts>
  at: Date
  ending: OrderEnding
}

const rearm = <Input extends JsonObject & Attempts>(
  tx: Tx,
  { order, taskId, attempts, at, ending }: Rearming<Input>,
): Promise<TriggerOrder<Input>[]> =>
  rearmTriggerOrder<Input>(tx, {
    orderId: order.id,
    taskId,
    input: attempts,
    quoteKey: quoteKeyAfter(order, ending),
    // Even a sale that was refunded whole was executed, so the next attempt needs a new execution id to look up.
    executionId: isRecord(ending.result?.refunded) ? rearmedExecutionId(order) : null,
    at,
  })

/** Whether the sold token is still in the wallet or has returned to it, less the possible cost of a refund. */
function isUnsold<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  ending: OrderEnding,
): boolean {
  if (ending.end !== 'failed') return false
  if (ending.outcome === 'not_executed') return true
  const { sent, back } = unitsMoved(rules, task, ending)
  return back > 0n && back * 10_000n >= sent * refundMinBps
}

/**
 * Returns the units that left the wallet and have not come back, even if the provider has not paid yet. The units of a
 * later refund are added back when the refund arrives.
 */
function unitsGone<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  ending: OrderEnding,
): bigint {
  if (ending.outcome === 'not_executed') return 0n
  const { sent, back } = unitsMoved(rules, task, ending)
  return sent - back
}

function unitsMoved<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  { input }: OrderTask<Input>,
  { result }: OrderEnding,
): { sent: bigint; back: bigint } {
  const sent = BigInt(typeof result?.amount_in === 'string' ? result.amount_in : 0)
  const refunded = result?.refunded
  if (!isRecord(refunded)) return { sent, back: 0n }
  const { chainId, address } = rules.soldToken(input)
  const isSoldToken = refunded.chain_id === chainId && refunded.token_address === address
  return { sent, back: isSoldToken ? BigInt(String(refunded.amount)) : 0n }
}

/**
 * Returns the quote key for the size that was priced last. If the order has grown, quotes for its earlier size would
 * fire it at a price that its present size does not get.
 */
function quoteKeyAfter({ quote_key: quoteKey }: OrderRow<unknown>, { data }: OrderEnding): string | null {
  const units = data?.priced_units
  return units && quoteKey ? quoteKeyOf({ ...tradeOf(quoteKey), amountInUnits: BigInt(units) }) : quoteKey
}
