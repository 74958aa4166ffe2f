import { type Entry, type Exit, type FillSum, sumFills } from '#engines/venue/records/bracket.ts'
import { venueName } from '#engines/venue/records/order-store.ts'
import { realizedPnlOf } from '#engines/venue/records/realized-pnl.ts'
import type { JsonObject } from '#kernel/task/task.ts'
import type { Fill } from '#upstreams/hyperliquid/hyperliquid.ts'
import { deriveCloid } from './action-outcome.ts'
import { type OrderTaskData, roleOf } from './order-task.ts'

const shownStatus = { filled: 'filled', partial: 'filled', resting: 'resting', rejected: 'rejected' } as const

export type OrderOutcome = { entry: Entry; exits: Exit[]; fills: Fill[] }

export const fillViews = (fills: readonly Fill[]): JsonObject[] =>
  fills.map((fill) => ({
    venue: venueName,
    order_id: String(fill.orderId),
    fill_id: String(fill.tradeId),
    side: fill.isBuy ? 'buy' : 'sell',
    price: fill.price,
    size: fill.size,
    fee: fill.feeUsd,
    fee_token: fill.feeToken,
    confirmed: true,
    ...realizedPnlOf([fill]),
    at: new Date(fill.atMs).toISOString(),
  }))

/** Returns the order ids of the exits of one leg that were placed. */
export const exitOrderIds = (exits: readonly Exit[], leg: Exit['leg']): string[] =>
  exits
    .filter((exit) => exit.leg === leg && exit.state !== 'missing' && exit.orderId !== null)
    .map(({ orderId }) => String(orderId))

export function orderResult(
  executionId: string,
  taskData: OrderTaskData,
  { entry, exits, fills }: OrderOutcome,
): JsonObject {
  const own = fills.filter(({ orderId }) => orderId === entry.orderId)
  const sum: FillSum = sumFills(own)
  return {
    resting: entry.status === 'resting',
    asset: taskData.symbol,
    order_id: entry.orderId === null ? null : String(entry.orderId),
    cloid: deriveCloid(executionId, 'entry'),
    order_status: shownStatus[entry.status],
    filled_size: sum.size,
    avg_price: sum.averagePrice,
    fee: sum.fee,
    fee_token: sum.feeToken,
    // A spot purchase realises no profit.
    ...((taskData.market === 'perp' || !taskData.is_buy) && realizedPnlOf(own)),
    tp_oids: exitOrderIds(exits, 'tp'),
    sl_oids: exitOrderIds(exits, 'sl'),
    [taskData.market === 'perp' ? 'moved_from_spot_usd' : 'moved_from_perp_usd']: taskData.transfer_usd,
    ...(taskData.asked_size !== undefined && {
      asked_size: taskData.asked_size,
      position_size: taskData.size,
    }),
    legs: [
      legView(roleOf(taskData), entry.orderId, entry.status, entry.error?.message ?? null),
      ...exits.map(({ leg, orderId, state, error }) => legView(leg, orderId, state, error)),
    ],
  }
}

export function resultNote(
  taskData: OrderTaskData,
  { entry }: Pick<OrderOutcome, 'entry'>,
): Pick<OrderTaskData, 'note'> {
  const notes = [
    ...(entry.status === 'resting' ? ['the order rests in the book and is not filled yet'] : []),
    ...(taskData.asked_size === undefined
      ? []
      : [
          `the requested size ${taskData.asked_size} ${taskData.symbol} exceeds the open position of ${taskData.size}`,
        ]),
  ]
  return notes.length > 0 ? { note: notes.join('; ') } : {}
}

const legView = (role: string, orderId: number | null, status: string, error: string | null): JsonObject => ({
  role,
  order_id: orderId === null ? null : String(orderId),
  status,
  error,
})
