import {
  fromFixedPoint,
  fromUnits,
  mulDiv,
  rescale,
  toFixedPoint,
  toMicros,
  usdDecimals,
} from '#kernel/money/money.ts'
import { assetsMax, type PartName, type PortfolioView } from './contract.ts'

/** Adds up what a user has. Values are micro-dollars, and a value that is unknown counts as nothing and is named. */

/** What a place holds of one asset. */
export type Held = {
  place: PartName
  /** The chain is null for money in flight. */
  chainId: string | null
  chainName: string
  symbol: string
  name: string
  /** The amount is undefined if it counts units of several kinds, such as shares of outcomes. */
  amount: string | undefined
  /** The value is null if it has no price. */
  valueUsd: string | null
}
export type Part = {
  place: PartName
  /** The time of the reading; undefined if the part could not be read. */
  asOf: string | undefined
  held: readonly Held[]
}

const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)
const microsOf = ({ valueUsd }: Held): bigint => (valueUsd === null ? 0n : toMicros(valueUsd))
const sumOf = (held: readonly Held[]): bigint => held.reduce((sum, each) => sum + microsOf(each), 0n)

const shareDecimals = 6
/** Returns a part of the total as a fraction; null if the total is not positive. */
const shareOf = (micros: bigint, total: bigint): string | null =>
  total > 0n ? fromUnits(mulDiv(micros, 10n ** BigInt(shareDecimals), total), shareDecimals) : null

const byValue = (a: { micros: bigint }, b: { micros: bigint }): number =>
  b.micros > a.micros ? 1 : b.micros < a.micros ? -1 : 0

function assetsOf(held: readonly Held[], total: bigint) {
  const sums = [...Map.groupBy(held, ({ symbol }) => symbol)]
    .map(([symbol, rows]) => ({
      symbol,
      name: rows[0]!.name,
      amount: rows.some(({ amount }) => amount === undefined)
        ? null
        : fromFixedPoint(rows.reduce((sum, { amount }) => sum + toFixedPoint(amount ?? '0'), 0n)),
      micros: sumOf(rows),
    }))
    .toSorted(byValue)
  const others = sums.slice(assetsMax).reduce((sum, { micros }) => sum + micros, 0n)
  return {
    by_asset: sums.slice(0, assetsMax).map(({ micros, ...rest }) => ({
      ...rest,
      value_usd: usd(micros),
      share: shareOf(micros, total),
    })),
    other_assets_usd: usd(others),
  }
}

export function sumsOf(
  parts: readonly Part[],
): Pick<PortfolioView, 'total_usd' | 'parts' | 'by_chain' | 'by_asset' | 'other_assets_usd' | 'unpriced'> {
  const held = parts.flatMap((each) => each.held)
  const total = sumOf(held)
  const chains = [...Map.groupBy(held, ({ chainId, chainName }) => `${chainId}:${chainName}`).values()]
    .map((rows) => ({ chain_id: rows[0]!.chainId, name: rows[0]!.chainName, micros: sumOf(rows) }))
    .toSorted(byValue)
  return {
    total_usd: usd(total),
    parts: parts.map(({ place, asOf, held: own }) => ({
      place,
      value_usd: asOf === undefined ? null : usd(sumOf(own)),
      share: asOf === undefined ? null : shareOf(sumOf(own), total),
      as_of: asOf ?? null,
    })),
    by_chain: chains.map(({ micros, ...chain }) => ({
      ...chain,
      value_usd: usd(micros),
      share: shareOf(micros, total),
    })),
    ...assetsOf(held, total),
    unpriced: [...new Set(held.flatMap(({ valueUsd, symbol }) => (valueUsd === null ? [symbol] : [])))].slice(
      0,
      assetsMax,
    ),
  }
}

/** Returns what an amount is worth, rounded down to micro-dollars. */
export const worth = (amount: string, price: string): string =>
  usd(rescale(mulDiv(toFixedPoint(amount), toFixedPoint(price), 10n ** 18n), 18, usdDecimals))
