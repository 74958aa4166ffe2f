import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import type { VenueOrder } from '#kernel/venue.ts'
import { gridOf, type OrderTaskData, type WantedExit } from './order-task.ts'
import { cloidOf } from './signed-action.ts'

/** A market exit takes whatever it gets within this distance of its trigger. */
export const exitSlippagePercent = '10'

/** The rounding of prices, lent by the venue's adapter. */
export type Pricing = {
  boundPrice(
    price: string,
    percent: string,
    isBuy: boolean,
    grid: { sizeDecimals: number; priceDecimals: number },
  ): string
}

type ExitRequest = { leg: ExitLeg; wanted: WantedExit; size: string; name: string }

/** An order that only brings money home, on the other side of the entry. */
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
      ? boundPrice(wanted.price, exitSlippagePercent, isBuy, gridOf(taskData))
      : wanted.price,
    when: { triggerPrice: wanted.price, leg, isMarket: wanted.isMarket },
  }
}
