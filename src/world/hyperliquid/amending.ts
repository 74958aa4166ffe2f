import { finish } from './lifecycle.ts'
import { type OrderWire, place, type Status } from './placing.ts'
import { neverPlaced, refuseAll } from './refusals.ts'
import type { Account, Order } from './state.ts'
import type { Venue } from './venue.ts'

type Cancelled = 'success' | { error: string }

const openOrder = (venue: Venue, account: Account, oid: number | undefined): Order | undefined => {
  const order = oid === undefined ? undefined : venue.state.orders.get(oid)
  return order?.user === account.address && account.open.has(order.oid) ? order : undefined
}

const cancelOne = (venue: Venue, account: Account, asset: number, oid: number | undefined): Cancelled => {
  const order = openOrder(venue, account, oid)
  // A wrong asset looks just like a wrong order, as upstream.
  if (!order || order.asset !== asset) return { error: neverPlaced(asset) }
  finish(venue, order, 'canceled')
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

const gone = 'Cannot modify canceled or filled order'

/** Cancels and places anew. The bracket of the old order moves to the new one. */
export const modifyOne = (venue: Venue, account: Account, wire: ModifyWire, always: boolean): Status => {
  const oid = typeof wire.oid === 'string' ? account.cloids.get(wire.oid) : wire.oid
  const old = openOrder(venue, account, oid)
  if (!old && !always) return { error: gone }
  const bound = old ? { positionTpsl: old.positionTpsl, builder: old.builder } : {}
  const children = old?.children ?? []
  if (old) {
    old.children = []
    finish(venue, old, 'canceled')
  }
  const { status, order } = place(venue, account, wire.order, bound)
  const lives = order !== undefined && !(typeof status === 'object' && 'error' in status)
  adopt(venue, children, lives ? order : undefined)
  if (lives && old) tie(venue, old, order)
  return status
}

const adopt = (venue: Venue, oids: readonly number[], parent: Order | undefined): void => {
  for (const oid of oids) {
    const child = venue.state.orders.get(oid)
    if (child?.phase !== 'waiting') continue
    if (!parent || parent.phase === 'done') finish(venue, child, 'canceled')
    else {
      child.parent = parent.oid
      parent.children.push(oid)
    }
  }
}

/** The other half of a pair must find the new order. */
const tie = (venue: Venue, old: Order, fresh: Order): void => {
  if (old.sibling === null) return
  const sibling = venue.state.orders.get(old.sibling)
  if (!sibling || sibling.phase === 'done') return
  fresh.sibling = sibling.oid
  sibling.sibling = fresh.oid
}

export const modifyOrder = (venue: Venue, account: Account, wire: ModifyWire, always: boolean): void => {
  const status = modifyOne(venue, account, wire, always)
  if (typeof status !== 'object' || !('error' in status)) return
  refuseAll(status.error === gone ? gone : `Error placing new order during modify: ${status.error}`)
}

export const cancelAll = (
  venue: Venue,
  account: Account,
  status: string,
  only: (order: Order) => boolean = () => true,
) => {
  for (const oid of [...account.open]) {
    const order = venue.state.orders.get(oid)
    if (order && order.phase !== 'done' && only(order)) finish(venue, order, status)
  }
}
