import { mulDiv } from '#kernel/money.ts'

/** The arithmetic of lots: several positions of one user share one balance of shares on the chain. */

const least = (a: bigint, b: bigint) => (a < b ? a : b)

/** A deposit is positive in both, a withdrawal negative. */
export type LotChange = { assetsUnits: bigint; sharesUnits: bigint }

/** What the shares still there were bought for: a withdrawal takes its part of the cost along, rounded down. */
export function costOf(changes: readonly LotChange[]): bigint {
  let cost = 0n
  let shares = 0n
  for (const { assetsUnits, sharesUnits } of changes) {
    if (assetsUnits >= 0n && sharesUnits >= 0n) cost += assetsUnits
    else cost = shares <= -sharesUnits ? 0n : cost - mulDiv(cost, -sharesUnits, shares)
    shares += sharesUnits
  }
  return cost
}

export type Books = { own: bigint; others: bigint; onChain: bigint }

/**
 * How many shares leave when a position is withdrawn whole. The last position takes what came from outside along, so
 * that nothing stays behind; another position's shares are never touched, whatever left from outside.
 */
export function wholeOf({ own, others, onChain }: Books): bigint {
  if (others === 0n) return onChain
  const reachable = onChain - others
  return reachable < 0n ? 0n : least(reachable, own)
}

/**
 * What an amount may need in shares when it is finally burnt: a thousandth above the simulation, since the price of a
 * share can fall a little until then; what is not needed goes back to the position.
 */
export function heldFor(neededShares: bigint, available: bigint): bigint {
  return least(neededShares + neededShares / 1_000n + 1n, available)
}

/**
 * Shares that came or went without us, told at the positions: what came at the oldest, what went from the newest
 * backwards, each at most what it has.
 */
export function externalOf(books: readonly bigint[], onChain: bigint): bigint[] {
  const delta = onChain - books.reduce((sum, each) => sum + each, 0n)
  if (delta >= 0n) return books.map((_, index) => (index === 0 ? delta : 0n))
  let missing = -delta
  return books
    .toReversed()
    .map((book) => {
      const gone = least(book, missing)
      missing -= gone
      return -gone
    })
    .toReversed()
}
