import type { ReserveSpend } from '#durable/reserve-spend.ts'
import { exitGrant } from '#kernel/action.ts'
import { backoffMs } from '#kernel/backoff.ts'
import { later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { isRecord } from '#kernel/json.ts'
import { addToResult } from '#kernel/one-effect.ts'
import type { Policy } from '#kernel/signer.ts'
import {
  type AdmittedSpend,
  defineTaskKind,
  type JsonObject,
  type NewEvent,
  type RetryRule,
  type StepContext,
  type StepResultOf,
  type TaskKind,
  type TaskView,
  type Tx,
} from '#kernel/task.ts'
import type { TriggerOrder } from '#kernel/trigger-order.ts'
import type { Queryable } from '#store/query.ts'
import { type QuotedTrade, quoteKeyOf, tradeOf } from './quote-key.ts'
import { cancelledBy, type OrderRow, ordersById, rearmTriggerOrder } from './store.ts'
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
  /** Runs in the commit that ends a sale. */
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
      finish(deps, rules, { task, now: context.now, result: await step(task, context) })
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

type Finishing<Input> = { task: OrderTask<Input>; now: Date; result: Result }

/** Reports the end of the task as that of its order, or arms the order again where nothing was sold. */
async function finish<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
  { task, now, result }: Finishing<Input>,
): Promise<Result> {
  const signs = 'sign' in result
  if (!('end' in result) && !signs) return result
  const orderId = task.data.trigger_order_id
  if (orderId === undefined) throw new Error(`task ${task.id} belongs to no order`)
  const [order] = await ordersById<Input>(deps.db, task.userId, [orderId])
  const siblings = await cancelledBy<Input>(deps.db, [orderId])
  const end = (ending: Ending): Ending =>
    withOrder(rules, { task, now, order, siblings, orderId }, ending) as Ending
  if (!signs) return end(result as Ending)
  const { sign } = result
  const refused = (fault: Fault): Ending => end(failed(fault.code, fault.message))
  return { ...result, sign: { ...sign, onRefused: sign.onRefused ?? refused } }
}

type OrderOfTask<Input> = {
  task: OrderTask<Input>
  now: Date
  orderId: string
  order: OrderRow<Input> | undefined
  siblings: readonly TriggerOrder<Input>[]
}

function withOrder<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  { task, now, order, siblings, orderId }: OrderOfTask<Input>,
  ending: Ending,
): Result {
  const named = { ...ending, result: { ...ending.result, ...rules.resultOf(orderId) } }
  if (!order) return named
  const error = 'error' in ending ? ending.error : null
  const after = {
    ...order,
    updated_at: now,
    task_status: ending.end,
    task_result: named.result,
    task_error: error,
  }
  const attempts = isUnsold(rules, task, named) ? attemptsAfter(task.input, error!.code) : undefined
  if (!attempts) {
    const ended = { ...named, events: [...(ending.events ?? []), rules.event(after)] }
    const sold = named.result.amount_in
    if (ending.end !== 'completed' || typeof sold !== 'string') return ended
    return addToResult(ended as Result, {
      async writes(tx) {
        await rules.onSold?.(tx, order, BigInt(sold))
      },
    })
  }
  const again = { ...after, status: 'armed' as const, input: { ...order.input, ...attempts } }
  const events = [
    ...(ending.events ?? []),
    rules.event(again),
    ...siblings.map((each) => rules.event(toRow({ ...each, status: 'armed', cancelled_by: null }))),
  ]
  const quoteKey = quoteKeyAfter(order, ending)
  return addToResult({ ...named, events } as Result, {
    async writes(tx) {
      await rearmTriggerOrder(tx, { orderId, taskId: task.id, input: attempts, quoteKey, at: now })
    },
  })
}

/** The token is still in the wallet, or is there again, less what the refund may have cost. */
function isUnsold<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  { input }: OrderTask<Input>,
  ending: Ending,
): boolean {
  if (ending.end !== 'failed') return false
  const refunded = ending.result?.refunded
  if (ending.outcome === 'not_executed' || !isRecord(refunded)) return ending.outcome === 'not_executed'
  const { chainId, address } = rules.soldToken(input)
  const isSoldToken = refunded.chain_id === chainId && refunded.token_address === address
  const [back, sent] = [BigInt(String(refunded.amount)), BigInt(String(ending.result?.amount_in))]
  return isSoldToken && back * 10_000n >= sent * refundMinBps
}

/** The balance may have grown since the order was left: then the quotes at its earlier size would fire it in vain. */
function quoteKeyAfter({ quote_key: quoteKey }: OrderRow<unknown>, { data }: Ending): string | null {
  const units = data?.priced_units
  return units && quoteKey ? quoteKeyOf({ ...tradeOf(quoteKey), amountInUnits: BigInt(units) }) : quoteKey
}
