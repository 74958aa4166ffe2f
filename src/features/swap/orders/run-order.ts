import type { ReserveSpend } from '#durable/accept/reserve-spend.ts'
import {
  endOrder,
  moneyHeld,
  movedBack,
  type OrderEnd,
  toRow,
} from '#engines/trigger-orders/after-task-end.ts'
import {
  type Attempts,
  type OrderEnding,
  type OrderRules,
  type OrderStep,
  type OrderStepResult,
  type OrderTask,
  type OrderTaskData,
  orderKindVersion,
  type PricedTrade,
} from '#engines/trigger-orders/order-kind-rules.ts'
import { ordersById } from '#engines/trigger-orders/store.ts'
import type { Amounts, SwapExecution } from '#engines/trigger-orders/swap-port.ts'
import { bandAround } from '#engines/trigger-orders/trigger-price.ts'
import { backoffMs } from '#kernel/async/backoff.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { notExecuted } from '#kernel/task/effect-steps.ts'
import {
  isLookingUp,
  lookUpAgain,
  nothingFound,
  outsideId,
  wouldEndUnseen,
} from '#kernel/task/forgotten-execution.ts'
import { exitGrant } from '#kernel/task/policy-action.ts'
import type { Policy } from '#kernel/task/signer.ts'
import {
  type AdmittedSpend,
  defineTaskKind,
  type JsonObject,
  type RetryRule,
  type StepContext,
  type TaskKind,
  type TaskView,
} from '#kernel/task/task.ts'
import type { TriggerOrder } from '#kernel/task/trigger-order.ts'
import type { Queryable } from '#store/query.ts'

/** The task of an order that fired: a swap whose amount, price, safety and permission are checked once more. */

export type RunOrderDeps = {
  db: Queryable
  clock: Clock
  policy: Pick<Policy, 'check'>
  swaps: SwapExecution
  /** Throws while the money of a chain is on hold. */
  assertFree(chainId: string): void
  priceOf(trade: PricedTrade, amounts: Amounts): Promise<string>
  reserve: ReserveSpend
}

/** A failed step of an order is retried until the deadline, because the usual cause is a busy provider. */
const retry: RetryRule = { attemptsMax: 1_000, firstMs: 500, maxMs: 10_000 }
/**
 * How long before its deadline the task of an order fails by itself, so that it ends with the error of the order and
 * not with that of the deadline.
 */
const failureReserveMs = 60_000
/** A node may not show a purchase yet, so an empty wallet is read once more after this time. */
const emptyRepeatMs = 5_000
const backoff = { firstMs: 5_000, maxMs: 300_000 }

/**
 * Returns the spend with which the task of a fired order is accepted. It is made without a read and has no value: the
 * step that signs asks the policy and counts the value.
 */
export const spendOf =
  (deps: Pick<RunOrderDeps, 'policy'>, kind: string) =>
  (userId: string, input: JsonObject): AdmittedSpend => {
    const chainId = String(input.chain_id ?? input.chain_id_in)
    const action = { userId, operation: kind, chainId, tokens: [], recipients: [], usdMicros: 0n, exit: true }
    return { action, grant: exitGrant(chainId), check: () => deps.policy.check(action) }
  }

export function createOrderKind<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
): TaskKind {
  const { steps } = deps.swaps
  const finishing =
    (step: (task: OrderTask<Input>, context: StepContext) => Promise<OrderStepResult>) =>
    async (task: OrderTask<Input>, context: StepContext): Promise<OrderStepResult> =>
      finish(rules, { task, now: context.now }, await step(task, context).catch(throwRetried))
  return {
    ...defineTaskKind<OrderTaskData, OrderStep, Input>({
      kind: rules.kind,
      version: orderKindVersion,
      priority: 0,
      retry,
      spendOf: spendOf(deps, rules.kind),
      steps: {
        prepare: finishing((task, context) => prepare(deps, rules, task, context)),
        sign: finishing(async (task, context) => {
          const result = await steps.sign(task as TaskView, context)
          if (!task.data.is_sold || !('next' in result) || result.next !== 'sign') return result
          // The node that the step asked does not know the earlier sale, so the order is prepared like any other.
          return { ...result, next: 'prepare', data: { ...result.data, is_sold: false } }
        }),
        confirm: finishing((task, context) => steps.confirm(task as TaskView, context)),
        track: finishing((task, context) => steps.track(task as TaskView, context)),
      },
    }),
    // A cancel changes and reports the order in its own commit, so only failures are completed here.
    completeEnd: (task, ending) =>
      ending.end === 'failed'
        ? endOrder(rules, { task: task as OrderTask<Input>, now: deps.clock.now() }, ending)
        : ending,
    orderEvent: (order) => rules.event(toRow(order as TriggerOrder<Input>)),
  }
}

/** Throws a node's rejection as retryable, because another node of the chain may accept the call. */
function throwRetried(fault: unknown): never {
  if (!(fault instanceof Fault) || fault.code !== 'upstream_rejected') throw fault
  throw new Fault('unavailable', fault.message, { cause: fault })
}

const failed = (code: string, message: string): OrderEnding =>
  notExecuted({ code, message, retryable: false })

async function prepare<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  { now }: StepContext,
): Promise<OrderStepResult> {
  const { failures = 0 } = task.input
  const startsAt = failures === 0 ? task.createdAt : later(task.createdAt, backoffMs(backoff, failures - 1))
  const waitMs = startsAt.getTime() - now.getTime()
  if (waitMs > 0 && !isLookingUp(task))
    return { park: { afterMs: waitMs, next: 'prepare' }, state: 'waiting' }
  try {
    // The hold of the chain's money is checked first, because the chain's node may not answer during a hold. A task
    // that looks up an earlier sale signs nothing, so a hold does not stop it.
    if (!isLookingUp(task)) deps.assertFree(rules.soldToken(task.input).chainId)
    return (await lookUp(deps, rules, task, now)) ?? (await prepareOnce(deps, rules, task, now))
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    if (!fault.retryable && !isPassing(fault)) return failed(fault.code, fault.message)
    if (task.deadline.getTime() - now.getTime() < failureReserveMs) {
      const code = fault.extras.reason === moneyHeld ? moneyHeld : 'expired'
      return failed(code, `The order could not be executed before the deadline: ${fault.message}`)
    }
    throw fault.retryable ? fault : new Fault('unavailable', fault.message, { cause: fault })
  }
}

/**
 * Looks up the sale of the order before this task, which the database may have lost. This comes first, so that
 * present wallet, price and limits do not end an executed order. Returns undefined if the order sold nothing.
 */
async function lookUp<Input extends JsonObject & Attempts>(
  { swaps }: Pick<RunOrderDeps, 'swaps'>,
  rules: Pick<OrderRules<Input>, 'soldToken' | 'swapOf'>,
  task: OrderTask<Input>,
  now: Date,
): Promise<OrderStepResult | undefined> {
  const { userId, input } = task
  const executionId = outsideId(task)
  if (executionId === undefined) return undefined
  const soldToken = rules.soldToken(input)
  let isExecuted = false
  const again = (state: 'reconciling' | 'review', note: string) => {
    const { chainId } = soldToken
    const kind = swaps.effectKindOn(chainId)
    const sought = { chain_id: chainId, kind, ...(isExecuted && { is_found: true }) }
    const context = { now, steps: { sign: 'prepare' as const } }
    return lookUpAgain<OrderTaskData, OrderStep>(
      { task, context },
      { state, note, sought },
    ) as OrderStepResult
  }
  try {
    const units = await swaps.soldBefore(userId, { ...soldToken, executionId })
    if (units === undefined)
      return isLookingUp(task)
        ? (nothingFound<OrderTaskData, OrderStep>('prepare') as OrderStepResult)
        : undefined
    isExecuted = true
    const executed = 'this order was executed before'
    if (wouldEndUnseen(task)) return again('reconciling', executed)
    const swap = rules.swapOf(input, units)
    if (!swap) return again('review', `${executed}, and sold nothing`)
    const data = await swaps.quoteSold({ ...swap, amount: { units } }, userId)
    return {
      park: { afterMs: 0, next: 'sign' },
      state: 'reconciling',
      outcome: 'unknown',
      data: { ...data, is_sold: true },
    }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    isExecuted ||= fault.extras.executed === true
    // It is not known yet whether the order was executed, so its step is retried, and the order may still be cancelled.
    if (wouldEndUnseen(task) && !isExecuted) throw fault
    return again(fault.retryable ? 'reconciling' : 'review', fault.message)
  }
}

/**
 * Whether the step is repeated after a fault and the order goes on: a security check proved nothing (because a node
 * is away, for example), a node refused the call, or another task reserved the balance after it was read.
 */
const isPassing = ({ code, extras }: Fault): boolean =>
  code === 'upstream_rejected' ||
  code === 'insufficient_balance' ||
  (code === 'token_unsafe' && extras.status !== 'flagged')

async function prepareOnce<Input extends JsonObject & Attempts>(
  deps: RunOrderDeps,
  rules: OrderRules<Input>,
  task: OrderTask<Input>,
  now: Date,
): Promise<OrderStepResult> {
  const { swaps, policy, reserve } = deps
  const { userId, input } = task
  const available = await swaps.available(userId, rules.soldToken(input))
  const [order] = await ordersById<Input>(deps.db, userId, [task.data.trigger_order_id ?? ''])
  const limit = (order && (await rules.unitsMax?.(deps.db, order))) ?? null
  const isLimited = limit !== null && limit.units < available.units
  const { units, heldUnits } = isLimited ? limit : available
  const swap = rules.swapOf(input, units)
  if (!swap && heldUnits > 0n) return reservedElsewhere()
  if (!swap && !isLimited && !task.data.is_empty)
    return { park: { afterMs: emptyRepeatMs, next: 'prepare' }, state: 'waiting', data: { is_empty: true } }
  if (!swap) return failed('insufficient_balance', 'The order fired, but nothing of the token is available')
  const prepared = await swaps.prepare(swap, userId).catch((fault: unknown) => {
    if (heldUnits > 0n && fault instanceof Fault && fault.code === 'validation') return undefined
    throw fault
  })
  if (!prepared) return reservedElsewhere()
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
        // Another task took the balance or the gas meanwhile, so the step prepares the order again.
        if (cause instanceof Fault) throw new Fault('unavailable', cause.message, { cause })
        throw cause
      })
    },
  }
}

/** The end of an order whose token another task has reserved; a small rest can be too little for a swap. */
const reservedElsewhere = (): OrderEnding =>
  failed('conflict', 'The order fired, but another task has reserved the token, or nearly all of it')

/** Whether a price reaches the trigger within the order's slippage, as the first quote was for a smaller size. */
function isReached(
  { direction, trigger_price: trigger }: Pick<TriggerOrder, 'direction' | 'trigger_price'>,
  price: string,
  slippageBps: number,
): boolean {
  const { low, high } = bandAround(trigger, BigInt(slippageBps))
  return direction === 'lte' ? compareDecimals(price, high) <= 0 : compareDecimals(price, low) >= 0
}

function finish<Input extends JsonObject & Attempts>(
  rules: OrderRules<Input>,
  at: OrderEnd<Input>,
  result: OrderStepResult,
): OrderStepResult {
  if ('end' in result) return endOrder(rules, at, result)
  if (!('sign' in result)) return result
  const { sign } = result
  const refused = (fault: Fault): OrderEnding => endOrder(rules, at, failed(fault.code, fault.message))
  return { ...result, sign: { ...sign, onRefused: sign.onRefused ?? refused } }
}
