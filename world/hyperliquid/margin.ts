import { absolute, maximum, notional, one } from './decimal.ts'
import { type Perp, perpOf, type Tier } from './markets.ts'
import type { Account, Leverage, Position } from './state.ts'

/** Mark prices by asset. */
export type Marks = (asset: number) => number

export const signedValue = ({ asset, size }: Position, mark: number): bigint =>
  notional(mark, size, perpOf(asset).sizeDecimals)

export const positionValue = (position: Position, mark: number): bigint =>
  absolute(signedValue(position, mark))

export const initialMargin = (value: bigint, leverage: number): bigint => value / BigInt(leverage)

/** Each slice of the notional at half its tier's initial rate: the same as rate * notional - deduction. */
export const maintenanceMargin = (value: bigint, tiers: readonly Tier[]): bigint => {
  let sum = 0n
  tiers.forEach(({ lowerBoundUsd, maxLeverage }, i) => {
    const from = BigInt(lowerBoundUsd) * BigInt(one)
    const next = tiers[i + 1]
    const to = next ? BigInt(next.lowerBoundUsd) * BigInt(one) : value
    const slice = (value < to ? value : to) - from
    if (slice > 0n) sum += slice / BigInt(2 * maxLeverage)
  })
  return sum
}

export const tierOf = (value: bigint, tiers: readonly Tier[]): Tier =>
  tiers.findLast(({ lowerBoundUsd }) => value >= BigInt(lowerBoundUsd) * BigInt(one)) ?? (tiers[0] as Tier)

export const isolatedValue = (position: Position, mark: number): bigint =>
  position.raw + signedValue(position, mark)

/** Margin that a position uses: its own equity when isolated. */
export const marginUsed = (position: Position, mark: number): bigint =>
  position.leverage.cross
    ? initialMargin(positionValue(position, mark), position.leverage.value)
    : isolatedValue(position, mark)

export type CrossSummary = { value: bigint; notional: bigint; initial: bigint; maintenance: bigint }

export const crossSummary = (account: Account, marks: Marks): CrossSummary => {
  const sum: CrossSummary = { value: account.raw, notional: 0n, initial: 0n, maintenance: 0n }
  for (const position of account.positions.values()) {
    if (!position.leverage.cross) continue
    const mark = marks(position.asset)
    const value = positionValue(position, mark)
    sum.value += signedValue(position, mark)
    sum.notional += value
    sum.initial += initialMargin(value, position.leverage.value)
    sum.maintenance += maintenanceMargin(value, perpOf(position.asset).tiers)
  }
  return sum
}

/** The withdrawable amount: at least a tenth of the open notional stays. */
export const withdrawable = (account: Account, marks: Marks): bigint => {
  const { value, notional: open, initial } = crossSummary(account, marks)
  return maximum(0n, value - maximum(initial, open / 10n))
}

/** Margin that is free for new positions. */
export const availableMargin = (account: Account, marks: Marks): bigint => {
  const { value, initial } = crossSummary(account, marks)
  return value - initial
}

export const leverageOf = (account: Account, market: Perp): Leverage =>
  account.positions.get(market.asset)?.leverage ??
  account.leverage.get(market.asset) ?? {
    cross: !market.onlyIsolated,
    value: Math.min(20, market.maxLeverage),
  }

/** The price at which the remaining margin equals the maintenance margin, or undefined where no such price exists. */
export const liquidationPrice = (account: Account, position: Position, marks: Marks): number | undefined => {
  const market = perpOf(position.asset)
  const mark = marks(position.asset)
  const value = positionValue(position, mark)
  const available = position.leverage.cross
    ? crossSummary(account, marks).value - crossSummary(account, marks).maintenance
    : isolatedValue(position, mark) - maintenanceMargin(value, market.tiers)
  const side = position.size > 0 ? 1 : -1
  const rate = 1 / (2 * tierOf(value, market.tiers).maxLeverage)
  const lots = Math.abs(position.size) / 10 ** market.sizeDecimals
  const price = Math.round(mark - (side * Number(available)) / lots / (1 - rate * side))
  return price > 0 ? price : undefined
}
