import { Fault } from '#kernel/fault.ts'
import { fullBps, mulDiv } from '#kernel/money.ts'
import { exemptLossMicros } from './limits.ts'
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

/** A pool that somebody has moved, and a provider that takes too much, quote routes that lose most of the value. */
export function assertLossBounded(terms: Valued, received: Received): void {
  const { valueInMicros, destination, maxImpactBps } = terms
  const lostMicros = lossOf(terms, received)
  if (lostMicros === null || valueInMicros === null) return
  const limitMicros = mulDiv(valueInMicros, BigInt(maxImpactBps), fullBps)
  if (lostMicros <= exemptLossMicros || lostMicros <= limitMicros) return
  throw new Fault(
    'insufficient_liquidity',
    received.outMicros === null
      ? `The pool of ${destination.token.symbol} is too small for the amount; \`max_price_impact_bps\` accepts a larger loss`
      : `The best route returns much less ${destination.token.symbol} than the amount is worth; \`max_price_impact_bps\` accepts a larger loss`,
    {
      extras: {
        impact_bps: Number(mulDiv(lostMicros, fullBps, valueInMicros)),
        limit_bps: maxImpactBps,
      },
    },
  )
}
