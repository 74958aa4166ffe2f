import type { ExitLeg } from '#engines/venue/records/bracket.ts'
import type { MarketKind } from '#engines/venue/records/markets.ts'
import type { JsonObject, TaskView } from '#kernel/task.ts'
import type { VenueOrder } from '#kernel/venue.ts'
import type { Grid } from '#upstreams/hyperliquid/rounding.ts'
import type { HeldBefore } from './order-lookup.ts'
import { cloidOf } from './signed-action.ts'

/** What a task that places an order remembers from its admission on. */

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
  /** How far the venue's clock is ahead of ours, and what it showed when the task began. */
  ahead_ms: number
  since_ms: number
  is_buy: boolean
  size: string
  price: string
  tif: 'gtc' | 'ioc' | 'alo'
  reduce_only: boolean
  /** Brings money home: open under a kill switch and against spent caps. */
  exit: boolean
  usd_micros: string
  /** Of an order that opens or enlarges a position. */
  margin_micros?: string
  /** Dollars that have to come over from the other side first. */
  gather: string | null
  gather_play?: string
  /** Null where the account has the wanted leverage already. */
  leverage: { is_cross: boolean; value: number } | null
  /** Where an exit is smaller than its entry: spot pays its fee in what was bought. */
  exit_size?: string
  tp: WantedExit | null
  sl: WantedExit | null
  /** What a spot order buys or sells, as it was held when the task began. */
  held_before?: HeldBefore
  /** The exit that this order is, where it was kept by the gateway and has fired. */
  fired?: ExitLeg
  /** The size that a close asked for, where it is more than the position. */
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

/** What the order of a task is called where its owner is told of it. */
export const legOfOrder = ({ operation, fired }: OrderTaskData): 'entry' | 'close' | ExitLeg =>
  fired ?? (operation === 'perp_close' ? 'close' : 'entry')

/** The first thing that is said to the venue is the order itself. */
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
