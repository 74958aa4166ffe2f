/** Searches over blocks for something that, once it is reached, stays so. */

export type IsReached = (block: bigint) => Promise<boolean>

/**
 * A block at which it is not reached yet, from the head backwards in steps that double, because nodes have the state of
 * recent blocks at least. Block 0 is not asked.
 */
export async function findUnreached(isReached: IsReached, head: bigint): Promise<bigint> {
  for (let step = 1n; ; step *= 2n) {
    const block = head > step ? head - step : 0n
    if (block === 0n || !(await isReached(block))) return block
  }
}

/** The first block at which it is reached. At `below` it is not, and at `upTo` it is. */
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
