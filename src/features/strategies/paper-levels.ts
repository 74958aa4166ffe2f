import type { Deletion } from '#durable/upkeep/retention.ts'
import type { Tx } from '#kernel/task/task.ts'
import {
  type BookLevels,
  type ShownBook,
  type TakenLevels,
  takenOf,
} from '#market/strategies/book-execution.ts'
import { unitsOfPrice, unitsOfSize } from '#market/strategies/matching.ts'
import type { MarketRules } from '#market/strategies/strategy.ts'
import { jsonText, query } from '#store/query.ts'
import type { Book, BookLevel } from '#upstreams/hyperliquid/market-history.ts'

/** The levels of books that the paper orders of a user have taken, whichever strategy has placed them. */

/** Returns the book of the venue in units. */
export function shownBook({ timeMs, bids, asks }: Book, rules: MarketRules): ShownBook {
  const levels = (side: readonly BookLevel[]): BookLevels =>
    side.map(({ price, size }) => ({ priceUnits: unitsOfPrice(price), sizeUnits: unitsOfSize(size, rules) }))
  return { timeMs, bids: levels(bids), asks: levels(asks) }
}

type Sizes = Record<string, string>
type LevelsRow = { block_ms: bigint; bids: Sizes; asks: Sizes }

const sizesOf = (stored: Sizes): Map<bigint, bigint> =>
  new Map(Object.entries(stored).map(([price, size]) => [BigInt(price), BigInt(size)]))
const textOf = (taken: ReadonlyMap<bigint, bigint>): string =>
  jsonText(Object.fromEntries([...taken].map(([price, size]) => [String(price), String(size)])))

type LevelsKey = { userId: string; market: string }

/**
 * Locks what was taken of a market until the end of the transaction. Returns undefined if levels of a later block were
 * taken already: the book is too old to be filled from.
 */
export async function lockLevels(
  tx: Tx,
  { userId, market }: LevelsKey,
  book: ShownBook,
): Promise<TakenLevels | undefined> {
  await query(
    tx,
    `insert into paper_levels (user_id, market, block_ms, bids, asks) values ($1, $2, 0, '{}', '{}')
     on conflict do nothing`,
    [userId, market],
  )
  const [row] = await query<LevelsRow>(
    tx,
    'select block_ms, bids, asks from paper_levels where user_id = $1 and market = $2 for no key update',
    [userId, market],
  )
  const timeMs = Number(row?.block_ms ?? 0)
  if (!row || timeMs > book.timeMs) return undefined
  return takenOf(book, { timeMs, bids: sizesOf(row.bids), asks: sizesOf(row.asks) })
}

export const storeLevels = (tx: Tx, { userId, market }: LevelsKey, { timeMs, bids, asks }: TakenLevels) =>
  query(
    tx,
    'update paper_levels set block_ms = $3, bids = $4, asks = $5 where user_id = $1 and market = $2',
    [userId, market, timeMs, textOf(bids), textOf(asks)],
  )

/** No order is filled from a book of yesterday. There is no index: the table only has the markets of one day. */
export const paperLevelsDeletion: Deletion = {
  name: 'retention of levels that paper orders have taken',
  ageMs: 86_400_000,
  text: `delete from paper_levels where (user_id, market) in
    (select user_id, market from paper_levels where block_ms < extract(epoch from $1::timestamptz) * 1000
     limit $2 for update skip locked) returning market`,
}
