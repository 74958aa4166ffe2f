import type { TimeInForce } from '#world/venue-core/book.ts'
import { rejectRequest } from '#world/venue-core/request-error.ts'
import { checkOrder } from './checks.ts'
import { parseUnits, power, priceText, unitsText } from './decimal.ts'
import { type OrderError, orderError, postOnly } from './errors.ts'
import { type Market, marketOf, usdc } from './markets.ts'
import { armTrigger, endOrder, spotHold, trimReduceOnly } from './order-lifecycle.ts'
import { closable } from './positions.ts'
import type { Account, Fill, Order, Tif } from './state.ts'
import { fundSpot } from './unified.ts'
import { accountOf, addOpenOrder, bookOf, marketFor, recordStatus, spotOf, type Venue } from './venue.ts'

export type OrderWire = {
  a: number
  b: boolean
  p: string
  s: string
  r: boolean
  t: { limit: { tif: Tif } } | { trigger: { isMarket: boolean; triggerPx: string; tpsl: 'tp' | 'sl' } }
  c?: string
}

export type PlaceStatus =
  | { resting: { oid: number; cloid?: string } }
  | { filled: { totalSz: string; avgPx: string; oid: number; cloid?: string } }
  | { error: string }
  | 'waitingForFill'
  | 'waitingForTrigger'

/** Links of a new order. */
export type OrderLinks = {
  builder?: Order['builder']
  positionTpsl?: boolean
  parent?: Order
  sibling?: number | null
}

const price = (text: string): number => {
  const units = parseUnits(text, 8)
  if (units === undefined || units <= 0n || units > 9_000_000_000_000_000n)
    return rejectRequest('Order has invalid price.')
  return Number(units)
}

/** Parses the wire format. Text that is invalid in every market rejects the whole request, as upstream does. */
export const readOrder = (
  venue: Venue,
  account: Account,
  wire: OrderWire,
  links: OrderLinks,
): Order | OrderError => {
  const market = marketOf(wire.a) ?? rejectRequest(`Invalid asset: ${wire.a}`)
  const lots = parseUnits(wire.s, market.sizeDecimals)
  if (lots === undefined || lots < 0n || lots > 9_000_000_000_000_000n) return orderError('size', wire.a)
  const positionTpsl = links.positionTpsl ?? false
  if (lots === 0n && !positionTpsl) return orderError('zero', wire.a)
  const trigger = 'trigger' in wire.t ? wire.t.trigger : undefined
  const size = Number(lots)
  return {
    oid: 0,
    user: account.address,
    asset: wire.a,
    buy: wire.b,
    price: price(wire.p),
    size,
    left: size,
    tif: 'limit' in wire.t ? wire.t.limit.tif : null,
    reduceOnly: wire.r && market.kind === 'perp',
    trigger: trigger
      ? { price: price(trigger.triggerPx), market: trigger.isMarket, tpsl: trigger.tpsl }
      : null,
    positionTpsl,
    cloid: wire.c ?? null,
    placedMs: venue.state.nowMs,
    status: 'open',
    statusMs: venue.state.nowMs,
    phase: 'waiting',
    parent: links.parent?.oid ?? null,
    children: [],
    sibling: links.sibling ?? null,
    builder: links.builder ?? null,
    spent: 0n,
  }
}

/** Per account, and in total: an hour of load must fit into memory. */
const ordersMax = { account: 10_000, venue: 40_000 }

/** An ended order is dropped with the fills up to it. */
const pruneOrder = (venue: Venue, account: Account, order: Order): void => {
  const { oid, cloid } = order
  if (cloid && account.cloids.get(cloid) === oid) account.cloids.delete(cloid)
  venue.state.orders.delete(oid)
  const newer = account.fills.findIndex((fill) => fill.oid > oid)
  account.fills.splice(0, newer < 0 ? account.fills.length : newer)
}

const pruneOldestOfVenue = (venue: Venue): void => {
  if (venue.state.orders.size <= ordersMax.venue) return
  for (const order of venue.state.orders.values()) {
    if (order.phase !== 'done') continue
    const account = accountOf(venue, order.user)
    const at = account.orders.indexOf(order.oid)
    if (at >= 0) account.orders.splice(at, 1)
    pruneOrder(venue, account, order)
    return
  }
}

/** Drops the oldest ended orders; open ones are never dropped. */
const pruneOldestOfAccount = (venue: Venue, account: Account): void => {
  if (account.orders.length <= ordersMax.account) return
  const at = account.orders.findIndex((oid) => venue.state.orders.get(oid)?.phase === 'done')
  if (at < 0) return
  for (const oid of account.orders.splice(at, 1)) {
    const order = venue.state.orders.get(oid)
    if (order) pruneOrder(venue, account, order)
  }
}

/** Assigns the order id and adds the order to the account's history. */
export const registerOrder = (venue: Venue, account: Account, order: Order): void => {
  order.oid = venue.state.nextOid
  venue.state.nextOid += 1
  venue.state.orders.set(order.oid, order)
  account.orders.push(order.oid)
  pruneOldestOfAccount(venue, account)
  pruneOldestOfVenue(venue)
  if (order.cloid) account.cloids.set(order.cloid, order.oid)
}

export const rejectOrder = (venue: Venue, order: Order, { message, status }: OrderError): PlaceStatus => {
  order.phase = 'done'
  recordStatus(venue, order, status)
  return { error: message }
}

const timeInForceOf: Record<Tif, TimeInForce> = {
  Gtc: 'gtc',
  Ioc: 'ioc',
  Alo: 'alo',
  FrontendMarket: 'ioc',
  LiquidationMarket: 'ioc',
}

const oidAnd = ({ oid, cloid }: Order) => (cloid ? { oid, cloid } : { oid })

const averageText = (order: Order, market: Market): string => {
  const done = BigInt(order.size - order.left)
  return done === 0n ? '0.0' : unitsText((order.spent * power(market.sizeDecimals)) / done)
}

const bbo = (venue: Venue, asset: number): string => {
  const book = bookOf(venue, asset)
  const text = (at: number | undefined) => (at === undefined ? '-' : priceText(at).replace(/\.0$/, ''))
  return `${text(book.best({ buy: true }))}@${text(book.best({ buy: false }))}`
}

const holdFunds = (account: Account, order: Order, market: Market): void => {
  const share = spotHold(order, market)
  if (share) spotOf(account, share.token).hold += share.units
}

/** Matches against the book. The remainder rests, or ends. */
export const matchOrder = (
  venue: Venue,
  order: Order,
  liquidation: Fill['liquidation'] = null,
): PlaceStatus => {
  const market = marketFor(order.asset)
  const account = accountOf(venue, order.user)
  const tif = order.tif ?? 'Gtc'
  if (order.reduceOnly && market.kind === 'perp') {
    order.left = Math.min(order.left, closable(account, order.asset, { buy: order.buy }))
    order.size = order.left
  }
  const share = spotHold(order, market)
  if (share?.token === usdc.index) fundSpot(venue, account, share.units)
  const before = venue.takerContext
  venue.takerContext = { order, liquidation }
  const { oid, user, asset, buy, left: size } = order
  const placed = bookOf(venue, asset).place({
    id: oid,
    owner: user,
    buy,
    price: order.price,
    size,
    timeInForce: timeInForceOf[tif],
  })
  venue.takerContext = before
  venue.events.push({ kind: 'book', asset })
  if (placed.refused) return rejectOrder(venue, order, postOnly(bbo(venue, asset), asset))
  if (placed.rests) return restOrder(venue, account, order, market)
  if (placed.filled === 0) {
    const why = orderError(
      tif === 'FrontendMarket' || tif === 'LiquidationMarket' ? 'liquidity' : 'ioc',
      asset,
    )
    endOrder(venue, order, why.status)
    return { error: why.message }
  }
  endOrder(venue, order, order.left === 0 ? 'filled' : 'canceled')
  const totalSz = unitsText(BigInt(placed.filled), market.sizeDecimals)
  return { filled: { totalSz, avgPx: averageText(order, market), ...oidAnd(order) } }
}

const restOrder = (venue: Venue, account: Account, order: Order, market: Market): PlaceStatus => {
  order.phase = 'resting'
  addOpenOrder(account, order)
  holdFunds(account, order, market)
  recordStatus(venue, order, 'open')
  if (order.reduceOnly) trimReduceOnly(venue, account, order)
  return { resting: oidAnd(order) }
}

/** A trigger waits for its parent, or for the mark. */
export const awaitTrigger = (venue: Venue, account: Account, order: Order): PlaceStatus => {
  addOpenOrder(account, order)
  recordStatus(venue, order, 'open')
  if (order.parent !== null && order.phase === 'waiting') return 'waitingForFill'
  armTrigger(venue, order)
  return 'waitingForTrigger'
}

/** One order without a group. */
export const placeOrder = (
  venue: Venue,
  account: Account,
  wire: OrderWire,
  links: OrderLinks,
): { status: PlaceStatus; order?: Order } => {
  const order = readOrder(venue, account, wire, links)
  if ('message' in order) return { status: { error: order.message } }
  const error = checkOrder(venue, account, marketFor(order.asset), { order })
  registerOrder(venue, account, order)
  if (error) return { status: rejectOrder(venue, order, error), order }
  if (!order.trigger) return { status: matchOrder(venue, order), order }
  const status = awaitTrigger(venue, account, order)
  // Only the exits of a group are answered by a word; a single trigger is answered by its id.
  return { status: links.positionTpsl ? status : { resting: oidAnd(order) }, order }
}
