import { rejectRequest } from '#world/venue-core/request-error.ts'
import { checkOrder } from './checks.ts'
import { marketOf } from './markets.ts'
import {
  awaitTrigger,
  matchOrder,
  type OrderLinks,
  type OrderWire,
  type PlaceStatus,
  placeOrder,
  readOrder,
  registerOrder,
  rejectOrder,
} from './place-order.ts'
import type { Account, Order } from './state.ts'
import { marketFor, type Venue } from './venue.ts'

export type Grouping = 'na' | 'normalTpsl' | 'positionTpsl' | { p: number }

const isTrigger = ({ t }: OrderWire): boolean => 'trigger' in t

/** Errors that the request alone shows: none of its orders is placed then. */
export const checkGroup = (venue: Venue, wires: readonly OrderWire[], grouping: Grouping): void => {
  if (wires.length === 0) rejectRequest('Batch of orders is empty.')
  const triggers = wires.filter(isTrigger)
  for (const { a } of triggers)
    if (marketOf(a)?.kind === 'spot' && !venue.state.settings.spotTriggers)
      rejectRequest('Placing trigger orders is not enabled on spot trading yet.')
  if (typeof grouping === 'object' || grouping === 'na') return
  if (triggers.some(({ r }) => !r)) rejectRequest('TP/SL orders must be reduce only.')
  const parents = grouping === 'normalTpsl' ? 1 : 0
  const [first] = wires
  const expected = triggers.length === wires.length - parents && triggers.length > 0 && triggers.length <= 2
  if (!expected || (parents === 1 && first && isTrigger(first)))
    rejectRequest('Unexpected number of trigger orders')
  if (parents === 1 && triggers.some(({ a, b }) => a !== first?.a || b === first.b))
    rejectRequest('TP/SL orders must be on the opposite side of the same asset.')
}

const linkPair = (orders: readonly Order[]): void => {
  const [one, two] = orders
  if (!one || !two) return
  one.sibling = two.oid
  two.sibling = one.oid
}

/** The children exist before the parent reaches the book, so that its fill finds them. */
const createChildren = (venue: Venue, account: Account, parent: Order, wires: readonly OrderWire[]) => {
  const created: { order?: Order; status: PlaceStatus }[] = wires.map((wire) => {
    const order = readOrder(venue, account, wire, { parent })
    if ('message' in order) return { status: { error: order.message } }
    const error = checkOrder(venue, account, marketFor(order.asset), { order, parent })
    registerOrder(venue, account, order)
    if (error) return { status: rejectOrder(venue, order, error) }
    parent.children.push(order.oid)
    return { order, status: awaitTrigger(venue, account, order) }
  })
  linkPair(created.flatMap(({ order }) => (order ? [order] : [])))
  return created
}

const placeBracket = (
  venue: Venue,
  account: Account,
  wires: readonly OrderWire[],
  links: OrderLinks,
): PlaceStatus[] => {
  const [first, ...rest] = wires as [OrderWire, ...OrderWire[]]
  const parent = readOrder(venue, account, first, links)
  if ('message' in parent) return wires.map(() => ({ error: parent.message }))
  const error = checkOrder(venue, account, marketFor(parent.asset), { order: parent })
  registerOrder(venue, account, parent)
  if (error) {
    rejectOrder(venue, parent, error)
    return wires.map(() => ({ error: error.message }))
  }
  const created = createChildren(venue, account, parent, rest)
  const status = matchOrder(venue, parent)
  return [
    status,
    ...created.map(({ order, status: before }): PlaceStatus => {
      if (!order) return before
      if (order.phase === 'waiting') return 'waitingForFill'
      if (order.phase === 'armed') return 'waitingForTrigger'
      const why =
        typeof status === 'object' && 'error' in status ? status.error : 'Parent order was not fully filled.'
      return { error: why }
    }),
  ]
}

const placePositionPair = (
  venue: Venue,
  account: Account,
  wires: readonly OrderWire[],
  links: OrderLinks,
): PlaceStatus[] => {
  const created = wires.map((wire) => placeOrder(venue, account, wire, { ...links, positionTpsl: true }))
  linkPair(created.flatMap(({ order }) => (order && order.phase === 'armed' ? [order] : [])))
  return created.map(({ status }) => status)
}

export const placeGroup = (
  venue: Venue,
  account: Account,
  wires: readonly OrderWire[],
  { grouping, links }: { grouping: Grouping; links: OrderLinks },
): PlaceStatus[] => {
  checkGroup(venue, wires, grouping)
  if (grouping === 'normalTpsl') return placeBracket(venue, account, wires, links)
  if (grouping === 'positionTpsl') return placePositionPair(venue, account, wires, links)
  return wires.map((wire) => placeOrder(venue, account, wire, links).status)
}
