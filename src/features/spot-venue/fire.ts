import { exitSlippagePercent } from '#features/venue/exits.ts'
import { failed } from '#features/venue/place.ts'
import { demandAgent } from '#features/venue/trade.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import type { Step, StepResult, TaskView } from '#kernel/task.ts'
import { freeOf, lesser, midOf, spotNamed } from './market.ts'
import type { SpotNeeds } from './needs.ts'
import { memoryFor, type SpotMemory, spotAction, spotData } from './trade.ts'
import type { TriggerInput } from './triggers.ts'

/** A trigger that has fired sells what it was to sell, as far as it is still there. */

export function firing(needs: SpotNeeds): Record<'prepare', Step> {
  const { venue, pricing, policy, clock } = needs
  const memoryOfSale = async (task: TaskView): Promise<SpotMemory | StepResult> => {
    const { symbol, size: wanted } = task.input as unknown as TriggerInput
    const market = await spotNamed(venue, symbol)
    const [account, agent] = await Promise.all([
      needs.evmAddressOf(task.userId),
      demandAgent(needs, task.userId),
    ])
    const [balances, state, mids] = await Promise.all([
      venue.spotBalances(account),
      venue.account(account),
      venue.mids(),
    ])
    const free = freeOf(balances, market.base)
    const size = pricing.roundSize(wanted === null ? free : lesser(wanted, free), market)
    if (compareDecimals(size, '0') === 0)
      return failed('insufficient_balance', `The price was reached, but no ${symbol} is free to be sold`)
    const price = pricing.boundPrice(midOf(mids, market), exitSlippagePercent, false, market)
    const placing = {
      operation: 'spot_trigger',
      market,
      account,
      agent: agent.address,
      sinceMs: state.timeMs,
    }
    return {
      ...memoryFor(placing, clock),
      ...{ is_buy: false, size, price, tif: 'ioc', exit: true, usd_micros: '0' },
    }
  }

  return {
    async prepare(task) {
      try {
        const found = await memoryOfSale(task)
        if (!('symbol' in found)) return found
        const { symbol } = found
        const action = spotAction(needs, {
          ...{ userId: task.userId, operation: 'spot_trigger', symbol, usdMicros: 0n, exit: true },
        })
        return {
          ...{ next: 'begin', data: spotData(found) },
          also: (tx) => policy.reserve(tx, { ...action, taskId: task.id }),
        }
      } catch (fault) {
        if (fault instanceof Fault && !fault.retryable) return failed(fault.code, fault.message)
        throw fault
      }
    },
  }
}
