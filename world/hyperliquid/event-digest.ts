import type { Message } from './channels.ts'
import { unitsText } from './decimal.ts'
import { marketFor, type VenueEvent } from './venue.ts'
import { fillView, fundingView, type Json, openOrder, tradeView } from './views.ts'

/** The changes of one batch of events for one user. */
export type UserDigest = {
  orders: Json[]
  history: Json[]
  fills: Json[]
  fundings: Json[]
  ledger: Json[]
  events: Json[]
  notifications: string[]
}

const emptyDigest = (): UserDigest => ({
  orders: [],
  history: [],
  fills: [],
  fundings: [],
  ledger: [],
  events: [],
  notifications: [],
})

/** Ends that the user did not request. */
const isUnsolicited = (status: string): boolean =>
  (status.endsWith('Canceled') && status !== 'canceled') || status === 'scheduledCancel'

const addEvent = (digest: UserDigest, event: VenueEvent): void => {
  switch (event.kind) {
    case 'order': {
      const { order, status, timeMs } = event
      digest.orders.push({ order: openOrder(order), status, statusTimestamp: timeMs })
      if (isUnsolicited(status))
        digest.events.push({ nonUserCancel: [{ coin: marketFor(order.asset).coin, oid: order.oid }] })
      if (status === 'triggered') digest.notifications.push(`Trigger order ${order.oid} was triggered.`)
      return
    }
    case 'fill':
      digest.fills.push(fillView(event.fill))
      return
    case 'funding': {
      const view = fundingView(event.funding)
      digest.fundings.push(view)
      digest.events.push({ funding: view })
      return
    }
    case 'ledger': {
      const { timeMs, hash, delta } = event.update
      digest.ledger.push({ time: timeMs, hash, delta })
      return
    }
    case 'liquidation':
      digest.events.push({
        liquidation: {
          lid: 0,
          liquidator: event.liquidator,
          liquidated_user: event.user,
          liquidated_ntl_pos: unitsText(event.notional),
          liquidated_account_value: unitsText(event.value < 0n ? 0n : event.value),
        },
      })
      digest.notifications.push('Your position was liquidated.')
  }
}

export type EventDigest = {
  users: Map<string, UserDigest>
  trades: Map<string, Json[]>
  books: Set<number>
  prices: boolean
}

export const digestEvents = (events: readonly VenueEvent[]): EventDigest => {
  const eventDigest: EventDigest = { users: new Map(), trades: new Map(), books: new Set(), prices: false }
  for (const event of events) {
    if (event.kind === 'book') eventDigest.books.add(event.asset)
    else if (event.kind === 'prices') eventDigest.prices = true
    else if (event.kind === 'trade') {
      const { coin } = event.trade
      eventDigest.trades.set(coin, [...(eventDigest.trades.get(coin) ?? []), tradeView(event.trade)])
    } else {
      const digest = eventDigest.users.get(event.user) ?? emptyDigest()
      eventDigest.users.set(event.user, digest)
      addEvent(digest, event)
    }
  }
  return eventDigest
}

/** The messages of one subscription type to one user. */
export const userMessages = (type: string, user: string, digest: UserDigest): Message[] => {
  const messageOf = (channel: string, list: readonly Json[], data: Json): Message[] =>
    list.length === 0 ? [] : [{ channel, data }]
  switch (type) {
    case 'orderUpdates':
      return messageOf('orderUpdates', digest.orders, digest.orders)
    case 'userFills':
      return messageOf('userFills', digest.fills, { user, fills: digest.fills })
    case 'userFundings':
      return messageOf('userFundings', digest.fundings, { user, fundings: digest.fundings })
    case 'userNonFundingLedgerUpdates':
      return messageOf('userNonFundingLedgerUpdates', digest.ledger, {
        user,
        nonFundingLedgerUpdates: digest.ledger,
      })
    case 'user':
    case 'userEvents':
      return [
        ...messageOf('user', digest.fills, { fills: digest.fills }),
        ...digest.events.map((data) => ({ channel: 'user', data })),
      ]
    case 'notification':
      return digest.notifications.map((notification) => ({ channel: 'notification', data: { notification } }))
    default:
      return []
  }
}
