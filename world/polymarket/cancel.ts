import { setStatus } from './place-order.ts'
import type { Order, OrderStatus } from './state.ts'
import { bookOf, marketOf, notify, type Venue } from './venue.ts'

export type CancelResult = { canceled: string[]; not_canceled: Record<string, string> }

/** Ends an open order for whatever reason. */
export const endOrder = (venue: Venue, order: Order, status: OrderStatus): void => {
  bookOf(venue, order.conditionId).cancel(order.seq)
  setStatus(venue, order, status)
  venue.events.push({ kind: 'order', order: { ...order }, change: 'CANCELLATION', atMs: venue.state.nowMs })
  venue.events.push({ kind: 'book', conditionId: order.conditionId, atMs: venue.state.nowMs })
  if (order.user === '') return
  const market = marketOf(order.conditionId)
  const payload = {
    order_id: order.id,
    market: order.conditionId,
    asset_id: order.signed.tokenId,
    outcome: market.outcomes[order.outcome],
    question: market.question,
  }
  notify(venue, order.user, { type: 1, payload })
}

const isOpen = ({ status }: Order): boolean => status === 'LIVE' || status === 'DELAYED'

const refusalOf = (order: Order | undefined, user: string): string | undefined => {
  if (!order || order.user !== user) return 'order not found or already canceled'
  return isOpen(order) ? undefined : 'already canceled or matched'
}

export const cancelOrders = (venue: Venue, user: string, ids: readonly string[]): CancelResult => {
  const result: CancelResult = { canceled: [], not_canceled: {} }
  for (const id of new Set(ids)) {
    const order = venue.state.orders.get(id)
    const refusal = refusalOf(order, user)
    if (refusal !== undefined) result.not_canceled[id] = refusal
    else if (order) {
      endOrder(venue, order, 'CANCELED')
      result.canceled.push(id)
    }
  }
  return result
}

export type Scope = { conditionId?: string; tokenId?: string }

export const scopeOf = (market: unknown, token: unknown): Scope => ({
  ...(typeof market === 'string' && market !== '' ? { conditionId: market.toLowerCase() } : {}),
  ...(typeof token === 'string' && token !== '' ? { tokenId: token } : {}),
})

export const isInScope = (order: Order, { conditionId, tokenId }: Scope): boolean =>
  (conditionId === undefined || order.conditionId.toLowerCase() === conditionId) &&
  (tokenId === undefined || order.signed.tokenId === tokenId)

/** Open orders of an API key's address, over all its wallets. */
export const openOrdersOf = (venue: Venue, user: string, scope: Scope = {}): Order[] =>
  [...venue.state.accounts.values()].flatMap(({ open }) =>
    [...open]
      .flatMap((id) => venue.state.orders.get(id) ?? [])
      .filter((order) => order.user === user && isOpen(order) && isInScope(order, scope)),
  )

export const cancelScope = (venue: Venue, user: string, scope: Scope): CancelResult =>
  cancelOrders(
    venue,
    user,
    openOrdersOf(venue, user, scope).map(({ id }) => id),
  )

/** The venue ends orders of everybody but its own maker. */
export const wipeOrders = (venue: Venue, status: OrderStatus, conditionId?: string): number => {
  const open = [...venue.state.orders.values()].filter(
    (order) =>
      isOpen(order) && order.user !== '' && (conditionId === undefined || order.conditionId === conditionId),
  )
  for (const order of open) endOrder(venue, order, status)
  return open.length
}
