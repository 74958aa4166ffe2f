import { Fault } from '#kernel/contract/fault.ts'
import { fullBps, mulDiv } from '#kernel/money/money.ts'
import { exemptLossMicros, remainingBpsMin, swapLimits } from './limits.ts'
import type { SwapTerms } from './terms.ts'

type Valued = Pick<SwapTerms, 'valueInMicros' | 'maxImpactBps' | 'destination'>
export type Received = {
  /** The value of the output at a trusted price; null if its token has no trusted price. */
  outMicros: bigint | null
  /** The value that the pool of the bought token holds on its other side; null if it is unknown. */
  poolMicros: bigint | null
}

/**
 * Returns the lost value. Without a trusted price of the bought token, that is the part of the value that could not
 * be sold back along the curve of its pool. A pool made to trap one buyer is small, whatever price is claimed.
 */
function lossOf({ valueInMicros }: Valued, { outMicros, poolMicros }: Received): bigint | null {
  if (valueInMicros === null) return null
  if (outMicros !== null) return valueInMicros - outMicros
  return poolMicros === null ? null : mulDiv(valueInMicros, valueInMicros, poolMicros + valueInMicros)
}

const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other)
const larger = (one: bigint, other: bigint): bigint => (one > other ? one : other)

/** Returns the accepted loss: fees may take up to half of a small amount, and a tenth always has to be left. */
function acceptedLossMicros(valueMicros: bigint, maxImpactBps: number): bigint {
  const accepted = mulDiv(valueMicros, BigInt(maxImpactBps), fullBps)
  const exempt = smaller(exemptLossMicros, valueMicros / 2n)
  return smaller(larger(accepted, exempt), mulDiv(valueMicros, fullBps - remainingBpsMin, fullBps))
}

/** Whether the remaining value is worth the original one, less the loss that a swap or refund may cost. */
export const isLossAccepted = (remainingMicros: bigint, valueMicros: bigint): boolean =>
  valueMicros - remainingMicros <= acceptedLossMicros(valueMicros, swapLimits.priceImpactBps.default)

/** The smallest part of the deposit that counts as a refund when it comes back. */
export function refundFloorUnits({ amount_in, usd_micros }: { amount_in: string; usd_micros: string }) {
  const [units, micros] = [BigInt(amount_in), BigInt(usd_micros)]
  const lostMicros = acceptedLossMicros(micros, swapLimits.priceImpactBps.default)
  return units - (micros === 0n ? 0n : mulDiv(units, lostMicros, micros))
}

/** Refuses routes that lose most of the value, as manipulated pools and providers that take too much offer them. */
export function assertLossBounded(terms: Valued, received: Received): void {
  const { valueInMicros, destination, maxImpactBps } = terms
  const lostMicros = lossOf(terms, received)
  if (lostMicros === null || valueInMicros === null) return
  if (lostMicros <= acceptedLossMicros(valueInMicros, maxImpactBps)) return
  const { symbol } = destination.token
  const what =
    received.outMicros === null
      ? `The pool of ${symbol} is too small for the amount`
      : `The best route returns much less ${symbol} than the amount is worth`
  const isAtBound = BigInt(maxImpactBps) >= fullBps - remainingBpsMin
  throw new Fault(
    'insufficient_liquidity',
    isAtBound
      ? `${what}: a tenth of the value has to be left`
      : `${what}; \`max_price_impact_bps\` accepts a larger loss, and above ${swapLimits.priceImpactBps.default} a person has to approve it`,
    { extras: { impact_bps: Number(mulDiv(lostMicros, fullBps, valueInMicros)), limit_bps: maxImpactBps } },
  )
}
