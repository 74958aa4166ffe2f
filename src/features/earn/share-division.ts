/** Several positions of one user share one on-chain balance of shares; this module divides it among them. */

const min = (a: bigint, b: bigint) => (a < b ? a : b)

/**
 * Returns the shares to hold for a withdrawal: a thousandth above the simulation, because the share price can
 * fall a little before the burn. The remainder returns to the position.
 */
export function sharesToHold(neededShares: bigint, available: bigint): bigint {
  return min(neededShares + neededShares / 1_000n + 1n, available)
}

/**
 * Returns the shares that were added or removed outside the gateway, per position. A surplus counts at the
 * oldest position; a deficit counts from the newest backwards, in each up to what the position has.
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
