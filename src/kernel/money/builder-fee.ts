import { fullBps, mulDiv } from './money.ts'

/** What the operator, as the builder of an order, takes of the dollars of a match, beside the fee of the market. */

export type BuilderFee = { takerBps: number; makerBps: number }

const dollarUnits = 1_000_000n

type Match = { role: 'maker' | 'taker'; priceMicros: bigint; sizeUnits: bigint }

export function builderFeeUnits(
  fee: BuilderFee | undefined,
  { role, priceMicros, sizeUnits }: Match,
  rounding: 'up' | 'down' = 'down',
): bigint {
  if (!fee) return 0n
  const bps = BigInt(role === 'taker' ? fee.takerBps : fee.makerBps)
  return mulDiv(sizeUnits * priceMicros, bps, dollarUnits * fullBps, rounding)
}
