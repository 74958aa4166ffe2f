import { rearmTriggerOrder } from '#engines/trigger-orders/store.ts'
import { deriveCloid } from '#engines/venue/orders/action-outcome.ts'
import { exitSlippagePercent } from '#engines/venue/orders/bracket-action.ts'
import { failed } from '#engines/venue/orders/order-failures.ts'
import { readLagMs } from '#engines/venue/orders/order-lookup.ts'
import { recentSpendings, type Spendings } from '#engines/venue/orders/pending-spends.ts'
import { boughtRecently, recentlyCancelled, usualLagMs } from '#engines/venue/orders/read-after-write.ts'
import { requireAgent } from '#engines/venue/orders/require-trading-key.ts'
import { later } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { toFixedPoint } from '#kernel/money/money.ts'
import { addToResult } from '#kernel/task/effect-steps.ts'
import { outsideId } from '#kernel/task/forgotten-execution.ts'
import { exitGrant } from '#kernel/task/policy-action.ts'
import type {
  AdmittedSpend,
  FailedResult,
  JsonObject,
  RetryRule,
  StepContext,
  StepResultOf,
  Steps,
  TaskView,
} from '#kernel/task/task.ts'
import type { SpotBalance, SpotMarket } from '#upstreams/hyperliquid/hyperliquid.ts'
import { baseTaskData, feeReserve, heldOf, spotAction } from './buy-and-sell.ts'
import type { SpotDeps } from './deps.ts'
import { freeOf, lesser } from './free-balance.ts'
import type { SpotOrderStep, SpotOrderTaskData } from './gateway-triggers.ts'
import { midOf, quoteToken, requireKnownSpotMarket } from './spot-markets.ts'
import type { TriggerInput } from './trigger-store.ts'

/** This module sells the size of a fired trigger, limited to the free balance. */

/** A failed sale is retried until its deadline, because the usual cause is an overloaded venue. */
export const triggerRetry: RetryRule = { attemptsMax: 1_000, firstMs: 200, maxMs: 5_000 }
/** The task ends this long before its deadline, so that it fails with an error of its own. */
const failureReserveMs = 60_000

/**
 * Whether a newer read could show more to sell: the trigger sells all of the balance, or the balance is below the size
 * by more than the fee of the purchase.
 */
const isShort = (free: string, wanted: string | null): boolean =>
  wanted === null || toFixedPoint(free) * feeReserve.denominator < toFixedPoint(wanted) * feeReserve.numerator

/** The price triggers write the id and price of the trigger into these data, and `prepare` adds the order. */
export type TriggerTaskData = SpotOrderTaskData & { trigger_order_id?: string; trigger_price?: string }
export type TriggerStep = 'prepare' | SpotOrderStep
export type TriggerTask = TaskView<TriggerTaskData, TriggerInput>
type TriggerResult = StepResultOf<Partial<TriggerTaskData>, TriggerStep>

/**
 * After these errors nothing was executed: the venue was out of reach, the trading key was unknown, or the rate limit
 * was used up.
 */
const transientCodes = ['expired', 'setup_incomplete', 'rate_limited']
/** After this many refused sales the trigger is not armed again. Each attempt is a task, so their number is bounded. */
const unsoldMax = 30
/** The most attempts while the venue takes no sale: after an upgrade it rejects market orders for minutes. */
const closedMax = 60
const closedRetryMs = 10_000

/** Whether the sale was refused: the venue lacks liquidity, or the balance was smaller than the size. */
const isRefused = ({ data }: TriggerTask, code: string): boolean =>
  code === 'slippage' || (code === 'insufficient_balance' && 'size' in data)

/** Returns the counts for the next attempt of a sale, or undefined if no attempt is left. */
function attemptsAfter(task: TriggerTask, code: string): Pick<TriggerInput, 'unsold' | 'closed'> | undefined {
  const { unsold = 0, closed = 0 } = task.input
  if (isRefused(task, code)) return unsold < unsoldMax ? { unsold: unsold + 1, closed } : undefined
  if (code === 'market_closed') return closed < closedMax ? { unsold, closed: closed + 1 } : undefined
  return transientCodes.includes(code) ? { unsold, closed } : undefined
}

/** Arms the trigger and the other exit of its pair again, after a sale that certainly did not execute. */
function rearm(task: TriggerTask, at: Date, result: TriggerResult): TriggerResult {
  if (!('end' in result) || result.end !== 'failed' || result.outcome !== 'not_executed') return result
  const { leg } = task.input
  const orderId = task.data.trigger_order_id
  const input = attemptsAfter(task, result.error.code)
  if (!input || orderId === undefined) return result
  const oids = { tp_oids: leg === 'tp' ? [orderId] : [], sl_oids: leg === 'sl' ? [orderId] : [] }
  return addToResult(
    { ...result, result: { ...result.result, ...oids } },
    {
      async writes(tx) {
        await rearmTriggerOrder(tx, { orderId, taskId: task.id, input, at })
      },
    },
  )
}

const withTriggerId = (task: TriggerTask, result: TriggerResult): TriggerResult =>
  'end' in result
    ? {
        ...result,
        result: { ...result.result, trigger_order_id: task.data.trigger_order_id ?? null },
      }
    : result

/**
 * The sale is an exit, so its task is accepted without a read of the policy; the policy is asked before the signature.
 */
export const triggerSpend =
  ({ policy, chainId }: Pick<SpotDeps, 'policy' | 'chainId'>) =>
  (userId: string, { symbol }: JsonObject): AdmittedSpend => {
    const facts = { userId, operation: 'spot_trigger', symbol: String(symbol), usdMicros: 0n, exit: true }
    const action = spotAction({ chainId }, facts)
    return { action, grant: exitGrant(chainId), check: () => policy.check(action) }
  }

/** Whether a task has bought or freed some of the token, which a read may not show yet. */
async function mayGrow(
  deps: SpotDeps,
  { userId, input: { symbol } }: TriggerTask,
  { base }: SpotMarket,
  balances: readonly SpotBalance[],
): Promise<boolean> {
  if (await boughtRecently(deps, userId, symbol)) return true
  const isHeld = balances.some(({ coin, hold }) => coin === base && compareDecimals(hold, '0') > 0)
  return isHeld && (await recentlyCancelled(deps, userId)).size > 0
}

/** Returns the steps of a triggered sale: `prepare` determines the size, and the steps of a manual sale follow. */
export function triggerSteps(
  deps: SpotDeps,
  selling: Steps<SpotOrderTaskData, SpotOrderStep>,
): Steps<TriggerTaskData, TriggerStep, TriggerStep, TriggerInput> {
  const withRearm =
    (step: (task: TriggerTask, context: StepContext) => Promise<TriggerResult>) =>
    async (task: TriggerTask, context: StepContext): Promise<TriggerResult> =>
      withTriggerId(task, rearm(task, context.now, await step(task, context)))
  return {
    prepare: withRearm((task, { now }) => prepareSale(deps, task, now)),
    begin: withRearm(selling.begin),
    transferred: withRearm(selling.transferred),
    leverage: withRearm(selling.leverage),
    order: withRearm(selling.order),
    confirm: withRearm(selling.confirm),
    siblings_cancelled: withRearm(selling.siblings_cancelled),
  }
}

async function prepareSale(deps: SpotDeps, task: TriggerTask, now: Date): Promise<TriggerResult> {
  const waitMs = task.input.closed ? later(task.createdAt, closedRetryMs).getTime() - now.getTime() : 0
  if (waitMs > 0) return { park: { afterMs: waitMs, next: 'prepare' }, state: 'waiting' }
  try {
    const found = await saleTaskData(deps, task)
    if (!('symbol' in found)) return found
    return { next: 'begin', data: found }
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    if (fault.code === 'setup_incomplete') await deps.renewKey(task.userId)
    // An empty order book is temporary, so the sale is retried in that case too.
    if (!fault.retryable && fault.code !== 'market_closed') return failed(fault.code, fault.message)
    const remainingMs = task.deadline.getTime() - now.getTime()
    if (remainingMs < failureReserveMs)
      return failed('expired', `The sale was not possible before the deadline: ${fault.message}`)
    throw fault.retryable ? fault : new Fault('unavailable', fault.message)
  }
}

async function saleTaskData(
  deps: SpotDeps,
  task: TriggerTask,
): Promise<SpotOrderTaskData | FailedResult<Record<never, never>>> {
  const { venue, clock } = deps
  const { symbol, leg } = task.input
  const market = await requireKnownSpotMarket(venue, symbol)
  const [account, agent] = await Promise.all([
    deps.evmAddressOf(task.userId),
    requireAgent(deps, task.userId),
  ])
  const cloid = deriveCloid(task.executionId, 'entry')
  const [placed, balances, state, mids, spendings] = await Promise.all([
    outsideId(task) && venue.order(account, cloid),
    venue.spotBalances(account, [market.base]),
    venue.account(account),
    venue.mids(),
    recentSpendings(deps, task.userId),
  ])
  // If the venue has the order of this sale already, a task that a restored database has lost placed it, so today's
  // balance must not end the task.
  const sale = placed
    ? { size: placed.order.origSize, price: placed.order.price }
    : await freshSale(deps, task, { market, balances, spendings, mids })
  if ('end' in sale) return sale
  const basis = { operation: 'spot_trigger', market, account, agent: agent.address, sinceMs: state.timeMs }
  return {
    ...baseTaskData(basis, clock),
    ...sale,
    is_buy: false,
    tif: 'ioc',
    exit: true,
    usd_micros: '0',
    held_before: heldOf(balances, market),
    role: leg,
  }
}

type Seen = {
  market: SpotMarket
  balances: readonly SpotBalance[]
  spendings: Spendings
  mids: ReadonlyMap<string, string>
}

/** Returns size and price of the sale; throws while the balance may lag behind a purchase or sale. */
async function freshSale(
  deps: SpotDeps,
  task: TriggerTask,
  { market, balances, spendings, mids }: Seen,
): Promise<{ size: string; price: string } | FailedResult<Record<never, never>>> {
  const { pricing, clock, limits } = deps
  const { symbol, size: wanted } = task.input
  const free = freeOf(balances, market.base)
  const size = pricing.roundSize(wanted === null ? free : lesser(wanted, free), market)
  const isNothing = compareDecimals(size, '0') === 0
  const isWithin = (ms: number) => clock.now() < later(task.createdAt, ms)
  const left = toFixedPoint(free) - spendings.onSpot(balances, market.base).amount
  // If another task may have spent the balance, the sale waits for the usual lag and is then sent anyway: the venue
  // rejects a size that is gone.
  const mayBeSpent = toFixedPoint(size) > left && isWithin(usualLagMs)
  // A read after the lag shows all that happened before the price was reached.
  const mayLag = async () =>
    isWithin(readLagMs) &&
    (isNothing || (isShort(free, wanted) && (await mayGrow(deps, task, market, balances))))
  if (mayBeSpent || (await mayLag()))
    throw new Fault('unavailable', `The balance of ${symbol} may be out of date; the sale is retried`)
  if (isNothing)
    return failed(
      'insufficient_balance',
      `The trigger fired, but the free balance of ${symbol} is too small to sell`,
    )
  const mid = midOf(mids, market)
  // The lowest price is 10 % below the mid price, or the price that lifts the order to the venue's minimum.
  const bound = pricing.boundPrice(mid, { percent: exitSlippagePercent, isBuy: false, grid: market })
  const minPrice = pricing.minPrice(limits.minOrderUsd, size, market)
  const price = compareDecimals(minPrice, bound) > 0 ? minPrice : bound
  if (compareDecimals(price, mid) > 0)
    return failed(
      'venue_rejected',
      `The venue requires an order value of at least ${limits.minOrderUsd} ${quoteToken}; ${size} ${symbol} is worth less`,
    )
  return { size, price }
}
