import type { ReservedSpend, ReserveSpend } from '#durable/reserve-spend.ts'
import { exitGrant, type PlannedAction } from '#kernel/action.ts'
import { backoffMs } from '#kernel/backoff.ts'
import type { Token } from '#kernel/chains.ts'
import { later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
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
  type Steps,
  type TaskKind,
  type TaskView,
} from '#kernel/task.ts'
import type { TriggerOrder } from '#kernel/trigger-order.ts'
import { type Queryable, query } from '#store/query.ts'
import type { Amounts } from './pricer.ts'
import type { QuotedTrade } from './quote-key.ts'
import { type OrderRow, ordersById, rearmTriggerOrder } from './store.ts'
import { bandAround } from './trigger-price.ts'

/** The task of an order that fired: a swap whose amount, price, safety and permission are determined once more. */

export type SwapStep = 'sign' | 'confirm' | 'track'
export type OrderSwap = {
  chainIn: string
  chainOut: string
  tokenIn: string
  tokenOut: string
  amount: { units: bigint } | { usd: string }
  slippageBps: number
  /** It returns money to the user: caps and switches do not stop it. */
  isExit: boolean
}
/** A swap that was quoted, checked and simulated, up to its acceptance. */
export type PreparedOrder = {
  data: JsonObject
  spend: ReservedSpend
  action: PlannedAction
  amounts: Amounts
  tokens: { in: Token; out: Token }
}
export type SwapExecution = {
  /** Units of the wallet that no other task has reserved. */
  available(userId: string, token: { chainId: string; address: string }): Promise<bigint>
  prepare(swap: OrderSwap, userId: string): Promise<PreparedOrder>
  steps: Steps<JsonObject, SwapStep>
}

type PricedTrade = Pick<QuotedTrade, 'tokenIn' | 'tokenOut' | 'priced'>

/** Sales that were refused, and prices that had moved back before the sale: each attempt is a task. */
export type Attempts = { failures?: number; moved?: number }
export type OrderRules<Input extends JsonObject> = {
  kind: string
  soldToken(input: Input): { chainId: string; address: string }
  /** The swap for the units that are available; null where nothing is left. */
  swapOf(input: Input, availableUnits: bigint): OrderSwap | null
  /** What decides the price again; null where it is another token than those of the swap. */
  priced(input: Input): PricedTrade | null
  /** The event of a change of the order. */
  event(order: OrderRow<Input>): NewEvent
  /** Fields of the result that name the order. */
  resultOf(orderId: string): JsonObject
}
export type OrderTaskData = JsonObject & { trigger_order_id?: string }

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
    if (!fault.retryable) return failed(fault.code, fault.message)
    if (task.deadline.getTime() - now.getTime() < failureReserveMs)
      return failed('expired', `The order could not be executed before the deadline: ${fault.message}`)
    throw fault
  }
}

async function prepareOnce<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  now: Date,
): Promise<Result> {
  const { swaps, policy, reserve } = deps
  const { userId, input } = task
  const swap = rules.swapOf(input, await swaps.available(userId, rules.soldToken(input)))
  if (!swap) return failed('insufficient_balance', 'The order fired, but nothing of the token is available')
  const prepared = await swaps.prepare(swap, userId)
  const priced = rules.priced(input)
  const [order] = await ordersById(deps.db, userId, [task.data.trigger_order_id ?? ''])
  if (priced && order) {
    const price = await deps.priceOf(priced, prepared.amounts)
    if (!isReached(order, price, swap.slippageBps))
      return failed(movedBack, `The price of the swap is ${price}: it moved back before the order was sent`)
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

/** Reports the end of the task as that of its order, or arms the order again where nothing was executed. */
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
  const siblings = await cancelledBy<Input>(deps.db, orderId)
  const end = (ending: Ending): Ending =>
    withOrder(rules, { task, now, order, siblings, orderId }, ending) as Ending
  if (!signs) return end(result as Ending)
  const { sign } = result
  const refused = (fault: Fault): Ending => end(failed(fault.code, fault.message))
  return { ...result, sign: { ...sign, onRefused: sign.onRefused ?? refused } }
}

const cancelledBy = <Input>(db: Queryable, orderId: string): Promise<TriggerOrder<Input>[]> =>
  query<TriggerOrder<Input>>(
    db,
    `select * from trigger_order where cancelled_by = $1 and status = 'cancelled'`,
    [orderId],
  )

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
  const isRetried = ending.end === 'failed' && ending.outcome === 'not_executed'
  const attempts = isRetried ? attemptsAfter(task.input, error!.code) : undefined
  if (!attempts) return { ...named, events: [...(ending.events ?? []), rules.event(after)] }
  const again = { ...after, status: 'armed' as const, input: { ...order.input, ...attempts } }
  const events = [
    ...(ending.events ?? []),
    rules.event(again),
    ...siblings.map((each) => rules.event(toRow({ ...each, status: 'armed', cancelled_by: null }))),
  ]
  return addToResult({ ...named, events } as Result, {
    async writes(tx) {
      await rearmTriggerOrder(tx, { orderId, taskId: task.id, input: attempts, at: now })
    },
  })
}
