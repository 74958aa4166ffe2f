import { notional, power } from './decimal.ts'
import type { Market } from './markets.ts'
import { closable } from './positions.ts'
import type { Account, Order } from './state.ts'
import {
  accountOf,
  bookOf,
  marketFor,
  recordStatus,
  removeOpenOrder,
  spotOf,
  stateOf,
  type Venue,
} from './venue.ts'

/** The hold of a resting spot order. */
export const spotHold = (order: Order, market: Market): { token: number; units: bigint } | undefined => {
  if (market.kind === 'perp') return undefined
  return order.buy
    ? { token: market.quote.index, units: notional(order.price, order.left, market.sizeDecimals) }
    : { token: market.base.index, units: BigInt(order.left) * power(8 - market.sizeDecimals) }
}

const releaseHold = (venue: Venue, order: Order): void => {
  const market = marketFor(order.asset)
  const share = spotHold(order, market)
  if (share && order.phase === 'resting')
    spotOf(accountOf(venue, order.user), share.token).hold -= share.units
}

export const armTrigger = (venue: Venue, order: Order): void => {
  order.phase = 'armed'
  stateOf(venue, order.asset).armed.add(order.oid)
}

const resolveChildren = (venue: Venue, parent: Order, status: string): void => {
  const filledSize = parent.size - parent.left
  const isActive = status === 'filled' || (status === 'marginCanceled' && filledSize > 0)
  for (const oid of parent.children) {
    const child = venue.state.orders.get(oid)
    if (child?.phase !== 'waiting') continue
    if (!isActive) endOrder(venue, child, 'canceled')
    else {
      if (status !== 'filled') {
        child.size = Math.min(child.size, filledSize)
        child.left = child.size
      }
      armTrigger(venue, child)
    }
  }
}

/** The only function that ends an order. */
export const endOrder = (venue: Venue, order: Order, status: string): void => {
  if (order.phase === 'done') return
  bookOf(venue, order.asset).cancel(order.oid)
  releaseHold(venue, order)
  order.phase = 'done'
  removeOpenOrder(accountOf(venue, order.user), order)
  stateOf(venue, order.asset).armed.delete(order.oid)
  recordStatus(venue, order, status)
  venue.events.push({ kind: 'book', asset: order.asset })
  resolveChildren(venue, order, status)
}

/** One order of the pair has traded, so the other is cancelled. */
export const cancelSibling = (venue: Venue, order: Order | undefined): void => {
  if (order?.sibling == null) return
  const sibling = venue.state.orders.get(order.sibling)
  if (sibling && sibling.phase !== 'done') endOrder(venue, sibling, 'siblingFilledCanceled')
}

/** Reduce-only orders end with their position. */
export const reduceOthers = (venue: Venue, market: Market, accounts: readonly Account[]): void => {
  for (const account of accounts) {
    if (account.isMarketMaker) continue
    for (const oid of account.reducing) {
      const order = venue.state.orders.get(oid) as Order
      if (order.asset !== market.asset || order.phase === 'waiting') continue
      if (closable(account, market.asset, { buy: order.buy }) === 0)
        endOrder(venue, order, 'reduceOnlyCanceled')
    }
  }
}

/** Resting reduce-only orders together never exceed the position: the oldest are cancelled. */
export const trimReduceOnly = (venue: Venue, account: Account, newest: Order): void => {
  const remaining = closable(account, newest.asset, { buy: newest.buy })
  const reduceOnlyOrders = [...account.reducing]
    .map((oid) => venue.state.orders.get(oid) as Order)
    .filter((order) => order.asset === newest.asset && order.buy === newest.buy && order.phase === 'resting')
  let sum = reduceOnlyOrders.reduce((total, order) => total + order.left, 0)
  for (const oldest of reduceOnlyOrders) {
    if (sum <= remaining || oldest.oid === newest.oid) break
    sum -= oldest.left
    endOrder(venue, oldest, 'reduceOnlyCanceled')
  }
}
