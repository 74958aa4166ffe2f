import { builderFeeUnits } from '#kernel/money/builder-fee.ts'
import type { OrderTerms } from '#kernel/money/prediction-venue.ts'
import type { Book, BookLevel, OutcomeQuote, TakerFee } from '#kernel/money/prediction-views.ts'
import { cashWithin, highestOrderFee } from './fee-bound.ts'
import { takerFeeUnits } from './taker-fee.ts'

/** What a taker gets from a book, level by level. */

export type Spend = { type: 'all_in'; cashUnits: bigint } | { type: 'buy' | 'sell'; sizeUnits: bigint }

type Filled = { sizeUnits: bigint; cashUnits: bigint; feeUnits: bigint; worstPriceMicros: bigint }
const nothing: Filled = { sizeUnits: 0n, cashUnits: 0n, feeUnits: 0n, worstPriceMicros: 0n }

const dollar = 1_000_000n
const hundredth = 10_000n
/** Shares of a match are counted in thousandths, so that a quote never promises more than the market gives. */
const matchLotUnits = 1_000n

type Taker = { levels: readonly BookLevel[]; fee: TakerFee | null; rounding: 'up' | 'down' }

/** Takes shares while `wanted` returns some for the next price. */
function walk(
  { levels, fee, rounding }: Taker,
  wanted: (filled: Filled, priceMicros: bigint) => bigint,
): Filled {
  let filled = nothing
  for (const { priceMicros, sizeUnits } of levels) {
    const asked = wanted(filled, priceMicros)
    const taken = asked < sizeUnits ? asked : sizeUnits
    if (taken <= 0n) break
    const product = taken * priceMicros
    const isUp = rounding === 'up' && product % dollar !== 0n
    filled = {
      sizeUnits: filled.sizeUnits + taken,
      cashUnits: filled.cashUnits + product / dollar + (isUp ? 1n : 0n),
      feeUnits:
        filled.feeUnits +
        takerFeeUnits(fee, priceMicros, taken) +
        builderFeeUnits(fee?.builder, { role: 'taker', priceMicros, sizeUnits: taken }),
      worstPriceMicros: priceMicros,
    }
    if (taken < sizeUnits) break
  }
  return filled
}

const bySize = (taker: Taker, sizeUnits: bigint): Filled =>
  walk(taker, (filled) => sizeUnits - filled.sizeUnits)

const byCash = (taker: Taker, cashUnits: bigint): Filled =>
  walk(taker, (filled, priceMicros) => {
    const lots = ((cashUnits - filled.cashUnits) * dollar) / priceMicros / matchLotUnits
    return lots * matchLotUnits
  })

const sumOf = (levels: readonly BookLevel[]): bigint =>
  levels.reduce((sum, { sizeUnits }) => sum + sizeUnits, 0n)

const levelsWithin = (
  { asks, bids }: Book,
  side: 'buy' | 'sell',
  worstPriceMicros: bigint | null,
): BookLevel[] => {
  const levels = side === 'buy' ? asks : bids
  if (worstPriceMicros === null) return levels
  return levels.filter(({ priceMicros }) =>
    side === 'buy' ? priceMicros <= worstPriceMicros : priceMicros >= worstPriceMicros,
  )
}

export function quoteBook(
  book: Book,
  fee: TakerFee | null,
  spend: Spend,
  bound: bigint | null = null,
): OutcomeQuote {
  const side = spend.type === 'sell' ? 'sell' : 'buy'
  const levels = levelsWithin(book, side, bound)
  const taker: Taker = { levels, fee, rounding: side === 'buy' ? 'up' : 'down' }
  const filled =
    spend.type === 'all_in'
      ? byCash(taker, cashWithin(spend.cashUnits, fee, book.tickMicros))
      : bySize(taker, spend.sizeUnits)
  const { sizeUnits, cashUnits, feeUnits, worstPriceMicros } = filled
  const isComplete =
    spend.type === 'all_in' ? sizeUnits > 0n && sizeUnits < sumOf(levels) : sizeUnits === spend.sizeUnits
  // The cash that is signed counts in full, because the market may fill more than whole lots.
  const orderCashUnits = side === 'buy' ? ((cashUnits + hundredth - 1n) / hundredth) * hundredth : 0n
  const terms: OrderTerms =
    side === 'buy'
      ? { type: 'market', side, cashUnits: orderCashUnits, worstPriceMicros }
      : { type: 'market', side, sizeUnits, worstPriceMicros }
  return {
    venue: book.venue,
    marketId: book.marketId,
    outcomeId: book.outcomeId,
    side,
    sizeUnits,
    isComplete,
    cashUnits,
    orderCashUnits,
    feeUnits,
    maxFeeUnits: sizeUnits === 0n ? 0n : highestOrderFee(fee, { terms, postOnly: false }, book.tickMicros),
    allInUnits: side === 'buy' ? cashUnits + feeUnits : cashUnits - feeUnits,
    averagePriceMicros: sizeUnits === 0n ? 0n : (cashUnits * dollar) / sizeUnits,
    worstPriceMicros,
    payoutUnits: sizeUnits,
    book: { hash: book.hash, at: book.at },
  }
}
