import { isRecord } from '#kernel/wire/json.ts'
import { decimalText } from '#market/decimal-text.ts'
import type { Formula } from './claim.ts'

/** These formulas say what an order of some dollars would cost in a market's book, compared with the middle price. */

type Level = { price: number; size: number }
type Book = { bids: Level[]; asks: Level[]; middle: number }

const levelsOf = (value: unknown): Level[] =>
  Array.isArray(value)
    ? value.flatMap((row) => (isRecord(row) ? [{ price: Number(row.price), size: Number(row.size) }] : []))
    : []

function bookIn(output: unknown): Book | undefined {
  if (!isRecord(output)) return undefined
  const [bids, asks] = [levelsOf(output.bids), levelsOf(output.asks)]
  const [bid, ask] = [bids[0]?.price ?? Number.NaN, asks[0]?.price ?? Number.NaN]
  return bid > 0 && ask >= bid ? { bids, asks, middle: (bid + ask) / 2 } : undefined
}

/** Returns the average price of an order of some dollars; undefined if the known levels cannot fill the order. */
function averagePrice(levels: readonly Level[], usd: number): number | undefined {
  let [left, size] = [usd, 0]
  for (const level of levels) {
    const part = Math.min(left, level.price * level.size)
    size += part / level.price
    left -= part
    if (left <= 0) return usd / size
  }
  return undefined
}

export const bookFormulas: Readonly<Record<string, Formula>> = {
  spread: ([output]) => {
    const book = bookIn(output)
    const [bid, ask] = [book?.bids[0]?.price, book?.asks[0]?.price]
    return book && bid !== undefined && ask !== undefined ? decimalText((ask - bid) / book.middle) : undefined
  },
  /** The cost of a market order of so many dollars, as a fraction of the middle price; `side` is buy or sell. */
  book_cost: ([output, side, usd]) => {
    const book = bookIn(output)
    if (!book || (side !== 'buy' && side !== 'sell')) return undefined
    const average = averagePrice(side === 'buy' ? book.asks : book.bids, Number(usd))
    if (average === undefined) return undefined
    return decimalText(side === 'buy' ? average / book.middle - 1 : 1 - average / book.middle)
  },
  /** The worth, in dollars, of the known levels on both sides of the book. */
  book_depth: ([output]) => {
    const book = bookIn(output)
    const worth = (levels: readonly Level[]) => levels.reduce((sum, { price, size }) => sum + price * size, 0)
    return book && decimalText(worth(book.bids) + worth(book.asks))
  },
}
