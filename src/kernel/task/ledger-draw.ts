import type { Fault } from '#kernel/contract/fault.ts'

/**
 * Units that a task's acceptance holds from several accounts of its user, in their order. The task is refused
 * below `minUnits`; units that are not posted by its end are returned.
 */
export type Draw = {
  asset: string
  subAccounts: readonly string[]
  minUnits: bigint
  maxUnits: bigint
  reason: string
  refuse(availableUnits: bigint): Fault
}

/** A part of a draw that is still held, and the key of its transfer. */
export type DrawnPart = { key: string; amountUnits: bigint }

type PostedPart = DrawnPart & { move: 'post' }

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)

/** Posts `units` of the drawn parts, in the order of the accounts. The rest is returned when the task ends. */
export function postDraw(parts: readonly DrawnPart[], units: bigint): PostedPart[] {
  let left = units
  const moves: PostedPart[] = []
  for (const { key, amountUnits } of parts) {
    const posted = min(left, amountUnits)
    if (posted > 0n) moves.push({ move: 'post', key, amountUnits: posted })
    left -= posted
  }
  if (left > 0n) throw new Error('a task has spent more than it has drawn')
  return moves
}
