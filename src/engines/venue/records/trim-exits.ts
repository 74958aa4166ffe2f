import { toFixedPoint } from '#kernel/money/money.ts'
import type { ExitLeg } from './bracket.ts'

/** Fits the exits of a schedule to what is left of its part, so that they sell nothing of what its user owns. */

/** An exit that rests at the venue; the exits of one task exclude each other. */
export type RestingExit = {
  order_id: number
  task_id: string
  leg: ExitLeg
  size: string
  trigger_price: string
}
export type TrimmedExits = {
  /** The exits that have to end. */
  ended: RestingExit[]
  /** The exit that has to go on with a smaller size, before the ended ones end. */
  smaller?: { exit: RestingExit; units: bigint }
}

const unitsOf = ({ size }: RestingExit): bigint => toFixedPoint(size)

/**
 * Keeps the exits of the newest tasks, as far as what is left covers them. Of the first task that it does not cover
 * whole, one exit goes on for the rest, its stop if it has one: two of them would not exclude each other any more.
 */
export function trimExits(exits: readonly RestingExit[], left: bigint): TrimmedExits {
  const newestFirst = exits.toSorted((one, other) => other.order_id - one.order_id)
  const ended: RestingExit[] = []
  let [rest, smaller]: [bigint, TrimmedExits['smaller']] = [left, undefined]
  for (const own of Map.groupBy(newestFirst, ({ task_id }) => task_id).values()) {
    const units = own.map(unitsOf).reduce((most, each) => (each > most ? each : most), 0n)
    if (ended.length === 0 && units <= rest) {
      rest -= units
      continue
    }
    if (ended.length === 0 && rest > 0n) {
      const exit = own.find(({ leg }) => leg === 'sl') ?? own[0]!
      smaller = { exit, units: rest }
    }
    ended.push(...own)
  }
  return smaller ? { ended, smaller } : { ended }
}
