/**
 * Finds the first block at which a condition holds. The condition must be monotonic: once it holds, it holds at every
 * later block.
 */

export type IsReached = (block: bigint) => Promise<boolean>

/**
 * Returns a block at which the condition does not hold yet, or block 0, for which the condition is not evaluated. The
 * search goes back from the head in doubling steps, because every node has recent state.
 */
export async function findUnreached(isReached: IsReached, head: bigint): Promise<bigint> {
  for (let step = 1n; ; step *= 2n) {
    const block = head > step ? head - step : 0n
    if (block === 0n || !(await isReached(block))) return block
  }
}

/**
 * Returns the first block at which the condition holds: after `below`, where it does not hold, and up to `upTo`.
 */
export async function firstReached(
  isReached: IsReached,
  { below, upTo }: { below: bigint; upTo: bigint },
): Promise<bigint> {
  let [before, first] = [below, upTo]
  while (first - before > 1n) {
    const middle = (before + first) / 2n
    if (await isReached(middle)) first = middle
    else before = middle
  }
  return first
}
