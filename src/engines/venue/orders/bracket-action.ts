import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import type { VenueOrder } from '#kernel/money/venue-actions.ts'
import { deriveCloid } from './action-outcome.ts'
import type { Pricing } from './order-checks.ts'
import { gridOf, type OrderTaskData, roleOf, type WantedExit, wantedExits } from './order-task.ts'
import type { ActionPlan } from './signed-action.ts'

/** The maximum slippage of a market exit from its trigger price. */
export const exitSlippagePercent = '10'

type ExitRequest = { leg: ExitLeg; wanted: WantedExit; size: string; name: string }

export function exitOrder(
  executionId: string,
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
    cloid: deriveCloid(executionId, name),
    price: wanted.isMarket
      ? boundPrice(wanted.price, { percent: exitSlippagePercent, isBuy, grid: gridOf(taskData) })
      : wanted.price,
    when: { triggerPrice: wanted.price, leg, isMarket: wanted.isMarket },
  }
}

const entryOrder = (executionId: string, taskData: OrderTaskData): VenueOrder => ({
  asset: taskData.asset,
  isBuy: taskData.is_buy,
  price: taskData.price,
  size: taskData.size,
  reduceOnly: taskData.reduce_only,
  when: { tif: taskData.tif },
  cloid: deriveCloid(executionId, 'entry'),
})

export function bracketAction(
  executionId: string,
  taskData: OrderTaskData,
  pricing: Pricing,
): Pick<ActionPlan, 'action' | 'notes'> {
  const exits = wantedExits(taskData)
  const size = taskData.exit_size ?? taskData.size
  const orders = [
    entryOrder(executionId, taskData),
    ...exits.map((exit) => exitOrder(executionId, taskData, { ...exit, size, name: exit.leg }, pricing)),
  ]
  const legs = [roleOf(taskData), ...exits.map(({ leg }) => leg)]
  return {
    action: { type: 'order', orders, grouping: exits.length > 0 ? 'bracket' : 'none' },
    notes: orders.map(({ cloid }, at) => ({ cloid, leg: legs[at]!, symbol: taskData.symbol })),
  }
}
