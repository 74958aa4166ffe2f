import { firesAbove, lacksBalance, lacksMargin } from './checks.ts'
import { finish } from './lifecycle.ts'
import { execute } from './placing.ts'
import { closable } from './positions.ts'
import { refusal } from './refusals.ts'
import type { Order } from './state.ts'
import { accountOf, marketFor, noteStatus, stateOf, unlistOpen, type Venue } from './venue.ts'

const fires = (order: Order, mark: number): boolean => {
  const at = order.trigger?.price ?? 0
  return firesAbove(order) ? mark >= at : mark <= at
}

const disarm = (venue: Venue, order: Order): void => {
  stateOf(venue, order.asset).armed.delete(order.oid)
  unlistOpen(accountOf(venue, order.user), order)
  order.phase = 'waiting'
}

/** What has become of the account since decides whether the order may still go. */
const obstacle = (venue: Venue, order: Order): string | undefined => {
  const account = accountOf(venue, order.user)
  const market = marketFor(order.asset)
  if (order.reduceOnly) return order.left === 0 ? 'reduceOnlyCanceled' : undefined
  if (market.kind === 'spot')
    return lacksBalance(venue, account, market, order) ? refusal('spot', order.asset).status : undefined
  return lacksMargin(venue, account, market, order) ? refusal('margin', order.asset).status : undefined
}

const fire = (venue: Venue, order: Order): void => {
  noteStatus(venue, order, 'triggered')
  disarm(venue, order)
  if (order.reduceOnly) {
    const room = closable(accountOf(venue, order.user), order.asset, order.buy)
    order.left = order.positionTpsl ? room : Math.min(order.left, room)
    order.size = order.left
  }
  const why = obstacle(venue, order)
  if (why) finish(venue, order, why)
  else {
    // Its price is the slippage bound that came with it.
    order.tif = order.trigger?.market ? 'FrontendMarket' : 'Gtc'
    execute(venue, order)
  }
}

/** Sets off everything that the mark has reached, oldest first. One may close what another was to protect. */
export const fireTriggers = (venue: Venue, asset: number): void => {
  const state = stateOf(venue, asset)
  for (const oid of [...state.armed].sort((a, b) => a - b)) {
    const order = venue.state.orders.get(oid)
    if (order?.phase === 'armed' && fires(order, state.mark)) fire(venue, order)
  }
}
