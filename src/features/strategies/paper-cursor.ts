import { fromUnits, mulDiv, usdDecimals } from '#kernel/money/money.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { priceDecimals } from '#market/strategies/account.ts'
import { type MatchedFill, unitsOfSize } from '#market/strategies/matching.ts'
import type { OrderEnd, PaperCursor } from '#market/strategies/paper-run.ts'
import type { MarketRules } from '#market/strategies/strategy.ts'
import type { StrategyFillRow } from '#store/tables/strategies.ts'
import type { AccountCursor, StrategyAccount } from './account-store.ts'
import type { StrategyTerms } from './mode-driver.ts'

/** The cursor of an account on paper as it is stored, and the records of what was filled. */

/** The last decision that had orders, and what came of its market orders so far. */
export type PaperOrder = {
  execution_id: string
  seq: number
  at_ms: number
  reason: string
  /** How many market orders the decision had, and how many of them were filled wholly or in part. */
  asked: number
  full: number
  part: number
  /** Why an order was not filled, as a code. */
  error: string | null
}
export type StoredPaperCursor = {
  at_ms: number
  minutes_from_ms: Record<string, number>
  funding_to_ms: number
  /** How many fills the account has had. */
  fills: number
  /** The run that last placed an entry, by asset: stops and targets belong to it. */
  runs: Record<string, string>
  order: PaperOrder | null
}

export const openCursor = (atMs: number): StoredPaperCursor => ({
  at_ms: atMs,
  minutes_from_ms: {},
  funding_to_ms: atMs,
  fills: 0,
  runs: {},
  order: null,
})

export const paperCursorOf = ({ cursor }: Pick<StrategyAccount, 'cursor'>): StoredPaperCursor =>
  cursor as StoredPaperCursor & JsonObject
export const toStoredCursor = (cursor: StoredPaperCursor): AccountCursor =>
  cursor as StoredPaperCursor & JsonObject

export const positionIn = ({ at_ms, minutes_from_ms, funding_to_ms }: StoredPaperCursor): PaperCursor => ({
  atMs: at_ms,
  minutesFromMs: minutes_from_ms,
  fundingToMs: funding_to_ms,
})
export const movedTo = (
  stored: StoredPaperCursor,
  { atMs, minutesFromMs, fundingToMs }: PaperCursor,
): StoredPaperCursor => ({
  ...stored,
  at_ms: atMs,
  minutes_from_ms: { ...minutesFromMs },
  funding_to_ms: fundingToMs,
})

/** Counts what came of market orders of the last decision. */
export function withEnds(
  order: PaperOrder,
  ends: readonly OrderEnd[],
  { config }: StrategyTerms,
): PaperOrder {
  let now = order
  for (const { order: sent, filledUnits, rejection } of ends) {
    const rules = config.decision.markets[sent.asset]
    const isFull = rules !== undefined && filledUnits >= unitsOfSize(sent.size, rules)
    const isPart = !isFull && filledUnits > 0n
    now = {
      ...now,
      full: now.full + (isFull ? 1 : 0),
      part: now.part + (isPart ? 1 : 0),
      error: isFull ? now.error : (rejection ?? 'insufficient_liquidity'),
    }
  }
  return now
}

type FillOwner = { strategy_id: string; cursor: StoredPaperCursor; terms: StrategyTerms }

/** Returns the records of fills, numbered on from the last one of the account. */
export const fillRows = (
  fills: readonly MatchedFill[],
  { strategy_id, cursor, terms }: FillOwner,
): StrategyFillRow[] =>
  fills.flatMap((fill, at) => {
    const rules = terms.config.decision.markets[fill.asset]
    if (!rules) return []
    const { order, runs } = cursor
    const isDecided = fill.reason === 'decision' && order !== null
    return [
      {
        strategy_id,
        mode: 'paper',
        fill_id: BigInt(cursor.fills + at + 1),
        execution_id: (isDecided ? order.execution_id : runs[fill.asset]) ?? null,
        asset: fill.asset,
        is_buy: fill.isBuy,
        size: fromUnits(fill.sizeUnits, rules.size_decimals),
        price: meanPrice(fill, rules),
        fee_usd: fromUnits(fill.feeMicros, usdDecimals),
        realized_pnl_usd: fill.netMicros === null ? null : fromUnits(fill.netMicros, usdDecimals),
        reason: isDecided ? order.reason : fill.reason,
        is_exit: fill.netMicros !== null,
        at: new Date(fill.atMs),
      },
    ]
  })

function meanPrice({ valueMicros, sizeUnits }: MatchedFill, { size_decimals }: MarketRules): string {
  const scale = 10n ** BigInt(size_decimals + priceDecimals - usdDecimals)
  const units = mulDiv(valueMicros * scale, 1n, sizeUnits)
  return fromUnits(units > 0n ? units : 1n, priceDecimals)
}
