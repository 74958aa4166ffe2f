import { createHash } from 'node:crypto'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import type { SignedOrder } from '#kernel/money/prediction-venue.ts'
import { type ExchangeName, zero32 } from './contracts.ts'
import { orderIdsAt } from './digests.ts'
import { protocolOf } from './outcome-ids.ts'

/**
 * The salt of an order follows from its identity, so that an order which the database has lost is recognised: the venue
 * lists neither salt nor time, and its id is the hash of both. The time is one of few.
 */

const saltMax = (1n << 53n) - 1n
/** The times at which one identity signs are so far apart. */
const timeStepMs = 10_000
/** A signed order arrives at the venue within its task's time and a last request. */
const lifeMs = 11 * 60_000
/** The clocks of gateway and venue may differ by this much; the venue states seconds. */
const skewMs = 120_000

const dollar = 1_000_000n
const hundredth = 10_000n

const bitsOf = (identity: string): Buffer =>
  createHash('sha256').update(`portico outcome order\n${identity}`).digest()

/** The venue reads the salt as a JSON number, so that a wider one would lose bits. */
export const saltOf = (identity: string): bigint => bitsOf(identity).readBigUInt64BE(0) & saltMax

/** Returns the last time before now at which this identity signs; two identities rarely share one. */
export function timestampOf(identity: string, nowMs: number): number {
  const phase = bitsOf(identity).readUInt32BE(8) % timeStepMs
  return nowMs - ((((nowMs - phase) % timeStepMs) + timeStepMs) % timeStepMs)
}

/** What the order gave and took when it was signed. A purchase at market price names whole cents. */
function amountsOf({ side, timeInForce, sizeUnits, priceMicros }: SignedOrder) {
  const product = sizeUnits * priceMicros
  if (side === 'sell') return { makerUnits: sizeUnits, takerUnits: product / dollar }
  const isMarket = timeInForce === 'fok' || timeInForce === 'fak'
  if (!isMarket) return { makerUnits: product / dollar, takerUnits: sizeUnits }
  const cent = hundredth * dollar
  return { makerUnits: ((product + cent - 1n) / cent) * hundredth, takerUnits: sizeUnits }
}

const exchangesOf = (outcomeId: string): readonly ExchangeName[] =>
  protocolOf(outcomeId) === 'v2' ? ['v3'] : ['standard', 'neg_risk']

/** Returns which of the identities an order of the wallet was signed under; undefined if it was none of them. */
export function identityOf(
  order: SignedOrder,
  { kind, wallet, owner }: VenueWallet,
  { identities, builderCode }: { identities: readonly string[]; builderCode: string },
): string | undefined {
  const { orderId, outcomeId, side, createdAt } = order
  const lastMs = createdAt.getTime() + skewMs
  const oldestMs = createdAt.getTime() - skewMs - lifeMs - timeStepMs
  const common = {
    type: 'order',
    walletKind: kind,
    wallet,
    owner,
    outcomeId,
    side,
    metadata: zero32,
  } as const
  const builders = new Set([builderCode, zero32])
  return identities.find((identity) => {
    const salt = saltOf(identity)
    const newestMs = timestampOf(identity, lastMs)
    for (const exchange of exchangesOf(outcomeId))
      for (const builder of builders) {
        const idAt = orderIdsAt({ ...common, ...amountsOf(order), exchange, builder, salt, timestampMs: 0 })
        for (let atMs = newestMs; atMs > oldestMs; atMs -= timeStepMs)
          if (idAt(atMs) === orderId.toLowerCase()) return true
      }
    return false
  })
}
