import { exitSlippagePercent } from '#features/venue/exits.ts'
import { failed } from '#features/venue/place.ts'
import { boughtRecently } from '#features/venue/read-after-write.ts'
import { demandAgent } from '#features/venue/trade.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import { toUnits } from '#kernel/money.ts'
import type { RetryRule, Step, StepResult, TaskView } from '#kernel/task.ts'
import { freeOf, lesser, midOf, quoteToken, spotNamed } from './market.ts'
import type { SpotNeeds } from './needs.ts'
import { feeReserve, heldOf, memoryFor, type SpotMemory, spotAction, spotData } from './trade.ts'
import { keepTriggers, type TriggerInput, triggerId } from './triggers.ts'

/** A trigger that has fired sells what it was to sell, as far as it is still there. */

/** As often as fits before the deadline: what a stop meets is most often a venue with too much to do. */
export const firingRetry: RetryRule = { attemptsMax: 1_000, firstMs: 200, mostMs: 5_000 }
/** So much is left for a task that gives up to say so itself. */
const farewellMs = 60_000

const scale = 18
/** Less than was to be sold, apart from the fee that the purchase paid in the token itself. */
const isShort = (free: string, wanted: string | null): boolean =>
  wanted === null
    ? compareDecimals(free, '0') === 0
    : toUnits(free, scale) * feeReserve.of < toUnits(wanted, scale) * feeReserve.taken

const inputOf = (task: TaskView) => task.input as unknown as TriggerInput

/** The venue took nothing: it was not reached, does not know the key, or limits the requests of the account. */
const passing = ['expired', 'setup_incomplete', 'rate_limited']
/** How often a sale may find no buyer. Each attempt is a task, so a market without buyers must not fill the table. */
const unsoldMax = 30

/** What certainly never came to the venue is still wanted: the exit is there again, and fires while the price stays. */
function armedAgain(task: TaskView, now: Date, result: StepResult): StepResult {
  if (!('end' in result) || result.end !== 'failed' || result.outcome !== 'not_executed') return result
  const { symbol, leg, size, trigger_price: price, unsold: unsoldBefore = 0 } = inputOf(task)
  const unsold = result.error.code === 'slippage' ? unsoldBefore + 1 : unsoldBefore
  if (!passing.includes(result.error.code) && (unsold === unsoldBefore || unsold > unsoldMax)) return result
  const ids = [triggerId(task.id, leg)]
  return {
    ...result,
    result: { ...result.result, tp_oids: leg === 'tp' ? ids : [], sl_oids: leg === 'sl' ? ids : [] },
    also: async (tx) => {
      await result.also?.(tx)
      const exits = [{ leg, price }]
      await keepTriggers(tx, {
        userId: task.userId,
        taskId: task.id,
        symbol,
        size,
        exits,
        parent: null,
        at: now,
        unsold,
      })
    },
  }
}

const told = (task: TaskView, result: StepResult): StepResult =>
  'end' in result
    ? ({
        ...result,
        result: { ...result.result, trigger_order_id: task.data.trigger_order_id ?? null },
      } as StepResult)
    : result

/** The steps of a sale by hand, behind the one that finds out what is to be sold. */
export function firing(needs: SpotNeeds, selling: Record<string, Step>): Record<string, Step> {
  const { venue, pricing, policy, clock, limits } = needs

  /** A tenth below the middle, unless the venue takes so little only at a better price. */
  const priceOf = (size: string, mid: string, market: Parameters<typeof pricing.leastPrice>[2]) => {
    const bound = pricing.boundPrice(mid, exitSlippagePercent, false, market)
    const least = pricing.leastPrice(limits.minOrderUsd, size, market)
    return compareDecimals(least, bound) > 0 ? least : bound
  }

  const memoryOfSale = async (task: TaskView): Promise<SpotMemory | StepResult> => {
    const { symbol, leg, size: wanted } = inputOf(task)
    const market = await spotNamed(venue, symbol)
    const [account, agent] = await Promise.all([
      needs.evmAddressOf(task.userId),
      demandAgent(needs, task.userId),
    ])
    const [balances, state, mids] = await Promise.all([
      venue.spotBalances(account, [market.base]),
      venue.account(account),
      venue.mids(),
    ])
    const free = freeOf(balances, market.base)
    const size = pricing.roundSize(wanted === null ? free : lesser(wanted, free), market)
    if (isShort(free, wanted) && (await boughtRecently(needs, task.userId, symbol)))
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
    const placing = {
      operation: 'spot_trigger',
      market,
      account,
      agent: agent.address,
      sinceMs: state.timeMs,
    }
    return {
      ...memoryFor(placing, clock),
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
      const found = await memoryOfSale(task)
      if (!('symbol' in found)) return found
      const { symbol } = found
      const action = spotAction(needs, {
        userId: task.userId,
        operation: 'spot_trigger',
        symbol,
        usdMicros: 0n,
        exit: true,
      })
      return {
        next: 'begin',
        data: spotData(found),
        also: (tx) => policy.reserve(tx, { ...action, taskId: task.id }),
      }
    } catch (fault) {
      if (!(fault instanceof Fault)) throw fault
      // The next attempt finds the new key.
      if (fault.code === 'setup_incomplete') await needs.renewKey(task.userId)
      // An empty book fills again.
      if (!fault.retryable && fault.code !== 'market_closed') return failed(fault.code, fault.message)
      const leftMs = task.deadline.getTime() - now.getTime()
      if (leftMs < farewellMs) return failed('expired', `The sale found no way: ${fault.message}`)
      throw fault.retryable ? fault : new Fault('unavailable', fault.message)
    }
  }

  const closing =
    (step: Step): Step =>
    async (task, context) =>
      told(task, armedAgain(task, context.now, await step(task, context)))
  return Object.fromEntries(
    Object.entries({ prepare, ...selling }).map(([name, step]) => [name, closing(step)]),
  )
}
