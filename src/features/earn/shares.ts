/** The arithmetic of lots: several positions of one user share one balance of shares on the chain. */

const min = (a: bigint, b: bigint) => (a < b ? a : b)

/**
 * What an amount may need in shares when it is finally burnt: a thousandth above the simulation, since the price of a
 * share can fall a little until then; what is not needed goes back to the position.
 */
export function sharesToHold(neededShares: bigint, available: bigint): bigint {
  return min(neededShares + neededShares / 1_000n + 1n, available)
}

/**
 * Shares that came or went without us, told at the positions: what came at the oldest, what went from the newest
 * backwards, each at most what it has.
 */
export function externalOf(booked: readonly bigint[], onChain: bigint): bigint[] {
  const delta = onChain - booked.reduce((sum, each) => sum + each, 0n)
  if (delta >= 0n) return booked.map((_, index) => (index === 0 ? delta : 0n))
  let missing = -delta
  return booked
    .toReversed()
    .map((units) => {
      const gone = min(units, missing)
      missing -= gone
      return -gone
    })
    .toReversed()
}
