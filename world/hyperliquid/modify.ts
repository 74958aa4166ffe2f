import { rejectRequest } from '#world/venue-core/request-error.ts'
import { neverPlaced } from './errors.ts'
import { endOrder } from './order-lifecycle.ts'
import { type OrderWire, type PlaceStatus, placeOrder } from './place-order.ts'
import type { Account, Order } from './state.ts'
import type { Venue } from './venue.ts'

type CancelStatus = 'success' | { error: string }

const openOrder = (venue: Venue, account: Account, oid: number | undefined): Order | undefined => {
  const order = oid === undefined ? undefined : venue.state.orders.get(oid)
  return order?.user === account.address && account.open.has(order.oid) ? order : undefined
}

const cancelOne = (venue: Venue, account: Account, asset: number, oid: number | undefined): CancelStatus => {
  const order = openOrder(venue, account, oid)
  // A wrong asset gives the same error as a wrong order, as upstream.
  if (!order || order.asset !== asset) return { error: neverPlaced(asset) }
  endOrder(venue, order, 'canceled')
  return 'success'
}

export const cancelOrders = (venue: Venue, account: Account, cancels: readonly { a: number; o: number }[]) =>
  cancels.map(({ a, o }) => cancelOne(venue, account, a, o))

export const cancelByCloid = (
  venue: Venue,
  account: Account,
  cancels: readonly { asset: number; cloid: string }[],
) => cancels.map(({ asset, cloid }) => cancelOne(venue, account, asset, account.cloids.get(cloid)))

export type ModifyWire = { oid: number | string; order: OrderWire }

const notModifiable = 'Cannot modify canceled or filled order'

/** Cancels and places again. The bracket of the old order moves to the new one. */
export const modifyOne = (
  venue: Venue,
  account: Account,
  wire: ModifyWire,
  { always }: { always: boolean },
): PlaceStatus => {
  const oid = typeof wire.oid === 'string' ? account.cloids.get(wire.oid) : wire.oid
  const previous = openOrder(venue, account, oid)
  if (!previous && !always) return { error: notModifiable }
  const parsed = previous ? { positionTpsl: previous.positionTpsl, builder: previous.builder } : {}
  const children = previous?.children ?? []
  if (previous) {
    previous.children = []
    endOrder(venue, previous, 'canceled')
  }
  const { status, order } = placeOrder(venue, account, wire.order, parsed)
  const isOpen = order !== undefined && !(typeof status === 'object' && 'error' in status)
  moveChildren(venue, children, isOpen ? order : undefined)
  if (isOpen && previous) relinkSibling(venue, previous, order)
  return status
}

const moveChildren = (venue: Venue, oids: readonly number[], parent: Order | undefined): void => {
  for (const oid of oids) {
    const child = venue.state.orders.get(oid)
    if (child?.phase !== 'waiting') continue
    if (!parent || parent.phase === 'done') endOrder(venue, child, 'canceled')
    else {
      child.parent = parent.oid
      parent.children.push(oid)
    }
  }
}

/** The sibling of the order must reference the new one. */
const relinkSibling = (venue: Venue, previous: Order, replacement: Order): void => {
  if (previous.sibling === null) return
  const sibling = venue.state.orders.get(previous.sibling)
  if (!sibling || sibling.phase === 'done') return
  replacement.sibling = sibling.oid
  sibling.sibling = replacement.oid
}

export const modifyOrder = (
  venue: Venue,
  account: Account,
  wire: ModifyWire,
  { always }: { always: boolean },
): void => {
  const status = modifyOne(venue, account, wire, { always })
  if (typeof status !== 'object' || !('error' in status)) return
  rejectRequest(
    status.error === notModifiable ? notModifiable : `Error placing new order during modify: ${status.error}`,
  )
}

export const cancelAll = (
  venue: Venue,
  account: Account,
  status: string,
  only: (order: Order) => boolean = () => true,
) => {
  for (const oid of [...account.open]) {
    const order = venue.state.orders.get(oid)
    if (order && order.phase !== 'done' && only(order)) endOrder(venue, order, status)
  }
}
