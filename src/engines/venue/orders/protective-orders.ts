import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import type { VenueOrder } from '#kernel/venue.ts'
import { gridOf, type OrderTaskData, type WantedExit } from './order-task.ts'
import { cloidOf } from './signed-action.ts'

/** Maximum slippage of a market exit from its trigger price. */
export const exitSlippagePercent = '10'

/** Price rounding, injected from the venue's adapter. */
export type Pricing = {
  boundPrice(
    price: string,
    bound: {
      percent: string
      isBuy: boolean
      grid: { sizeDecimals: number; priceDecimals: number }
    },
  ): string
}

type ExitRequest = { leg: ExitLeg; wanted: WantedExit; size: string; name: string }

/** A reduce-only order on the opposite side of the entry. */
export function exitOrder(
  taskId: string,
  taskData: OrderTaskData,
  { leg, wanted, size, name }: ExitRequest,
  { boundPrice }: Pricing,
): VenueOrder {
  const isBuy = !taskData.is_buy
  return {
    asset: taskData.asset,
    isBuy,
    size,
    reduceOnly: true,
    cloid: cloidOf(taskId, name),
    price: wanted.isMarket
      ? boundPrice(wanted.price, { percent: exitSlippagePercent, isBuy, grid: gridOf(taskData) })
      : wanted.price,
    when: { triggerPrice: wanted.price, leg, isMarket: wanted.isMarket },
  }
}
