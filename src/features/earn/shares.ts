/** The arithmetic of lots: several positions of one user share one on-chain balance of shares. */

const min = (a: bigint, b: bigint) => (a < b ? a : b)

/**
 * Shares to hold for a withdrawal: a thousandth above the simulation, because the share price can fall a little before
 * the burn; the remainder returns to the position.
 */
export function sharesToHold(neededShares: bigint, available: bigint): bigint {
  return min(neededShares + neededShares / 1_000n + 1n, available)
}

/**
 * Shares that were added or removed outside the gateway, per position: a surplus counts at the oldest position, a
 * deficit from the newest backwards, each at most what the position has.
 */
export function externalOf(booked: readonly bigint[], onChain: bigint): bigint[] {
  const delta = onChain - booked.reduce((sum, each) => sum + each, 0n)
  if (delta >= 0n) return booked.map((_, index) => (index === 0 ? delta : 0n))
  let missing = -delta
  return booked
    .toReversed()
    .map((units) => {
      const removed = min(units, missing)
      missing -= removed
      return -removed
    })
    .toReversed()
}
