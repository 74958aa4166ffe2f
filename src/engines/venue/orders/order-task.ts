import type { Entry, Exit, ExitLeg } from '#engines/venue/records/bracket.ts'
import { assetKey, type MarketKind } from '#engines/venue/records/markets.ts'
import type { OwnPart } from '#engines/venue/records/reducible-part.ts'
import type { Clock } from '#kernel/clock.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import type { Grid } from '#upstreams/hyperliquid/rounding.ts'
import type { ActionTaskData } from './action-outcome.ts'
import type { HeldBefore } from './consistent-reads.ts'
import type { PositionAfter } from './position-after-fills.ts'
import type { ActionPlan } from './signed-action.ts'

/** The role of an order in results and events that the user sees. */
export type OrderRole = 'entry' | 'close' | ExitLeg
export type WantedExit = { price: string; isMarket: boolean }
/**
 * An entry as it was last seen. `replied` means that it was seen in the reply to the order itself, so that the stream
 * of orders is as recent.
 */
export type ObservedEntry = { entry: Entry; exits: Exit[]; replied: boolean; landedAtMs: number | null }
/** Exits of which at least one landed, as the task stores them until every record of them is available. */
export type PlacedExits = { exits: Exit[]; landedAtMs: number }
/** A spend at the venue; `at_ms` is the venue's time, or null if only age removes the spend from the list. */
export type Spending = {
  balance_key: string
  amount: string
  noted_ms: number
  at_ms: number | null
  /** The total of a balance right after the spend. A read that shows exactly this total includes the spend. */
  shown_by: { balance_key: string; total: string } | null
}
export type SpendingTaskData = { spendings?: Spending[] }
export type TransferTaskData = ActionTaskData &
  SpendingTaskData & {
    account: string
    ahead_ms: number
    since_ms: number
    /** The USDC to transfer from the other side: an upper limit until the signature, and then the exact amount. */
    transfer_usd: string | null
    /** By how much the transfer may fall below the limit, so that its amount is unique. */
    transfer_jitter_micros?: string
    /** The USDC on the spot side just before the transfer is signed. */
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
  /** Whether the order reduces risk, so that it is allowed under a kill switch and above spent caps. */
  exit: boolean
  usd_micros: string
  /** The margin that the order takes; set if it opens or enlarges a position. */
  margin_micros?: string
  /** The leverage to set before the order; null if the account has this leverage already. */
  leverage: { is_cross: boolean; value: number } | null
  /** The size of the exits if smaller than that of the entry: a spot purchase pays its fee in the bought token. */
  exit_size?: string
  tp: WantedExit | null
  sl: WantedExit | null
  held_before?: HeldBefore
  /** The role of the order, by default `entry`; an exit leg if a trigger of the gateway became the order. */
  role?: OrderRole
  /**
   * The part of the position that the schedule of a run has opened. It limits the run's reducing order when that order
   * is signed.
   */
  own_part?: OwnPart
  /** True for an order of a run of a schedule, whose exits cover what the run has opened and never the whole position. */
  is_of_run?: true
  /** The requested size of a close, if it exceeds the position. */
  asked_size?: string
  /** The entry as it was last seen, until every record of it is available. */
  observed_entry?: ObservedEntry
  /** The position after the order's fills, for later admissions. */
  position_after?: PositionAfter
  /** The fills of the order, as the user sees them. */
  fills?: JsonObject[]
  note?: string
}

/** Returns how far the venue's clock is ahead of ours, never negative. */
export const clockSkewMs = (clock: Clock, venueMs: number): number =>
  Math.max(0, venueMs - clock.now().getTime())

type OrderBasis = {
  operation: string
  kind: MarketKind
  market: Grid & { symbol: string; asset: number }
  account: string
  agent: string
  /** The venue's time of the account read on which the order is based. */
  sinceMs: number
}

/** Returns the task data that an order has before its side, size and price are known. */
export const orderBasis = (
  { operation, kind, market, account, agent, sinceMs }: OrderBasis,
  clock: Clock,
): Omit<OrderTaskData, 'is_buy' | 'size' | 'price' | 'tif' | 'reduce_only' | 'exit' | 'usd_micros'> => ({
  operation,
  market: kind,
  symbol: market.symbol,
  asset: market.asset,
  account,
  agent,
  size_decimals: market.sizeDecimals,
  price_decimals: market.priceDecimals,
  ahead_ms: clockSkewMs(clock, sinceMs),
  since_ms: sinceMs,
  transfer_usd: null,
  leverage: null,
  tp: null,
  sl: null,
})

export const gridOf = ({ size_decimals, price_decimals }: OrderTaskData): Grid => ({
  sizeDecimals: size_decimals,
  priceDecimals: price_decimals,
})

export const wantedExits = ({ tp, sl }: OrderTaskData): { leg: ExitLeg; wanted: WantedExit }[] => [
  ...(tp ? [{ leg: 'tp' as const, wanted: tp }] : []),
  ...(sl ? [{ leg: 'sl' as const, wanted: sl }] : []),
]

export const roleOf = ({ role }: OrderTaskData): OrderRole => role ?? 'entry'

/**
 * Whether the order is the first action of its task, so that it can be signed at the acceptance: nothing is transferred
 * and no leverage is set first, and no schedule's own share of the position (`own_part`) limits the size.
 */
export const startsWithOrder = ({ transfer_usd, leverage, own_part }: OrderTaskData): boolean =>
  transfer_usd === null && leverage === null && own_part === undefined

const orderTtlMs = 20_000

/** Returns the facts of an order for the policy; `change` adapts them to an action that belongs to the order. */
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
/** Returns the facts, for the policy, of an action that only reduces risk. */
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
