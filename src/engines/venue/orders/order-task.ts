import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import type { MarketKind } from '#engines/venue/records/markets.ts'
import type { JsonObject, TaskView } from '#kernel/task.ts'
import type { VenueOrder } from '#kernel/venue.ts'
import type { Grid } from '#upstreams/hyperliquid/rounding.ts'
import type { HeldBefore } from './order-lookup.ts'
import { cloidOf } from './signed-action.ts'

/** Task data of an order, written at admission. */

export type WantedExit = { price: string; isMarket: boolean }
export type OrderTaskData = {
  operation: string
  market: MarketKind
  symbol: string
  asset: number
  size_decimals: number
  price_decimals: number
  account: string
  agent: string
  /** The lead of the venue's clock over ours, and the venue's time when the task began. */
  ahead_ms: number
  since_ms: number
  is_buy: boolean
  size: string
  price: string
  tif: 'gtc' | 'ioc' | 'alo'
  reduce_only: boolean
  /** Reduces risk: allowed under a kill switch and above spent caps. */
  exit: boolean
  usd_micros: string
  /** Set for an order that opens or enlarges a position. */
  margin_micros?: string
  /** USDC to transfer from the other side first. */
  gather: string | null
  gather_play?: string
  /** Null where the account has the wanted leverage already. */
  leverage: { is_cross: boolean; value: number } | null
  /** Set where an exit is smaller than its entry: a spot purchase pays its fee in the bought token. */
  exit_size?: string
  tp: WantedExit | null
  sl: WantedExit | null
  /** The balance of the traded token when the task began. */
  held_before?: HeldBefore
  /** The leg of a trigger held by the gateway that fired and became this order. */
  fired?: ExitLeg
  /** The requested size of a close, where it exceeds the position. */
  asked_size?: string
}

export const taskDataOf = (task: TaskView): OrderTaskData => task.data as unknown as OrderTaskData
export const toTaskData = (taskData: OrderTaskData): JsonObject => taskData as unknown as JsonObject

export const gridOf = ({ size_decimals, price_decimals }: OrderTaskData): Grid => ({
  sizeDecimals: size_decimals,
  priceDecimals: price_decimals,
})

export const wantedExits = ({ tp, sl }: OrderTaskData): { leg: ExitLeg; wanted: WantedExit }[] => [
  ...(tp ? [{ leg: 'tp' as const, wanted: tp }] : []),
  ...(sl ? [{ leg: 'sl' as const, wanted: sl }] : []),
]

/** The role of the order in user-visible results and events. */
export const legOfOrder = ({ operation, fired }: OrderTaskData): 'entry' | 'close' | ExitLeg =>
  fired ?? (operation === 'perp_close' ? 'close' : 'entry')

/** True where the order is the first action of its task. */
export const startsWithOrder = ({ gather, leverage }: OrderTaskData): boolean =>
  gather === null && leverage === null

export const entryOrder = (taskId: string, taskData: OrderTaskData): VenueOrder => ({
  asset: taskData.asset,
  isBuy: taskData.is_buy,
  price: taskData.price,
  size: taskData.size,
  reduceOnly: taskData.reduce_only,
  when: { tif: taskData.tif },
  cloid: cloidOf(taskId, 'entry'),
})
