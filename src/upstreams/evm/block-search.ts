/** Searches blocks for something that stays true once it is reached. */

export type IsReached = (block: bigint) => Promise<boolean>

/** Searches back from the head in doubling steps, because nodes have at least recent state. Block 0 is not asked. */
export async function findUnreached(isReached: IsReached, head: bigint): Promise<bigint> {
  for (let step = 1n; ; step *= 2n) {
    const block = head > step ? head - step : 0n
    if (block === 0n || !(await isReached(block))) return block
  }
}

/** Returns the first block at which it is reached. It is not reached at `below`, and is reached at `upTo`. */
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
