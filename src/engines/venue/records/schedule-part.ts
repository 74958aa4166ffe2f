import { toFixedPoint } from '#kernel/money/money.ts'

/** Follows what a schedule has opened of a balance through the changes of that balance. */

/** A change of a balance, with the id of the schedule whose change it is, or `other`, or `unknown`. */
export type Change = [owner: string, amount: string]
/** A change of the holding; a positive one enlarges it. */
export type Move = { owner: 'own' | 'other' | 'unknown'; change: bigint }
/** Returns the changes as one schedule sees them; `side` is -1 for a short position, which a negative change enlarges. */
export const toMoves = (
  changes: readonly Change[],
  { schedule, side }: { schedule: string; side: 1n | -1n },
): Move[] =>
  changes.map(([owner, amount]) => ({
    owner: owner === schedule ? 'own' : owner === 'unknown' ? 'unknown' : 'other',
    change: side * toFixedPoint(amount),
  }))

type Known = {
  /** What the account holds after the last move; undefined if that is not recorded. */
  position: bigint | undefined
  /** What the schedule held before the first move. */
  ownBefore?: bigint
}

/**
 * Returns what the schedule still holds after all moves. What others reduce is theirs first, and no more than the
 * account itself held is ever left: a position that was closed and opened again is not the schedule's. A reduction
 * whose owner is unknown, such as a liquidation, takes from the schedule first; so does any other reduction if the
 * position is not recorded.
 */
export function ownAfter(moves: readonly Move[], { position, ownBefore = 0n }: Known): bigint {
  let own = ownBefore
  let held = position === undefined ? undefined : moves.reduce((rest, { change }) => rest - change, position)
  if (held !== undefined && own > held) own = held > 0n ? held : 0n
  for (const { owner, change } of moves) {
    if (held !== undefined) held += change
    const mayBeOwn = owner === 'unknown' || held === undefined
    if (owner === 'own' || (mayBeOwn && change < 0n)) own += change
    if (held !== undefined && own > held) own = held
    if (own < 0n) own = 0n
  }
  return own
}
