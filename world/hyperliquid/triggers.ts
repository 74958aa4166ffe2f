import { lacksBalance, lacksMargin, triggersAbove } from './checks.ts'
import { orderError } from './errors.ts'
import { endOrder } from './order-lifecycle.ts'
import { matchOrder } from './place-order.ts'
import { closable } from './positions.ts'
import type { Order } from './state.ts'
import { accountOf, marketFor, recordStatus, removeOpenOrder, stateOf, type Venue } from './venue.ts'

const isReached = (order: Order, mark: number): boolean => {
  const at = order.trigger?.price ?? 0
  return triggersAbove(order) ? mark >= at : mark <= at
}

const disarmTrigger = (venue: Venue, order: Order): void => {
  stateOf(venue, order.asset).armed.delete(order.oid)
  removeOpenOrder(accountOf(venue, order.user), order)
  order.phase = 'waiting'
}

/** The current state of the account decides whether the order may still be placed. */
const rejectionReason = (venue: Venue, order: Order): string | undefined => {
  const account = accountOf(venue, order.user)
  const market = marketFor(order.asset)
  if (order.reduceOnly) return order.left === 0 ? 'reduceOnlyCanceled' : undefined
  if (market.kind === 'spot')
    return lacksBalance(venue, account, market, order) ? orderError('spot', order.asset).status : undefined
  return lacksMargin(venue, account, market, order) ? orderError('margin', order.asset).status : undefined
}

const runTrigger = (venue: Venue, order: Order): void => {
  recordStatus(venue, order, 'triggered')
  disarmTrigger(venue, order)
  if (order.reduceOnly) {
    const closableLots = closable(accountOf(venue, order.user), order.asset, { buy: order.buy })
    order.left = order.positionTpsl ? closableLots : Math.min(order.left, closableLots)
    order.size = order.left
  }
  const why = rejectionReason(venue, order)
  if (why) endOrder(venue, order, why)
  else {
    // Its price is the slippage bound that came with it.
    order.tif = order.trigger?.market ? 'FrontendMarket' : 'Gtc'
    matchOrder(venue, order)
  }
}

/** Fires every trigger that the mark has reached, oldest first. One may close what another was to protect. */
export const fireTriggers = (venue: Venue, asset: number): void => {
  const state = stateOf(venue, asset)
  for (const oid of [...state.armed].sort((a, b) => a - b)) {
    const order = venue.state.orders.get(oid)
    if (order?.phase === 'armed' && isReached(order, state.mark)) runTrigger(venue, order)
  }
}
