import { failed } from '#engines/venue/orders/place-order.ts'
import { exitSlippagePercent } from '#engines/venue/orders/protective-orders.ts'
import { boughtRecently } from '#engines/venue/orders/read-after-write.ts'
import { requireAgent } from '#engines/venue/orders/trade-admission.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { toUnits } from '#kernel/money.ts'
import type { RetryRule, Step, StepResult, TaskView } from '#kernel/task.ts'
import type { SpotDeps } from './deps.ts'
import { freeOf, lesser, midOf, quoteToken, requireSpotMarket } from './market.ts'
import {
  baseTaskData,
  feeReserve,
  heldOf,
  type SpotOrderTaskData,
  spotAction,
  toSpotTaskData,
} from './trade.ts'
import { insertTriggers, type TriggerInput, triggerId } from './triggers.ts'

/** A trigger that has fired sells what it was to sell, as far as it is still there. */

/** As often as fits before the deadline: what a stop meets is most often a venue with too much to do. */
export const triggerRetry: RetryRule = { attemptsMax: 1_000, firstMs: 200, maxMs: 5_000 }
/** So much is left for a task that gives up to say so itself. */
const failureReserveMs = 60_000

const scale = 18
/** Less than was to be sold, apart from the fee that the purchase paid in the token itself. */
const isShort = (free: string, wanted: string | null): boolean =>
  wanted === null
    ? compareDecimals(free, '0') === 0
    : toUnits(free, scale) * feeReserve.denominator < toUnits(wanted, scale) * feeReserve.numerator

const inputOf = (task: TaskView) => task.input as unknown as TriggerInput

/** The venue took nothing: it was not reached, does not know the key, or limits the requests of the account. */
const transientCodes = ['expired', 'setup_incomplete', 'rate_limited']
/** How often a sale may find no buyer. Each attempt is a task, so a market without buyers must not fill the table. */
const unsoldMax = 30

/** What certainly never came to the venue is still wanted: the exit is there again, and fires while the price stays. */
function rearm(task: TaskView, now: Date, result: StepResult): StepResult {
  if (!('end' in result) || result.end !== 'failed' || result.outcome !== 'not_executed') return result
  const { symbol, leg, size, trigger_price: price, unsold: unsoldBefore = 0 } = inputOf(task)
  const unsold = result.error.code === 'slippage' ? unsoldBefore + 1 : unsoldBefore
  if (!transientCodes.includes(result.error.code) && (unsold === unsoldBefore || unsold > unsoldMax))
    return result
  const ids = [triggerId(task.id, leg)]
  return {
    ...result,
    result: { ...result.result, tp_oids: leg === 'tp' ? ids : [], sl_oids: leg === 'sl' ? ids : [] },
    writes: async (tx) => {
      await result.writes?.(tx)
      const exits = [{ leg, price }]
      await insertTriggers(tx, {
        userId: task.userId,
        taskId: task.id,
        symbol,
        size,
        exits,
        entry: null,
        at: now,
        unsold,
      })
    },
  }
}

const withTriggerId = (task: TaskView, result: StepResult): StepResult =>
  'end' in result
    ? ({
        ...result,
        result: { ...result.result, trigger_order_id: task.data.trigger_order_id ?? null },
      } as StepResult)
    : result

/** The steps of a sale by hand, behind the one that finds out what is to be sold. */
export function triggerSteps(deps: SpotDeps, selling: Record<string, Step>): Record<string, Step> {
  const { venue, pricing, policy, clock, limits } = deps

  /** A tenth below the middle, unless the venue takes so little only at a better price. */
  const priceOf = (size: string, mid: string, market: Parameters<typeof pricing.minPrice>[2]) => {
    const bound = pricing.boundPrice(mid, exitSlippagePercent, false, market)
    const minPrice = pricing.minPrice(limits.minOrderUsd, size, market)
    return compareDecimals(minPrice, bound) > 0 ? minPrice : bound
  }

  const saleTaskData = async (task: TaskView): Promise<SpotOrderTaskData | StepResult> => {
    const { symbol, leg, size: wanted } = inputOf(task)
    const market = await requireSpotMarket(venue, symbol)
    const [account, agent] = await Promise.all([
      deps.evmAddressOf(task.userId),
      requireAgent(deps, task.userId),
    ])
    const [balances, state, mids] = await Promise.all([
      venue.spotBalances(account, [market.base]),
      venue.account(account),
      venue.mids(),
    ])
    const free = freeOf(balances, market.base)
    const size = pricing.roundSize(wanted === null ? free : lesser(wanted, free), market)
    if (isShort(free, wanted) && (await boughtRecently(deps, task.userId, symbol)))
      throw new Fault('unavailable', `The balance of ${symbol} may be older than its purchase`)
    if (compareDecimals(size, '0') === 0)
      return failed('insufficient_balance', `The price was reached, but no ${symbol} is free to be sold`)
    const mid = midOf(mids, market)
    const price = priceOf(size, mid, market)
    if (compareDecimals(price, mid) > 0)
      return failed(
        'venue_rejected',
        `The venue takes no order of less than ${limits.minOrderUsd} ${quoteToken}, and ${size} ${symbol} is worth less`,
      )
    const orderBasis = {
      operation: 'spot_trigger',
      market,
      account,
      agent: agent.address,
      sinceMs: state.timeMs,
    }
    return {
      ...baseTaskData(orderBasis, clock),
      is_buy: false,
      size,
      price,
      tif: 'ioc',
      exit: true,
      usd_micros: '0',
      held_before: heldOf(balances, market),
      fired: leg,
    }
  }

  const prepare: Step = async (task, { now }) => {
    try {
      const found = await saleTaskData(task)
      if (!('symbol' in found)) return found
      const { symbol } = found
      const action = spotAction(deps, {
        userId: task.userId,
        operation: 'spot_trigger',
        symbol,
        usdMicros: 0n,
        exit: true,
      })
      return {
        next: 'begin',
        data: toSpotTaskData(found),
        writes: (tx) => policy.reserve(tx, { ...action, taskId: task.id }),
      }
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault
      // The next attempt finds the new key.
      if (fault.code === 'setup_incomplete') await deps.renewKey(task.userId)
      // An empty book fills again.
      if (!fault.retryable && fault.code !== 'market_closed') return failed(fault.code, fault.message)
      const remainingMs = task.deadline.getTime() - now.getTime()
      if (remainingMs < failureReserveMs) return failed('expired', `The sale found no way: ${fault.message}`)
      throw fault.retryable ? fault : new Fault('unavailable', fault.message)
    }
  }

  const withRearm =
    (step: Step): Step =>
    async (task, context) =>
      withTriggerId(task, rearm(task, context.now, await step(task, context)))
  return Object.fromEntries(
    Object.entries({ prepare, ...selling }).map(([name, step]) => [name, withRearm(step)]),
  )
}
