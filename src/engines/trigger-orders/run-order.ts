import type { ReserveSpend } from '#durable/reserve-spend.ts'
import { exitGrant } from '#kernel/action.ts'
import { backoffMs } from '#kernel/backoff.ts'
import { later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { isRecord } from '#kernel/json.ts'
import type { Policy } from '#kernel/signer.ts'
import {
  type AdmittedSpend,
  defineTaskKind,
  type JsonObject,
  type NewEvent,
  type RetryRule,
  type StepAddition,
  type StepContext,
  type StepResultOf,
  type TaskKind,
  type TaskView,
  type Tx,
} from '#kernel/task.ts'
import type { TriggerOrder } from '#kernel/trigger-order.ts'
import type { Queryable } from '#store/query.ts'
import { type QuotedTrade, quoteKeyOf, tradeOf } from './quote-key.ts'
import { type OrderRow, ordersById, rearmTriggerOrder } from './store.ts'
import type { Amounts, OrderSwap, SwapExecution, SwapStep } from './swap-execution.ts'
import { bandAround } from './trigger-price.ts'

/** The task of an order that fired: a swap whose amount, price, safety and permission are determined once more. */

type PricedTrade = Pick<QuotedTrade, 'tokenIn' | 'tokenOut' | 'priced'>

/** Sales that were refused, and prices that had moved back before the sale: each attempt is a task. */
export type Attempts = { failures?: number; moved?: number }
export type OrderRules<Input extends JsonObject> = {
  kind: string
  soldToken(input: Input): { chainId: string; address: string }
  /** The most that the order may sell whatever the balance is; null: no such limit. */
  unitsMax?(db: Queryable, order: OrderRow<Input>): Promise<bigint | null>
  /** The swap for the units that may be sold; null where nothing is left. */
  swapOf(input: Input, availableUnits: bigint): OrderSwap | null
  /** What decides the price again; null where it is another token than those of the swap. */
  priced(input: Input): PricedTrade | null
  /** The event of a change of the order. */
  event(order: OrderRow<Input>): NewEvent
  /** Fields of the result that name the order. */
  resultOf(orderId: string): JsonObject
  /** Runs in the commit that ends a sale, with the units that left the wallet and did not come back. */
  onSold?(tx: Tx, order: OrderRow<Input>, units: bigint): Promise<void>
}
export type OrderTaskData = JsonObject & {
  trigger_order_id?: string
  /** The amount at which the price had moved back. */
  priced_units?: string
}

export type RunOrderDeps = {
  db: Queryable
  policy: Pick<Policy, 'check'>
  swaps: SwapExecution
  priceOf(trade: PricedTrade, amounts: Amounts): Promise<string>
  reserve: ReserveSpend
}

type Step = 'prepare' | SwapStep
type OrderTask<Input> = TaskView<OrderTaskData, Input>
type Result = StepResultOf<OrderTaskData, Step>
type Ending = Extract<Result, { end: string }>

/** Retries until the deadline: the usual cause is an overloaded provider. */
const retry: RetryRule = { attemptsMax: 1_000, firstMs: 500, maxMs: 10_000 }
/** Time before the deadline at which the task fails with its own error. */
const failureReserveMs = 60_000
const failuresMax = 10
const movedMax = 100
const backoff = { firstMs: 5_000, maxMs: 300_000 }
/** Nothing was executed, and a later attempt can succeed. */
const retriedCodes = [
  'conflict',
  'ended_by_operator',
  'expired',
  'insufficient_liquidity',
  'no_route',
  'quote_expired',
  'refunded',
  'slippage',
  'tx_failed',
  'unavailable',
  'upstream_changed',
]
const movedBack = 'price_moved_back'
/** An order whose refund cost more is left to its owner: ten attempts would cost ten times as much. */
const refundMinBps = 9_800n

/** The order fires without a read; the signature asks the policy, and counts the value. */
const spendOf =
  (deps: RunOrderDeps, kind: string) =>
  (userId: string, input: JsonObject): AdmittedSpend => {
    const chainId = String(input.chain_id ?? input.chain_id_in)
    const action = { userId, operation: kind, chainId, tokens: [], recipients: [], usdMicros: 0n, exit: true }
    return { action, grant: exitGrant(chainId), check: () => deps.policy.check(action) }
  }

export function orderKind<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
): TaskKind {
  const { steps } = deps.swaps
  const finishing =
    (step: (task: OrderTask<Input>, context: StepContext) => Promise<Result>) =>
    async (task: OrderTask<Input>, context: StepContext): Promise<Result> =>
      finish(rules, { task, now: context.now }, await step(task, context))
  return {
    ...defineTaskKind<OrderTaskData, Step, Input>({
      kind: rules.kind,
      version: 1,
      priority: 0,
      retry,
      spendOf: spendOf(deps, rules.kind),
      steps: {
        prepare: finishing((task, context) => prepare(deps, rules, task, context)),
        sign: finishing((task, context) => steps.sign(task as TaskView, context)),
        confirm: finishing((task, context) => steps.confirm(task as TaskView, context)),
        track: finishing((task, context) => steps.track(task as TaskView, context)),
      },
    }),
    orderEvent: (order) => rules.event(toRow(order as TriggerOrder<Input>)),
  }
}

const toRow = <Input>(order: TriggerOrder<Input>): OrderRow<Input> => ({
  ...order,
  task_status: order.status === 'fired' ? 'pending' : null,
  task_state: null,
  task_result: null,
  task_error: null,
  priced_at: null,
})

const failed = (code: string, message: string): Ending => ({
  end: 'failed',
  outcome: 'not_executed',
  error: { code, message, retryable: false },
})

async function prepare<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  { now }: StepContext,
): Promise<Result> {
  const { failures = 0 } = task.input
  const startsAt = failures === 0 ? task.createdAt : later(task.createdAt, backoffMs(backoff, failures - 1))
  const waitMs = startsAt.getTime() - now.getTime()
  if (waitMs > 0) return { park: { afterMs: waitMs, next: 'prepare' }, state: 'waiting' }
  try {
    return await prepareOnce(deps, rules, task, now)
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    if (!fault.retryable && !isUnchecked(fault)) return failed(fault.code, fault.message)
    if (task.deadline.getTime() - now.getTime() < failureReserveMs)
      return failed('expired', `The order could not be executed before the deadline: ${fault.message}`)
    throw fault.retryable ? fault : new Fault('unavailable', fault.message, { cause: fault })
  }
}

/** A security check that proved nothing, as where a node is away, ends no order: a later one may pass. */
const isUnchecked = ({ code, extras }: Fault): boolean =>
  code === 'token_unsafe' && extras.status !== 'flagged'

async function prepareOnce<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  now: Date,
): Promise<Result> {
  const { swaps, policy, reserve } = deps
  const { userId, input } = task
  const available = await swaps.available(userId, rules.soldToken(input))
  const [order] = await ordersById<Input>(deps.db, userId, [task.data.trigger_order_id ?? ''])
  const unitsMax = (order && (await rules.unitsMax?.(deps.db, order))) ?? null
  const isLimited = unitsMax !== null && unitsMax < available.units
  const swap = rules.swapOf(input, isLimited ? unitsMax : available.units)
  // What another task has reserved may be available again.
  if (!swap && !isLimited && available.heldUnits > 0n)
    return failed('conflict', 'The order fired, but another task has reserved all of the token')
  if (!swap) return failed('insufficient_balance', 'The order fired, but nothing of the token is available')
  const prepared = await swaps.prepare(swap, userId)
  const priced = rules.priced(input)
  if (priced && order) {
    const price = await deps.priceOf(priced, prepared.amounts)
    if (!isReached(order, price, swap.slippageBps))
      return {
        ...failed(movedBack, `The price of the swap is ${price}: it moved back before the order was sent`),
        data: { priced_units: String(prepared.amounts.inUnits) },
      }
  }
  await policy.check(prepared.action)
  return {
    next: 'sign',
    state: 'held',
    data: prepared.data,
    async writes(tx) {
      await reserve(tx, task, prepared.spend, now).catch((cause: unknown) => {
        // Another task took the balance or the gas meanwhile: the step decides again.
        if (cause instanceof Fault) throw new Fault('unavailable', cause.message, { cause })
        throw cause
      })
    },
  }
}

/** The order accepts its slippage, here too: the quote that fired it was at a smaller size. */
function isReached(
  { direction, trigger_price: trigger }: Pick<TriggerOrder, 'direction' | 'trigger_price'>,
  price: string,
  slippageBps: number,
): boolean {
  const { low, high } = bandAround(trigger, BigInt(slippageBps))
  return direction === 'lte' ? compareDecimals(price, high) <= 0 : compareDecimals(price, low) >= 0
}

/** The counts of the next attempt; undefined where there is none. */
function attemptsAfter({ failures = 0, moved = 0 }: Attempts, code: string): Required<Attempts> | undefined {
  if (code === movedBack) return moved < movedMax ? { failures, moved: moved + 1 } : undefined
  if (!retriedCodes.includes(code) || failures >= failuresMax) return undefined
  return { failures: failures + 1, moved }
}

type OrderEnd<Input> = { task: OrderTask<Input>; now: Date }

function finish<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  at: OrderEnd<Input>,
  result: Result,
): Result {
  if ('end' in result) return endOrder(rules, at, result)
  if (!('sign' in result)) return result
  const { sign } = result
  const refused = (fault: Fault): Ending => endOrder(rules, at, failed(fault.code, fault.message))
  return { ...result, sign: { ...sign, onRefused: sign.onRefused ?? refused } }
}

/**
 * Reports the end of the task as that of its order, or arms the order again where nothing was sold. The events show the
 * rows as the commit leaves them: an order of the group that the user cancels at the same time is not armed.
 */
export function endOrder<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  { task, now }: OrderEnd<Input>,
  ending: Ending,
): Ending {
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
  return { ...ending, result, complete } as Ending
}

type Rearming<Input> = {
  order: OrderRow<Input>
  taskId: string
  attempts: Required<Attempts>
  at: Date
  ending: Ending
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
    at,
  })

/** The token is still in the wallet, or is there again, less what the refund may have cost. */
function isUnsold<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  ending: Ending,
): boolean {
  if (ending.end !== 'failed') return false
  if (ending.outcome === 'not_executed') return true
  const { sent, back } = unitsMoved(rules, task, ending)
  return back > 0n && back * 10_000n >= sent * refundMinBps
}

/** Also where the provider has not paid yet: what it refunds after the end is given back. */
function unitsGone<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  ending: Ending,
): bigint {
  if (ending.outcome === 'not_executed') return 0n
  const { sent, back } = unitsMoved(rules, task, ending)
  return sent - back
}

function unitsMoved<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  { input }: OrderTask<Input>,
  { result }: Ending,
): { sent: bigint; back: bigint } {
  const sent = BigInt(typeof result?.amount_in === 'string' ? result.amount_in : 0)
  const refunded = result?.refunded
  if (!isRecord(refunded)) return { sent, back: 0n }
  const { chainId, address } = rules.soldToken(input)
  const isSoldToken = refunded.chain_id === chainId && refunded.token_address === address
  return { sent, back: isSoldToken ? BigInt(String(refunded.amount)) : 0n }
}

/** The balance may have grown since the order was left: then the quotes at its earlier size would fire it in vain. */
function quoteKeyAfter({ quote_key: quoteKey }: OrderRow<unknown>, { data }: Ending): string | null {
  const units = data?.priced_units
  return units && quoteKey ? quoteKeyOf({ ...tradeOf(quoteKey), amountInUnits: BigInt(units) }) : quoteKey
}
