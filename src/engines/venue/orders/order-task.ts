import type { Entry, Exit, ExitLeg } from '#engines/venue/records/bracket.ts'
import { assetKey, type MarketKind } from '#engines/venue/records/markets.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Grid } from '#upstreams/hyperliquid/rounding.ts'
import type { HeldBefore } from './order-lookup.ts'
import type { PositionAfter } from './position-after.ts'
import type { ActionPlan, ActionTaskData } from './signed-action.ts'

/** What an order is in user-visible results and events. */
export type OrderRole = 'entry' | 'close' | ExitLeg
export type WantedExit = { price: string; isMarket: boolean }
/** `replied` means that the entry comes from the reply to the order itself, so the stream is as recent. */
export type ObservedEntry = { entry: Entry; exits: Exit[]; replied: boolean; landedAtMs: number | null }
/** Exits of which at least one landed. The task stores them until every record of them is available. */
export type PlacedExits = { exits: Exit[]; landedAtMs: number }
/** `at_ms` is the venue's time; it is null if only age clears the spending. */
export type Spending = {
  balance_key: string
  amount: string
  noted_ms: number
  at_ms: number | null
  /** A read with this total is newer than the spending. */
  shown_by: { balance_key: string; total: string } | null
}
export type SpendingTaskData = { spendings?: Spending[] }
export type TransferTaskData = ActionTaskData &
  SpendingTaskData & {
    account: string
    ahead_ms: number
    since_ms: number
    /** The USDC to transfer from the other side: the upper limit until it is signed, and then the exact amount. */
    transfer_usd: string | null
    /** How much less may be transferred, which makes the amount unique. */
    transfer_jitter_micros?: string
    /** The USDC of the spot side just before the transfer is signed. */
    spot_before?: string
  }

export type OrderTaskData = TransferTaskData & {
  operation: string
  market: MarketKind
  symbol: string
  asset: number
  size_decimals: number
  price_decimals: number
  agent: string
  is_buy: boolean
  size: string
  price: string
  tif: 'gtc' | 'ioc' | 'alo'
  reduce_only: boolean
  /** The action reduces risk, and is allowed under a kill switch and above spent caps. */
  exit: boolean
  usd_micros: string
  /** Set for an order that opens or enlarges a position. */
  margin_micros?: string
  /** Null if the account already has the wanted leverage. */
  leverage: { is_cross: boolean; value: number } | null
  /** Set if an exit is smaller than its entry, because a spot purchase pays its fee in the bought token. */
  exit_size?: string
  tp: WantedExit | null
  sl: WantedExit | null
  held_before?: HeldBefore
  /** `entry` by default. It is an exit leg if a trigger held by the gateway fired and became this order. */
  role?: OrderRole
  /** The requested size of a close that exceeds the position. */
  asked_size?: string
  /** The entry as it was last seen, until every record of it is available. */
  observed_entry?: ObservedEntry
  /** The position after the fills, for later admissions. */
  position_after?: PositionAfter
  /** Shown to the user. */
  fills?: JsonObject[]
  note?: string
}

export const gridOf = ({ size_decimals, price_decimals }: OrderTaskData): Grid => ({
  sizeDecimals: size_decimals,
  priceDecimals: price_decimals,
})

export const wantedExits = ({ tp, sl }: OrderTaskData): { leg: ExitLeg; wanted: WantedExit }[] => [
  ...(tp ? [{ leg: 'tp' as const, wanted: tp }] : []),
  ...(sl ? [{ leg: 'sl' as const, wanted: sl }] : []),
]

export const roleOf = ({ role }: OrderTaskData): OrderRole => role ?? 'entry'

/** Whether the order is the first action of its task. */
export const startsWithOrder = ({ transfer_usd, leverage }: OrderTaskData): boolean =>
  transfer_usd === null && leverage === null

const orderTtlMs = 20_000

/** Returns what an action does, as the policy evaluates it: an order and what belongs to it. */
export const factsOf = (
  taskData: OrderTaskData,
  change: Partial<ActionPlan['facts']> = {},
): ActionPlan['facts'] => ({
  operation: taskData.operation,
  tokens: [assetKey(taskData.market, taskData.symbol)],
  recipients: [],
  usdMicros: BigInt(taskData.usd_micros),
  exit: taskData.exit,
  ...change,
})
/** Returns the same for an action that only reduces risk. */
export const exitFacts = (operation: string, tokens: string[]): ActionPlan['facts'] => ({
  operation,
  tokens,
  recipients: [],
  usdMicros: 0n,
  exit: true,
})
export const planOf = (
  taskData: Pick<OrderTaskData, 'account' | 'agent' | 'ahead_ms'>,
): Pick<ActionPlan, 'account' | 'agent' | 'skewMs' | 'ttlMs'> => ({
  account: taskData.account,
  agent: taskData.agent,
  skewMs: taskData.ahead_ms,
  ttlMs: orderTtlMs,
})
