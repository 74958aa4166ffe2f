import { notional, power } from './decimal.ts'
import type { Market } from './markets.ts'
import { closable } from './positions.ts'
import type { Account, Order } from './state.ts'
import { accountOf, bookOf, marketFor, noteStatus, spotOf, stateOf, unlistOpen, type Venue } from './venue.ts'

/** What a spot order keeps aside while it rests. */
export const held = (order: Order, market: Market): { token: number; units: bigint } | undefined => {
  if (market.kind === 'perp') return undefined
  return order.buy
    ? { token: market.quote.index, units: notional(order.price, order.left, market.sizeDecimals) }
    : { token: market.base.index, units: BigInt(order.left) * power(8 - market.sizeDecimals) }
}

const release = (venue: Venue, order: Order): void => {
  const market = marketFor(order.asset)
  const share = held(order, market)
  if (share && order.phase === 'resting')
    spotOf(accountOf(venue, order.user), share.token).hold -= share.units
}

export const arm = (venue: Venue, order: Order): void => {
  order.phase = 'armed'
  stateOf(venue, order.asset).armed.add(order.oid)
}

const settleChildren = (venue: Venue, parent: Order, status: string): void => {
  const filledSize = parent.size - parent.left
  const lives = status === 'filled' || (status === 'marginCanceled' && filledSize > 0)
  for (const oid of parent.children) {
    const child = venue.state.orders.get(oid)
    if (child?.phase !== 'waiting') continue
    if (!lives) finish(venue, child, 'canceled')
    else {
      if (status !== 'filled') {
        child.size = Math.min(child.size, filledSize)
        child.left = child.size
      }
      arm(venue, child)
    }
  }
}

/** The one way an order ends. */
export const finish = (venue: Venue, order: Order, status: string): void => {
  if (order.phase === 'done') return
  bookOf(venue, order.asset).cancel(order.oid)
  release(venue, order)
  order.phase = 'done'
  unlistOpen(accountOf(venue, order.user), order)
  stateOf(venue, order.asset).armed.delete(order.oid)
  noteStatus(venue, order, status)
  venue.happenings.push({ kind: 'book', asset: order.asset })
  settleChildren(venue, order, status)
}

/** One of the pair has traded, so the other has no purpose. */
export const cancelSibling = (venue: Venue, order: Order | undefined): void => {
  if (order?.sibling == null) return
  const sibling = venue.state.orders.get(order.sibling)
  if (sibling && sibling.phase !== 'done') finish(venue, sibling, 'siblingFilledCanceled')
}

/** Reduce-only orders die with the position they were to reduce. */
export const reduceOthers = (venue: Venue, market: Market, accounts: readonly Account[]): void => {
  for (const account of accounts) {
    if (account.house) continue
    for (const oid of account.reducing) {
      const order = venue.state.orders.get(oid) as Order
      if (order.asset !== market.asset || order.phase === 'waiting') continue
      if (closable(account, market.asset, order.buy) === 0) finish(venue, order, 'reduceOnlyCanceled')
    }
  }
}

/** Resting reduce-only orders together never exceed the position: the oldest give way. */
export const trimReduceOnly = (venue: Venue, account: Account, newest: Order): void => {
  const room = closable(account, newest.asset, newest.buy)
  const rivals = [...account.reducing]
    .map((oid) => venue.state.orders.get(oid) as Order)
    .filter((order) => order.asset === newest.asset && order.buy === newest.buy && order.phase === 'resting')
  let sum = rivals.reduce((total, order) => total + order.left, 0)
  for (const rival of rivals) {
    if (sum <= room || rival.oid === newest.oid) break
    sum -= rival.left
    finish(venue, rival, 'reduceOnlyCanceled')
  }
}
