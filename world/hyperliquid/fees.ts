import { roundUpMicro } from './decimal.ts'

/** Base tier, in millionths of the notional. */
export const rates = {
  perp: { taker: 450n, maker: 150n },
  spot: { taker: 700n, maker: 400n },
} as const

const millionths = 1_000_000n

export const feeOf = (kind: 'perp' | 'spot', { crossed }: { crossed: boolean }, value: bigint): bigint =>
  roundUpMicro((value * (crossed ? rates[kind].taker : rates[kind].maker)) / millionths)

/** Tenths of a basis point. */
export const builderFeeOf = (value: bigint, tenths: number): bigint =>
  roundUpMicro((value * BigInt(tenths)) / 100_000n)

/** Spot buyers pay in the bought token, up to the last unit that the venue stores. */
export const spotFeeInBase = (size: bigint, { crossed }: { crossed: boolean }): bigint => {
  const exact = size * (crossed ? rates.spot.taker : rates.spot.maker)
  return (exact + millionths - 1n) / millionths
}
