import { exactlyOneOf, Fault, invalid, notFound } from '#kernel/contract/fault.ts'
import { fromUnits, mulDiv, toUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { OrderRequest, TimeInForce } from '#kernel/money/prediction-venue.ts'
import type { PredictionMarket } from '#kernel/money/prediction-views.ts'
import type { PredmktInput } from './contract.ts'
import type { PredmktDeps } from './deps.ts'
import { findQuote } from './store/quote-store.ts'

/** What a request for an order means: its outcome, its amounts and its bound, checked against the market. */

export const dollar = 1_000_000n
export type OrderInput = PredmktInput<'order'>
export type OrderTerms = {
  outcomeId: string
  side: 'buy' | 'sell'
  timeInForce: TimeInForce
  postOnly: boolean
  expiresAt: Date | null
  /** Micro-dollars for one share: the limit, or the worst price of a market order; null leaves it to the book. */
  priceMicros: bigint | null
  /** What a purchase without a price of its own may pay for a share at most; its order follows the book within it. */
  boundMicros: bigint | null
  /** Shares of a limit order or of a sale; null for a purchase by its cost. */
  sizeUnits: bigint | null
  /** What a purchase at market price may cost with its fee. */
  allInUnits: bigint | null
  maxFeeUnits: bigint | null
}

export function outcomeIdOf({ outcome_id, token_id }: { outcome_id?: string; token_id?: string }): string {
  if (outcome_id !== undefined && token_id !== undefined && outcome_id !== token_id)
    throw exactlyOneOf('outcome_id', 'token_id', { hasBoth: true })
  const id = outcome_id ?? token_id
  if (id === undefined) throw invalid('outcome_id', 'missing', 'Field required')
  return id
}

/** Returns the market of an outcome, of the protocol that the id itself names. */
export async function marketOf(
  { venue }: { venue: Pick<PredmktDeps['venue'], 'market' | 'protocolOf'> },
  outcomeId: string,
): Promise<PredictionMarket> {
  const market = await venue.market({ outcomeId })
  if (!market) throw notFound('outcome', 'predmkt_markets')
  if (venue.protocolOf(outcomeId) !== market.protocol)
    throw new Fault(
      'unavailable',
      'The venue names another protocol for the market than the id of its outcome has; nothing was signed',
      { extras: { reason: 'upstream_inconsistent' } },
    )
  return market
}

const units = (text: string | undefined): bigint | null =>
  text === undefined ? null : toUnits(text, usdcDecimals)
const required = (field: string, why: string): Fault => invalid(field, 'missing', why)
const forbidden = (field: string, why: string): Fault => invalid(field, 'extra_forbidden', why)

export async function orderTerms(
  deps: Pick<PredmktDeps, 'db' | 'clock'>,
  input: OrderInput,
  userId: string,
): Promise<OrderTerms> {
  const timeInForce = (input.order_type ?? 'GTC').toLowerCase() as TimeInForce
  const isLimit = timeInForce === 'gtc' || timeInForce === 'gtd'
  const side = input.side === 'BUY' ? ('buy' as const) : ('sell' as const)
  const outcomeId = outcomeIdOf(input)
  const amounts = isLimit
    ? limitAmounts(input)
    : await marketAmounts(deps, { input, side, outcomeId, userId })
  if (side === 'sell') refuseProtection(input)
  return {
    outcomeId,
    side,
    timeInForce,
    postOnly: postOnlyOf(input, { isLimit }),
    expiresAt: expiryOf(input, timeInForce, deps.clock.now()),
    maxFeeUnits: units(input.max_fee_usd),
    boundMicros: null,
    ...amounts,
  }
}

type Amounts = Pick<OrderTerms, 'priceMicros' | 'sizeUnits' | 'allInUnits'>

function limitAmounts(input: OrderInput): Amounts {
  const { price, size } = input
  for (const field of ['amount_usd', 'amount_shares', 'worst_price', 'quote_id'] as const)
    if (input[field] !== undefined)
      throw forbidden(
        field,
        `\`${field}\` belongs to FOK and FAK orders; GTC and GTD take \`price\` and \`size\``,
      )
  if (price === undefined) throw required('price', 'GTC and GTD orders need a limit price')
  if (size === undefined) throw required('size', 'GTC and GTD orders need a size in shares')
  return { priceMicros: units(price), sizeUnits: units(size), allInUnits: null }
}

type MarketRequest = { input: OrderInput; side: 'buy' | 'sell'; outcomeId: string; userId: string }

async function marketAmounts(
  deps: Pick<PredmktDeps, 'db' | 'clock'>,
  { input, side, outcomeId, userId }: MarketRequest,
): Promise<Amounts> {
  const { amount_usd: cash, amount_shares: shares, price, worst_price: worst } = input
  if (input.size !== undefined) throw forbidden('size', '`size` belongs to GTC and GTD orders')
  if (price !== undefined && worst !== undefined && price !== worst)
    throw exactlyOneOf('worst_price', 'price', { hasBoth: true })
  const bound = units(worst ?? price)
  const quote =
    input.quote_id === undefined ? undefined : await quoteOf(deps, { ...input, userId, outcomeId, side })
  const priceMicros = bound ?? quote?.worstPriceMicros ?? null
  if (side === 'buy') {
    if (shares !== undefined)
      throw forbidden('amount_shares', 'A purchase at market price takes `amount_usd`')
    const allInUnits = units(cash) ?? quote?.allInUnits ?? null
    if (allInUnits === null) throw required('amount_usd', 'A purchase at market price needs an amount')
    return { priceMicros, sizeUnits: null, allInUnits }
  }
  if (cash !== undefined) throw forbidden('amount_usd', 'A sale at market price takes `amount_shares`')
  const sizeUnits = units(shares) ?? quote?.sizeUnits ?? null
  if (sizeUnits === null) throw required('amount_shares', 'A sale at market price needs shares')
  return { priceMicros, sizeUnits, allInUnits: null }
}

async function quoteOf(
  { db, clock }: Pick<PredmktDeps, 'db' | 'clock'>,
  { quote_id: id, userId, outcomeId, side }: { quote_id?: string } & Omit<MarketRequest, 'input'>,
) {
  const quote = await findQuote(db, userId, id!)
  if (!quote) throw notFound('quote', 'predmkt_quote')
  if (quote.outcomeId !== outcomeId || quote.side !== side)
    throw invalid('quote_id', 'mismatch', 'The quote is for another outcome or side')
  if (quote.expiresAt <= clock.now())
    throw new Fault('quote_expired', 'The quote has expired: `predmkt_quote` makes a new one')
  return quote
}

function refuseProtection(input: OrderInput): void {
  for (const field of ['take_profit_price', 'take_profit_percentage', 'stop_loss_price'] as const)
    if (input[field] !== undefined) throw forbidden(field, 'Only a purchase has a take-profit or a stop-loss')
}

function postOnlyOf({ post_only: postOnly = false }: OrderInput, { isLimit }: { isLimit: boolean }): boolean {
  if (postOnly && !isLimit) throw forbidden('post_only', 'Only GTC and GTD orders can be post-only')
  return postOnly
}

const gtdMinMs = 180_000

function expiryOf(input: OrderInput, timeInForce: TimeInForce, now: Date): Date | null {
  const { expiration, expiration_seconds: seconds } = input
  if (timeInForce !== 'gtd') {
    if (expiration !== undefined) throw forbidden('expiration', 'Only a GTD order expires')
    if (seconds !== undefined) throw forbidden('expiration_seconds', 'Only a GTD order expires')
    return null
  }
  if ((expiration === undefined) === (seconds === undefined))
    throw exactlyOneOf('expiration_seconds', 'expiration', { hasBoth: expiration !== undefined })
  const at = new Date(expiration === undefined ? now.getTime() + seconds! * 1_000 : expiration * 1_000)
  if (at.getTime() < now.getTime() + gtdMinMs)
    throw invalid('expiration', 'greater_than', 'A GTD order rests for at least 180 seconds')
  return at
}

/** The venue counts the shares of a sale in hundredths. */
const leastSaleUnits = 10_000n

/** Refuses what the market's grid cannot hold, before a task exists. */
export function assertOnGrid(terms: OrderTerms, market: PredictionMarket): void {
  const { tickMicros, minSizeUnits } = market
  const { priceMicros, sizeUnits, timeInForce } = terms
  const isLimit = timeInForce === 'gtc' || timeInForce === 'gtd'
  const field = isLimit ? 'price' : 'worst_price'
  // The catalogue named none that divides a dollar. A sale without a price goes by the book.
  if (tickMicros === 0n && (priceMicros !== null || terms.side === 'buy'))
    throw new Fault(
      'upstream_changed',
      'The venue lists this market without a readable tick; nothing was signed',
    )
  if (priceMicros !== null) {
    const tick = fromUnits(tickMicros, usdcDecimals)
    if (priceMicros < tickMicros || priceMicros > dollar - tickMicros)
      throw invalid(field, 'out_of_range', `The price has to be between ${tick} and 1 - ${tick}`, { tick })
    if (isLimit && priceMicros % tickMicros !== 0n)
      throw invalid(field, 'tick_size', `The price has to be a multiple of ${tick}, the tick of the market`, {
        tick,
      })
  }
  const leastUnits = isLimit ? minSizeUnits : leastSaleUnits
  if (sizeUnits !== null && sizeUnits < leastUnits) {
    const minimum = fromUnits(leastUnits, usdcDecimals)
    const sentence = `The market takes orders of at least ${minimum} shares`
    throw invalid(isLimit ? 'size' : 'amount_shares', 'below_minimum', sentence, { minimum, unit: 'shares' })
  }
}

export const cashFor = (priceMicros: bigint, sizeUnits: bigint, rounding: 'up' | 'down'): bigint =>
  mulDiv(priceMicros, sizeUnits, dollar, rounding)

/** Returns the terms of the order as the venue takes them; a market order follows the book of this moment. */
export function toVenueTerms(
  terms: OrderTerms,
  book: { orderCashUnits: bigint; worstPriceMicros: bigint } | undefined,
): OrderRequest['terms'] {
  const { side, timeInForce, priceMicros, sizeUnits } = terms
  if (timeInForce === 'gtc' || timeInForce === 'gtd')
    return { type: 'limit', side, priceMicros: priceMicros!, sizeUnits: sizeUnits! }
  if (!book) throw new Error('a market order follows a book')
  const worstPriceMicros = priceMicros ?? book.worstPriceMicros
  return side === 'buy'
    ? { type: 'market', side, cashUnits: book.orderCashUnits, worstPriceMicros }
    : { type: 'market', side, sizeUnits: sizeUnits!, worstPriceMicros }
}
