import { check } from './checks.ts'
import { marketOf } from './markets.ts'
import {
  awaitTrigger,
  enter,
  execute,
  type OrderWire,
  place,
  readOrder,
  reject,
  type Status,
  type Ties,
} from './placing.ts'
import { refuseAll } from './refusals.ts'
import type { Account, Order } from './state.ts'
import { marketFor, type Venue } from './venue.ts'

export type Grouping = 'na' | 'normalTpsl' | 'positionTpsl' | { p: number }

const isTrigger = ({ t }: OrderWire): boolean => 'trigger' in t

/** What the request alone shows to be wrong: nothing of it is placed then. */
export const prevalidate = (venue: Venue, wires: readonly OrderWire[], grouping: Grouping): void => {
  if (wires.length === 0) refuseAll('Batch of orders is empty.')
  const triggers = wires.filter(isTrigger)
  for (const { a } of triggers)
    if (marketOf(a)?.kind === 'spot' && !venue.state.settings.spotTriggers)
      refuseAll('Placing trigger orders is not enabled on spot trading yet.')
  if (typeof grouping === 'object' || grouping === 'na') return
  if (triggers.some(({ r }) => !r)) refuseAll('TP/SL orders must be reduce only.')
  const parents = grouping === 'normalTpsl' ? 1 : 0
  const [first] = wires
  const expected = triggers.length === wires.length - parents && triggers.length > 0 && triggers.length <= 2
  if (!expected || (parents === 1 && first && isTrigger(first)))
    refuseAll('Unexpected number of trigger orders')
  if (parents === 1 && triggers.some(({ a, b }) => a !== first?.a || b === first.b))
    refuseAll('TP/SL orders must be on the opposite side of the same asset.')
}

const pair = (orders: readonly Order[]): void => {
  const [one, two] = orders
  if (!one || !two) return
  one.sibling = two.oid
  two.sibling = one.oid
}

/** The children stand before the parent meets the book, so that its fill finds them. */
const children = (venue: Venue, account: Account, parent: Order, wires: readonly OrderWire[]) => {
  const made: { order?: Order; status: Status }[] = wires.map((wire) => {
    const order = readOrder(venue, account, wire, { parent })
    if ('message' in order) return { status: { error: order.message } }
    const refused = check(venue, account, marketFor(order.asset), order, parent)
    enter(venue, account, order)
    if (refused) return { status: reject(venue, order, refused) }
    parent.children.push(order.oid)
    return { order, status: awaitTrigger(venue, account, order) }
  })
  pair(made.flatMap(({ order }) => (order ? [order] : [])))
  return made
}

const bracket = (venue: Venue, account: Account, wires: readonly OrderWire[], ties: Ties): Status[] => {
  const [first, ...rest] = wires as [OrderWire, ...OrderWire[]]
  const parent = readOrder(venue, account, first, ties)
  if ('message' in parent) return wires.map(() => ({ error: parent.message }))
  const refused = check(venue, account, marketFor(parent.asset), parent)
  enter(venue, account, parent)
  if (refused) {
    reject(venue, parent, refused)
    return wires.map(() => ({ error: refused.message }))
  }
  const made = children(venue, account, parent, rest)
  const status = execute(venue, parent)
  return [
    status,
    ...made.map(({ order, status: before }): Status => {
      if (!order) return before
      if (order.phase === 'waiting') return 'waitingForFill'
      if (order.phase === 'armed') return 'waitingForTrigger'
      const why =
        typeof status === 'object' && 'error' in status ? status.error : 'Parent order was not fully filled.'
      return { error: why }
    }),
  ]
}

const positionPair = (venue: Venue, account: Account, wires: readonly OrderWire[], ties: Ties): Status[] => {
  const made = wires.map((wire) => place(venue, account, wire, { ...ties, positionTpsl: true }))
  pair(made.flatMap(({ order }) => (order && order.phase === 'armed' ? [order] : [])))
  return made.map(({ status }) => status)
}

export const placeGroup = (
  venue: Venue,
  account: Account,
  wires: readonly OrderWire[],
  grouping: Grouping,
  ties: Ties,
): Status[] => {
  prevalidate(venue, wires, grouping)
  if (grouping === 'normalTpsl') return bracket(venue, account, wires, ties)
  if (grouping === 'positionTpsl') return positionPair(venue, account, wires, ties)
  return wires.map((wire) => place(venue, account, wire, ties).status)
}
