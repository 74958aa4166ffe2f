import { builderFeeUnits } from '#kernel/money/builder-fee.ts'
import type { OrderRequest } from '#kernel/money/prediction-venue.ts'
import type { TakerFee } from '#kernel/money/prediction-views.ts'
import { doubledExponentOf, takerFeeUnits } from './taker-fee.ts'

/**
 * The most that an order can pay in fees. It may match at any price from its own to the best of the grid, and a better
 * price can have the higher fee.
 */

const dollar = 1_000_000n
const hundredth = 10_000n

type Prices = { lowestMicros: bigint; highestMicros: bigint }

/** The price with the highest fee, down to the micro-dollar: the fee falls from there to both sides. */
function peakOf(fee: TakerFee, { isByCash }: { isByCash: boolean }): bigint {
  if (!isByCash) return dollar / 2n
  // Dollars buy the more shares the lower the price is: their fee is `rate * price ^ (e - 1) * (1 - price) ^ e`.
  const doubled = doubledExponentOf(fee)
  return doubled <= 2n ? 0n : (dollar * (doubled - 2n)) / (2n * (doubled - 1n))
}

type Amount = { cashUnits: bigint } | { sizeUnits: bigint }

/** The dollars of a match are highest at the highest price, and those that a purchase names are given. */
function highestBuilderFee(
  { builder }: TakerFee,
  amount: Amount,
  { highestMicros, postOnly = false }: Pick<Prices, 'highestMicros'> & { postOnly?: boolean },
): bigint {
  const match =
    'cashUnits' in amount
      ? { priceMicros: dollar, sizeUnits: amount.cashUnits }
      : { priceMicros: highestMicros, sizeUnits: amount.sizeUnits }
  const asMaker = builderFeeUnits(builder, { role: 'maker', ...match }, 'up')
  const asTaker = builderFeeUnits(builder, { role: 'taker', ...match }, 'up')
  // An order that does not only rest can be matched as either.
  return postOnly || asMaker > asTaker ? asMaker : asTaker
}

function highestFee(fee: TakerFee | null, amount: Amount, { lowestMicros, highestMicros }: Prices): bigint {
  if (fee === null) return 0n
  const peak = peakOf(fee, { isByCash: 'cashUnits' in amount })
  const fees = [lowestMicros, highestMicros, peak, peak + 1n].map((wanted) => {
    const price = wanted < lowestMicros ? lowestMicros : wanted > highestMicros ? highestMicros : wanted
    const sizeUnits =
      'sizeUnits' in amount ? amount.sizeUnits : (amount.cashUnits * dollar + price - 1n) / price
    return takerFeeUnits(fee, price, sizeUnits)
  })
  const highest = fees.reduce((most, each) => (each > most ? each : most))
  return highest + highestBuilderFee(fee, amount, { highestMicros })
}

/** All prices of the grid. An unknown tick stands for the finest one, and so does one that leaves no price. */
const gridOf = (tickMicros: bigint): Prices => {
  const tick = tickMicros > 0n && tickMicros <= dollar / 2n ? tickMicros : 1n
  return { lowestMicros: tick, highestMicros: dollar - tick }
}

export function highestOrderFee(
  fee: TakerFee | null,
  { terms, postOnly }: Pick<OrderRequest, 'terms' | 'postOnly'>,
  tickMicros: bigint,
): bigint {
  const grid = gridOf(tickMicros)
  if (terms.type === 'market' && terms.side === 'buy')
    return highestFee(fee, { cashUnits: terms.cashUnits }, grid)
  const boundMicros = terms.type === 'limit' ? terms.priceMicros : terms.worstPriceMicros
  const prices =
    terms.side === 'buy' ? { ...grid, highestMicros: boundMicros } : { ...grid, lowestMicros: boundMicros }
  const amount = { sizeUnits: terms.sizeUnits }
  if (postOnly) return fee === null ? 0n : highestBuilderFee(fee, amount, { ...prices, postOnly })
  return highestFee(fee, amount, prices)
}

/** The most whole cents of a purchase that cost no more than `allInUnits` with the highest fee of theirs. */
export function cashWithin(allInUnits: bigint, fee: TakerFee | null, tickMicros: bigint): bigint {
  let [low, high] = [0n, allInUnits / hundredth]
  while (low < high) {
    const cents = (low + high + 1n) / 2n
    const cashUnits = cents * hundredth
    const fits = cashUnits + highestFee(fee, { cashUnits }, gridOf(tickMicros)) <= allInUnits
    if (fits) low = cents
    else high = cents - 1n
  }
  return low * hundredth
}
