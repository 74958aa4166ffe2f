import type { SwapTaskData } from '#features/swap/task-data.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { fullBps, mulDiv } from '#kernel/money/money.ts'
import { exemptLossMicros, remainingBpsMin, swapLimits } from './limits.ts'
import type { SwapTerms } from './terms.ts'

/** How much of its value a swap may lose. */

type Valued = Pick<SwapTerms, 'valueInMicros' | 'maxImpactBps' | 'destination'>
export type Received = {
  /** The worth of the output at a trusted price; null without one. */
  outMicros: bigint | null
  /** What the pool of the token that is bought holds against it; null where it is not known. */
  poolMicros: bigint | null
}

/**
 * Without a trusted price of what is bought, by the curve of its pool: so much of the amount could not be sold back. The
 * pool of a token that somebody made for one buyer is small, whatever the token is said to be worth.
 */
function lossOf({ valueInMicros }: Valued, { outMicros, poolMicros }: Received): bigint | null {
  if (valueInMicros === null) return null
  if (outMicros !== null) return valueInMicros - outMicros
  return poolMicros === null ? null : mulDiv(valueInMicros, valueInMicros, poolMicros + valueInMicros)
}

const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other)
const larger = (one: bigint, other: bigint): bigint => (one > other ? one : other)

/** Fees may take a large part of small amounts, and never more than half; whatever is accepted, a tenth is left. */
function acceptedLossMicros(valueMicros: bigint, maxImpactBps: number): bigint {
  const accepted = mulDiv(valueMicros, BigInt(maxImpactBps), fullBps)
  const exempt = smaller(exemptLossMicros, valueMicros / 2n)
  return smaller(larger(accepted, exempt), mulDiv(valueMicros, fullBps - remainingBpsMin, fullBps))
}

/** Whether the value is there again, less what a refund may cost: as much as a swap may lose. */
export const isLossAccepted = (remainingMicros: bigint, valueMicros: bigint): boolean =>
  valueMicros - remainingMicros <= acceptedLossMicros(valueMicros, swapLimits.priceImpactBps.default)

/** The least that comes back of the deposit for it to be a refund. */
export function refundFloorUnits({ amount_in, usd_micros }: Pick<SwapTaskData, 'amount_in' | 'usd_micros'>) {
  const [units, micros] = [BigInt(amount_in), BigInt(usd_micros)]
  const lostMicros = acceptedLossMicros(micros, swapLimits.priceImpactBps.default)
  return units - (micros === 0n ? 0n : mulDiv(units, lostMicros, micros))
}

/** A pool that somebody has moved, and a provider that takes too much, quote routes that lose most of the value. */
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
