import type { VenueOrder } from '#kernel/venue.ts'
import { cloidOf } from './act.ts'
import type { ExitLeg } from './bracket.ts'
import { gridOf, type Memory, type WantedExit } from './memory.ts'

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

type Wish = { leg: ExitLeg; wanted: WantedExit; size: string; name: string }

/** An order that only brings money home, on the other side of the entry. */
export function exitOrder(
  taskId: string,
  memory: Memory,
  { leg, wanted, size, name }: Wish,
  { boundPrice }: Pricing,
): VenueOrder {
  const isBuy = !memory.is_buy
  return {
    asset: memory.asset,
    isBuy,
    size,
    reduceOnly: true,
    cloid: cloidOf(taskId, name),
    price: wanted.isMarket
      ? boundPrice(wanted.price, exitSlippagePercent, isBuy, gridOf(memory))
      : wanted.price,
    when: { triggerPrice: wanted.price, leg, isMarket: wanted.isMarket },
  }
}
