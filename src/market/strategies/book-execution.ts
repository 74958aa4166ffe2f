import { worthMicros } from './account.ts'
import type { Execute } from './matching.ts'

/**
 * Fills the orders of paper strategies from the book that the venue shows: from the best level on, no further than the
 * levels that are seen, and each level once. What the book does not have stays unfilled.
 */

export type BookLevels = readonly { priceUnits: bigint; sizeUnits: bigint }[]
export type ShownBook = {
  /** The time of the block that the book is from; the levels of another block are new. */
  timeMs: number
  bids: BookLevels
  asks: BookLevels
}
/** What the orders of one user have taken of the levels of a block. */
export type TakenLevels = { timeMs: number; bids: Map<bigint, bigint>; asks: Map<bigint, bigint> }

export const nothingTaken = (timeMs: number): TakenLevels => ({ timeMs, bids: new Map(), asks: new Map() })

/** Returns what was taken of the book's own block; of another block nothing was. */
export const takenOf = (book: ShownBook, taken: TakenLevels): TakenLevels =>
  taken.timeMs === book.timeMs ? taken : nothingTaken(book.timeMs)

type Limits = {
  /** The most that an order without a limit of its own may pay beyond the best price, in hundredths of a percent. */
  slippageBps: bigint
}

/**
 * Returns the execution of orders at a book. `taken` changes with each of them, so that no two orders take one level. An
 * order that rests is filled at its own price, which the price has passed.
 */
export const executeInBook =
  (book: ShownBook, taken: TakenLevels, { slippageBps }: Limits): Execute =>
  ({ isBuy, sizeUnits, priceUnits, isTaker, slippageBps: ownBps }, rules) => {
    if (!isTaker)
      return { sizeUnits, valueMicros: worthMicros(sizeUnits, priceUnits, rules, isBuy ? 'up' : 'down') }
    const levels = isBuy ? book.asks : book.bids
    const used = isBuy ? taken.asks : taken.bids
    const [best] = levels
    if (!best || taken.timeMs !== book.timeMs) return undefined
    const bps = ownBps === undefined ? slippageBps : BigInt(ownBps)
    const worst = (best.priceUnits * (isBuy ? 10_000n + bps : 10_000n - bps)) / 10_000n
    let left = sizeUnits
    let valueMicros = 0n
    for (const level of levels) {
      if (left === 0n || (isBuy ? level.priceUnits > worst : level.priceUnits < worst)) break
      const free = level.sizeUnits - (used.get(level.priceUnits) ?? 0n)
      const size = free < left ? free : left
      if (size <= 0n) continue
      used.set(level.priceUnits, (used.get(level.priceUnits) ?? 0n) + size)
      valueMicros += worthMicros(size, level.priceUnits, rules, isBuy ? 'up' : 'down')
      left -= size
    }
    return left === sizeUnits ? undefined : { sizeUnits: sizeUnits - left, valueMicros }
  }
