import type { Incoming } from '#world/venue-core/book.ts'
import { minimumSize } from './catalog.ts'
import { cashOf, lot, priceText, unit, unitsText } from './decimal.ts'
import { bookPrice } from './markets.ts'
import type { Leg, Order, OrderStatus } from './state.ts'
import { builderFee, openTrade, takerFee } from './trades.ts'
import { accountOf, addVersion, bookOf, marketOf, stateOf, type Venue } from './venue.ts'

/** What the chain says of what the order would spend, in units. */
export type Funds = { balance: string; allowance: string; spender: string }

export type OrderInput = Omit<
  Order,
  'seq' | 'matched' | 'status' | 'createdMs' | 'trades' | 'releaseMs' | 'versions'
>

export type OrderResult =
  | { error: string; status: number; isPostOnlyMode?: boolean }
  | {
      error: null
      id: string
      status: 'live' | 'matched' | 'delayed' | 'unmatched'
      making: number
      taking: number
      trades: string[]
    }

const refuse = (error: string, status = 400): OrderResult => ({ error, status })

/** What an order of the wallet commits, without those that have matched. */
export const openCommitment = (venue: Venue, wallet: string, side: Order['side'], token: string): bigint => {
  let sum = 0n
  for (const id of accountOf(venue, wallet).open) {
    const order = venue.state.orders.get(id)
    if (!order || order.side !== side) continue
    const left = order.size - order.matched
    if (side === 'BUY') sum += BigInt(cashOf(left, order.price))
    else if (order.signed.tokenId === token) sum += BigInt(left)
  }
  return sum
}

const isImmediate = ({ type }: Pick<Order, 'type'>): boolean => type === 'FOK' || type === 'FAK'

const crossesBook = (venue: Venue, order: OrderInput): boolean => {
  const buy = (order.side === 'BUY') === (order.outcome === 0)
  const best = bookOf(venue, order.conditionId).best({ buy: !buy })
  const price = bookPrice(order.outcome, order.price)
  return best !== undefined && (buy ? best <= price : best >= price)
}

const refuseFunds = (venue: Venue, order: OrderInput, funds: Funds): OrderResult | undefined => {
  const { wallet, side, signed } = order
  const account = accountOf(venue, wallet)
  const cash = order.spend ?? cashOf(order.size, order.price)
  const fee =
    takerFee(venue, order.conditionId, order.size, order.price) +
    builderFee(venue, order, { role: 'taker', cash })
  const amount = BigInt(side === 'BUY' ? cash + fee : order.size)
  const active = openCommitment(venue, wallet, side, signed.tokenId)
  const matched =
    side === 'BUY'
      ? account.matchedCash + account.phantomCash
      : (account.matchedShares.get(signed.tokenId) ?? 0n)
  const prefix = 'not enough balance / allowance: '
  if (BigInt(funds.balance) < active + matched + amount) {
    const parts = [`balance: ${funds.balance}`]
    if (active > 0n) parts.push(`sum of active orders: ${active}`)
    if (matched > 0n) parts.push(`sum of matched orders: ${matched}`)
    return refuse(`${prefix}the balance is not enough -> ${parts.join(', ')}, order amount: ${amount}`)
  }
  if (BigInt(funds.allowance) < amount)
    return refuse(
      `${prefix}the allowance is not enough -> spender: ${funds.spender}, allowance: ${funds.allowance}, order amount: ${amount}`,
    )
  return undefined
}

/** Each order adds up those that are open. */
const openMax = 2_000

const refuseForm = (venue: Venue, order: OrderInput): OrderResult | undefined => {
  const { id, price, size, type } = order
  const { tick } = stateOf(venue, order.conditionId)
  if (price < tick || price > 10_000 - tick)
    return refuse(
      `invalid price (${priceText(price)}), min: ${priceText(tick)} - max: ${priceText(10_000 - tick)}`,
    )
  if (price % tick !== 0)
    return refuse(
      `order ${id} is invalid. Price (${priceText(price)}) breaks minimum tick size rule: ${priceText(tick)}`,
    )
  if (venue.state.orders.has(id))
    return refuse(
      `order ${id} is invalid. Duplicated. Same order has already been placed, can't be placed again.`,
    )
  if (!isImmediate(order) && size < minimumSize * unit)
    return refuse(`order ${id} is invalid. Size (${unitsText(size)}) lower than the minimum: ${minimumSize}`)
  if (!isImmediate(order) && accountOf(venue, order.wallet).open.size >= openMax)
    return refuse(`order ${id} is invalid. More than ${openMax} open orders of one maker`)
  const isCrossing = crossesBook(venue, order)
  const cash = order.spend ?? cashOf(size, price)
  if (order.side === 'BUY' && isCrossing && cash < unit)
    return refuse(`invalid amount for a marketable BUY order ($${unitsText(cash)}), min size: $1`)
  if (order.postOnly && isCrossing) return refuse('invalid post-only order: order crosses book')
  if (type === 'GTD' && order.expiresMs <= venue.state.nowMs) return refuse('invalid expiration')
  return undefined
}

const refuseMode = (venue: Venue, order: OrderInput): OrderResult | undefined => {
  const { name } = venue.state.mode
  if (name === 'postOnly' && !order.postOnly)
    return {
      error: 'post-only mode: only post-only orders and cancels are allowed',
      status: 503,
      isPostOnlyMode: true,
    }
  if (name === 'cancelOnly')
    return refuse(
      'Trading is currently cancel-only. New orders are not accepted, but cancels are allowed.',
      503,
    )
  const account = accountOf(venue, order.wallet)
  if (account.banned) return refuse(`'${order.signed.maker}' address banned`)
  if (account.closedOnly && order.side === 'BUY')
    return refuse(`'${order.signed.maker}' address in closed only mode`)
  const market = stateOf(venue, order.conditionId)
  if (market.isClosed) return refuse(`the orderbook ${order.signed.tokenId} does not exist`)
  return undefined
}

/** The quantity that an order takes at once: for a market order to buy, what its dollars buy level by level. */
const immediateQuantity = (venue: Venue, order: Order): { shares: number; full: boolean } => {
  const { spend } = order
  const book = bookOf(venue, order.conditionId)
  const buy = (order.side === 'BUY') === (order.outcome === 0)
  const probe = { owner: order.wallet, buy, price: bookPrice(order.outcome, order.price) }
  let shares = 0
  let cash = 0
  let full = false
  book.reach(probe, (level) => {
    const price = bookPrice(order.outcome, level.price)
    const wanted =
      spend === null ? order.size - shares : Math.floor(((spend - cash) * 10_000) / price / lot) * lot
    const taken = Math.min(level.size, wanted)
    shares += taken
    cash += cashOf(taken, price)
    full = taken === wanted
    return !full
  })
  return { shares, full }
}

export const setStatus = (venue: Venue, order: Order, status: OrderStatus): void => {
  order.status = status
  addVersion(order.versions, { atMs: venue.state.nowMs, status, matched: order.matched })
  if (status === 'LIVE' || status === 'DELAYED') return
  accountOf(venue, order.wallet).open.delete(order.id)
  venue.state.timed.delete(order.id)
  // Its trades have the signature until they are settled.
  order.signed = { ...order.signed, signature: '0x' }
}

/** Gives a quote of the market maker its id when somebody meets it. */
export type Identify = (order: Order) => void

/** The chain settles so many at once; a taker that meets more gets several trades. */
const makersMax = 50

const settleMatches = (venue: Venue, taker: Order, identify: Identify): void => {
  const matches = venue.matches.splice(0).flatMap((match) => {
    const order = venue.bySeq.get(match.maker.id)
    return order ? [{ ...match, order }] : []
  })
  for (const { order, shares } of matches) {
    identify(order)
    order.matched += shares
  }
  const filled = matches.reduce((sum, { shares }) => sum + shares, 0)
  taker.matched += filled
  for (let at = 0; at < matches.length; at += makersMax)
    openTrade(venue, taker, { matches: matches.slice(at, at + makersMax), bucket: at / makersMax })
  for (const { order } of matches) {
    setStatus(venue, order, order.matched === order.size ? 'MATCHED' : 'LIVE')
    venue.events.push({ kind: 'order', order: { ...order }, change: 'UPDATE', atMs: venue.state.nowMs })
  }
  for (const seq of venue.selfCanceled.splice(0)) {
    const order = venue.bySeq.get(seq)
    if (!order) continue
    setStatus(venue, order, 'CANCELED')
    venue.events.push({ kind: 'order', order: { ...order }, change: 'CANCELLATION', atMs: venue.state.nowMs })
  }
}

const fokError = "order couldn't be fully filled. FOK orders are fully filled or killed."
const fakError =
  'no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.'

/** Matches an order that was accepted, and rests what is left of one that may rest. */
const execute = (venue: Venue, order: Order, identify: Identify): string | null => {
  const book = bookOf(venue, order.conditionId)
  let size = order.size - order.matched
  if (isImmediate(order)) {
    const { shares, full } = immediateQuantity(venue, order)
    if (order.type === 'FOK' && !full) return fokError
    if (shares === 0) return fakError
    size = shares
  }
  const incoming: Incoming = {
    id: order.seq,
    owner: order.wallet,
    buy: (order.side === 'BUY') === (order.outcome === 0),
    price: bookPrice(order.outcome, order.price),
    size,
    timeInForce: isImmediate(order) ? 'ioc' : 'gtc',
  }
  const { rests } = book.place(incoming)
  settleMatches(venue, order, identify)
  if (rests) {
    setStatus(venue, order, 'LIVE')
    accountOf(venue, order.wallet).open.add(order.id)
  } else setStatus(venue, order, 'MATCHED')
  venue.events.push({ kind: 'book', conditionId: order.conditionId, atMs: venue.state.nowMs })
  return null
}

const insert = (venue: Venue, input: OrderInput): Order => {
  const { state } = venue
  const order: Order = {
    ...input,
    seq: state.nextSeq,
    matched: 0,
    status: 'LIVE',
    createdMs: state.nowMs,
    trades: [],
    releaseMs: 0,
    versions: [],
  }
  state.nextSeq += 1
  state.orders.set(order.id, order)
  venue.bySeq.set(order.seq, order)
  if (order.expiresMs > 0) state.timed.add(order.id)
  return order
}

const remove = (venue: Venue, order: Order): void => {
  venue.state.orders.delete(order.id)
  venue.bySeq.delete(order.seq)
  venue.state.timed.delete(order.id)
}

const accepted = (order: Order, venue: Venue): OrderResult => {
  const legs = order.trades.flatMap((id) => venue.state.trades.get(id)?.taker ?? [])
  const sum = (value: (leg: Leg) => number) => legs.reduce((total, leg) => total + value(leg), 0)
  const [cash, shares] = [sum((leg) => leg.cash), sum((leg) => leg.shares)]
  const [making, taking] = order.side === 'BUY' ? [cash, shares] : [shares, cash]
  const status = order.status === 'DELAYED' ? 'delayed' : legs.length > 0 ? 'matched' : 'live'
  return { error: null, id: order.id, status, making, taking, trades: [...order.trades] }
}

export const placeOrder = (
  venue: Venue,
  input: OrderInput,
  { funds, identify }: { funds: Funds; identify: Identify },
): OrderResult => {
  const refusal = refuseMode(venue, input) ?? refuseForm(venue, input) ?? refuseFunds(venue, input, funds)
  if (refusal) return refusal
  const { secondsDelay } = marketOf(input.conditionId)
  const isDelayed = secondsDelay > 0 && !input.postOnly && crossesBook(venue, input)
  const order = insert(venue, input)
  if (isDelayed) {
    order.releaseMs = venue.state.nowMs + secondsDelay * 1_000
    venue.state.timed.add(order.id)
    setStatus(venue, order, 'DELAYED')
    accountOf(venue, order.wallet).open.add(order.id)
    venue.events.push({ kind: 'order', order: { ...order }, change: 'PLACEMENT', atMs: venue.state.nowMs })
    return accepted(order, venue)
  }
  const killed = execute(venue, order, identify)
  if (killed !== null) {
    remove(venue, order)
    return refuse(killed)
  }
  venue.events.push({ kind: 'order', order: { ...order }, change: 'PLACEMENT', atMs: venue.state.nowMs })
  return accepted(order, venue)
}

/** Matches the delayed orders whose time has come. */
export const releaseDelayed = (venue: Venue, order: Order, identify: Identify): void => {
  const killed = execute(venue, order, identify)
  if (killed !== null) setStatus(venue, order, 'CANCELED')
  else if (order.expiresMs === 0) venue.state.timed.delete(order.id)
  const change = killed === null ? 'UPDATE' : 'CANCELLATION'
  venue.events.push({ kind: 'order', order: { ...order }, change, atMs: venue.state.nowMs })
}
