import { Fault } from '#kernel/contract/fault.ts'
import { canonicalDecimal, decimalPlaces, toUnits } from '#kernel/money/money.ts'
import type { TakerFee } from '#kernel/money/prediction-views.ts'

/**
 * The fee of a taker: `shares * rate * (price * (1 - price)) ^ exponent` dollars, rounded down.
 * https://docs.polymarket.com/trading/fees
 */

const dollar = 1_000_000n

/** The exponents of the venue are whole or half, so that twice of it is whole. */
function doubledExponent(exponent: string): bigint {
  const doubled = decimalPlaces(exponent) <= 1 ? toUnits(exponent, 1) * 2n : 1n
  if (doubled % 10n !== 0n || doubled < 0n || doubled > 100n)
    throw new Fault('upstream_changed', `Polymarket has a fee with the exponent ${exponent}`)
  return doubled / 10n
}

/** Twice the exponent of the fee. */
export function doubledExponentOf({ exponent }: TakerFee): bigint {
  const decimal = canonicalDecimal(exponent)
  if (decimal !== undefined) return doubledExponent(decimal)
  throw new Fault('upstream_changed', 'Polymarket has a fee that is no number')
}

function rootDown(square: bigint): bigint {
  if (square < 2n) return square
  let root = 1n << BigInt((square.toString(2).length + 1) >> 1)
  for (;;) {
    const next = (root + square / root) >> 1n
    if (next >= root) return root
    root = next
  }
}

/** Returns the rate in units of its places; a rate above 1 would take more than the shares can pay. */
function rateOf({ rate }: TakerFee): { units: bigint; places: number } {
  const decimal = canonicalDecimal(rate)
  const places = decimal === undefined ? 0 : decimalPlaces(decimal)
  const units = decimal === undefined ? -1n : toUnits(decimal, places)
  if (units < 0n || units > 10n ** BigInt(places))
    throw new Fault('upstream_changed', 'Polymarket has a fee whose rate is not between 0 and 1')
  return { units, places }
}

/** The whole is squared before it is rounded, so that an exponent of a half is exact too. */
export function takerFeeUnits(fee: TakerFee | null, priceMicros: bigint, sizeUnits: bigint): bigint {
  if (fee === null) return 0n
  const { units: rate, places } = rateOf(fee)
  const doubled = doubledExponentOf(fee)
  const gross = sizeUnits * rate
  const curve = priceMicros * (dollar - priceMicros)
  const numerator = gross * gross * curve ** doubled
  const denominator = 10n ** (BigInt(places) * 2n) * (dollar * dollar) ** doubled
  return rootDown(numerator / denominator)
}
