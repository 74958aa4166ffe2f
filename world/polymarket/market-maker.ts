import type { Book } from '#world/venue-core/book.ts'
import { nextNormal, nextRandom } from '#world/venue-core/random.ts'
import { addressOf } from './chain/accounts.ts'
import type { Order as ChainOrder } from './chain/chain-terms.ts'
import { exchangeOf, orderHash } from './chain/orders.ts'
import { cashOf, unit } from './decimal.ts'
import { bookPrice, type Market, markets, type OutcomeIndex } from './markets.ts'
import { placeOrder } from './place-order.ts'
import type { Order, SignedFields } from './state.ts'
import { plainPlan } from './trades.ts'
import { bookOf, marketOf, stateOf, type Venue } from './venue.ts'

/** The venue's own maker, so that immediate orders fill. It only buys, so it needs no shares: asks are bids on NO. */
export const makerWallet = addressOf('maker').toLowerCase()

const levels = 8
const firstLevelShares = 400
const zero32 = `0x${'0'.repeat(64)}` as const

export const toChainOrder = (signed: SignedFields): ChainOrder => ({
  salt: BigInt(signed.salt),
  maker: signed.maker,
  signer: signed.signer,
  tokenId: BigInt(signed.tokenId),
  makerAmount: BigInt(signed.makerAmount),
  takerAmount: BigInt(signed.takerAmount),
  side: signed.side === 'BUY' ? 0 : 1,
  signatureType: signed.signatureType,
  timestamp: BigInt(signed.timestamp),
  metadata: signed.metadata,
  builder: signed.builder,
})

/** Its orders get their hash when somebody meets them: most never do. */
export const identifyQuote =
  (venue: Venue) =>
  (order: Order): void => {
    if (!order.id.startsWith('quote-')) return
    const { orders } = venue.state
    const account = venue.state.accounts.get(order.wallet)
    orders.delete(order.id)
    account?.open.delete(order.id)
    order.id = orderHash(toChainOrder(order.signed), exchangeOf(marketOf(order.conditionId).chain))
    orders.set(order.id, order)
    account?.open.add(order.id)
  }

type Quote = { outcome: OutcomeIndex; price: number; shares: number }

/** A ladder on both sides: a spread of two ticks, growing sizes, wider steps further out. */
const quotesOf = ({ fair, tick }: { fair: number; tick: number }): Quote[] => {
  const quotes: Quote[] = []
  const center = Math.round(fair / tick) * tick
  for (const outcome of [0, 1] as const)
    for (let level = 0; level < levels; level += 1) {
      const away = tick * (1 + level + Math.floor((level * level) / 6))
      const price = bookPrice(outcome, center) - away
      if (price < tick || price > 10_000 - tick) break
      quotes.push({ outcome, price, shares: firstLevelShares * (1 + level) * unit })
    }
  return quotes
}

const removeQuotes = (venue: Venue, book: Book): void => {
  const { state } = venue
  for (const { id, owner } of book.orders()) {
    if (owner !== makerWallet) continue
    book.cancel(id)
    const order = venue.bySeq.get(id)
    if (!order) continue
    state.accounts.get(makerWallet)?.open.delete(order.id)
    order.status = 'CANCELED'
    if (order.matched > 0) continue
    state.orders.delete(order.id)
    venue.bySeq.delete(id)
  }
}

const place = (venue: Venue, market: Market, { outcome, price, shares }: Quote): void => {
  const { state } = venue
  const signed: SignedFields = {
    salt: String(state.genesisMs * 1_000 + state.nextSeq),
    maker: addressOf('maker'),
    signer: addressOf('maker'),
    tokenId: market.tokens[outcome],
    makerAmount: String(cashOf(shares, price)),
    takerAmount: String(shares),
    side: 'BUY',
    signatureType: 0,
    timestamp: String(state.nowMs),
    metadata: zero32,
    builder: zero32,
    // It is signed when it is settled.
    signature: '0x',
  }
  const input = {
    id: `quote-${state.nextSeq}`,
    conditionId: market.conditionId,
    outcome,
    side: 'BUY' as const,
    price,
    size: shares,
    type: 'GTC' as const,
    postOnly: true,
    expiresMs: 0,
    expiration: '0',
    owner: '',
    user: '',
    wallet: makerWallet,
    signed,
    spend: null,
    plan: plainPlan,
  }
  const funds = { balance: '1000000000000000', allowance: '1000000000000000', spender: '' }
  placeOrder(venue, input, { funds, identify: () => {} })
}

/** Cancels the old ladder and quotes around the fair price. Quotes that would meet a resting order are left out. */
export const requote = (venue: Venue, market: Market): void => {
  const state = stateOf(venue, market.conditionId)
  removeQuotes(venue, bookOf(venue, market.conditionId))
  const isQuoting = venue.state.mode.name === 'open' || venue.state.mode.name === 'postOnly'
  if (!state.isClosed && isQuoting) for (const quote of quotesOf(state)) place(venue, market, quote)
  const { events } = venue
  // The orders of the maker are no news; its book is.
  venue.events = events.filter((event) => event.kind !== 'order' || event.order.user !== '')
  venue.events.push({ kind: 'book', conditionId: market.conditionId, atMs: venue.state.nowMs })
}

const walkMs = 1_000

/** Moves each fair price by a tick now and then, and quotes anew. Pinned markets keep the price of the test. */
export const walkPrices = (venue: Venue): void => {
  const { state } = venue
  if (state.nowMs < state.next.walkMs) return
  state.next.walkMs = state.nowMs + walkMs
  for (const market of markets) {
    const current = stateOf(venue, market.conditionId)
    if (current.isClosed) continue
    const moves = !current.isPinned && nextRandom(state.random) < 0.05
    if (moves) {
      const step = Math.sign(nextNormal(state.random)) * current.tick
      current.fair = Math.max(current.tick * 3, Math.min(10_000 - current.tick * 3, current.fair + step))
    }
    if (moves || isThin(venue, market)) requote(venue, market)
  }
}

/** The best quotes were taken. */
const isThin = (venue: Venue, market: Market): boolean => {
  const book = bookOf(venue, market.conditionId)
  const { fair, tick } = stateOf(venue, market.conditionId)
  const center = Math.round(fair / tick) * tick
  const bid = book.best({ buy: true })
  const ask = book.best({ buy: false })
  return bid === undefined || ask === undefined || bid < center - tick || ask > center + tick
}
