import { fromUnits, mulDiv, usdDecimals } from '#kernel/money/money.ts'
import { type Account, type OpenPosition, priceDecimals, unrealizedMicros } from './account.ts'
import type { GuardState } from './guards.ts'
import type { StrategyRun } from './strategy-run.ts'

/** What a strategy has, as decimal text, at the prices that its account was last read at. */

export type PositionFigures = {
  asset: string
  side: 'long' | 'short'
  size: string
  entry_price: string
  mark_price: string | null
  unrealized_pnl_usd: string | null
  stop_price: string | null
  target_price: string | null
  opened_at: string
}
export type ResultFigures = {
  /** What is won or lost for good, after all fees and funding, also those of positions that are open. */
  realized_usd: string
  /** It is null where the price of a position is not known. */
  unrealized_usd: string | null
  fees_usd: string
  funding_usd: string
}
export type AccountFigures = {
  positions: PositionFigures[]
  result: ResultFigures
  /** What entries were worth together. */
  spentMicros: bigint
  /** The worth of everything; undefined where the price of a position is not known. */
  equityMicros: bigint | undefined
  guards: GuardState
}
/** How many decimals sizes have, by market. */
export type SizeDecimals = Readonly<Record<string, number>>
/** The markets of the venue, and what the account began with. */
export type AccountTerms = { decimals: SizeDecimals; initialMicros: bigint }

const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)
const priceText = (units: bigint): string => fromUnits(units, priceDecimals)

/** Returns undefined where the market of a position is not known, so that its size is not either. */
export function figuresOf(
  { account, guards, marks }: StrategyRun,
  { decimals, initialMicros }: AccountTerms,
): AccountFigures | undefined {
  const positions: PositionFigures[] = []
  let unrealized: bigint | undefined = 0n
  for (const [asset, position] of account.positions) {
    const size_decimals = decimals[asset]
    if (size_decimals === undefined) return undefined
    const mark = marks.get(asset)
    const won = mark === undefined ? undefined : unrealizedMicros(position, mark, { size_decimals })
    unrealized = unrealized === undefined || won === undefined ? undefined : unrealized + won
    positions.push(positionFigures(asset, position, { sizeDecimals: size_decimals, mark, won }))
  }
  return {
    positions: positions.sort((a, b) => (a.asset < b.asset ? -1 : 1)),
    result: resultOf(account, initialMicros, unrealized),
    spentMicros: account.spentMicros,
    equityMicros: unrealized === undefined ? undefined : account.cashMicros + unrealized,
    guards,
  }
}

const resultOf = (
  { cashMicros, feesMicros, fundingMicros }: Account,
  initialMicros: bigint,
  unrealized: bigint | undefined,
): ResultFigures => ({
  realized_usd: usd(cashMicros - initialMicros),
  unrealized_usd: unrealized === undefined ? null : usd(unrealized),
  fees_usd: usd(feesMicros),
  funding_usd: usd(fundingMicros),
})

type Valued = { sizeDecimals: number; mark: bigint | undefined; won: bigint | undefined }

function positionFigures(
  asset: string,
  { isLong, sizeUnits, costMicros, stop, target, openedMs }: OpenPosition,
  { sizeDecimals, mark, won }: Valued,
): PositionFigures {
  const scale = 10n ** BigInt(sizeDecimals + priceDecimals - usdDecimals)
  return {
    asset,
    side: isLong ? 'long' : 'short',
    size: fromUnits(sizeUnits, sizeDecimals),
    entry_price: sizeUnits === 0n ? '0' : priceText(mulDiv(costMicros * scale, 1n, sizeUnits)),
    mark_price: mark === undefined ? null : priceText(mark),
    unrealized_pnl_usd: won === undefined ? null : usd(won),
    stop_price: stop ? priceText(stop.priceUnits) : null,
    target_price: target ? priceText(target.priceUnits) : null,
    opened_at: new Date(openedMs).toISOString(),
  }
}
