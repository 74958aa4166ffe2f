import type { Message } from './channels.ts'
import { unitsText } from './decimal.ts'
import type { Happening } from './venue.ts'
import { marketFor } from './venue.ts'
import { fillView, fundingView, type Json, openOrder, tradeView } from './views.ts'

/** What one batch of happenings says to one user. */
export type Digest = {
  orders: Json[]
  history: Json[]
  fills: Json[]
  fundings: Json[]
  ledger: Json[]
  events: Json[]
  notifications: string[]
}

const fresh = (): Digest => ({
  orders: [],
  history: [],
  fills: [],
  fundings: [],
  ledger: [],
  events: [],
  notifications: [],
})

/** Ends that the user did not ask for. */
const unasked = (status: string): boolean =>
  (status.endsWith('Canceled') && status !== 'canceled') || status === 'scheduledCancel'

const note = (digest: Digest, happening: Happening): void => {
  switch (happening.kind) {
    case 'order': {
      const { order, status, timeMs } = happening
      digest.orders.push({ order: openOrder(order), status, statusTimestamp: timeMs })
      if (unasked(status))
        digest.events.push({ nonUserCancel: [{ coin: marketFor(order.asset).coin, oid: order.oid }] })
      if (status === 'triggered') digest.notifications.push(`Trigger order ${order.oid} was triggered.`)
      return
    }
    case 'fill':
      digest.fills.push(fillView(happening.fill))
      return
    case 'funding': {
      const view = fundingView(happening.funding)
      digest.fundings.push(view)
      digest.events.push({ funding: view })
      return
    }
    case 'ledger': {
      const { timeMs, hash, delta } = happening.update
      digest.ledger.push({ time: timeMs, hash, delta })
      return
    }
    case 'liquidation':
      digest.events.push({
        liquidation: {
          lid: 0,
          liquidator: happening.liquidator,
          liquidated_user: happening.user,
          liquidated_ntl_pos: unitsText(happening.notional),
          liquidated_account_value: unitsText(happening.value < 0n ? 0n : happening.value),
        },
      })
      digest.notifications.push('Your position was liquidated.')
  }
}

export type News = {
  users: Map<string, Digest>
  trades: Map<string, Json[]>
  books: Set<number>
  prices: boolean
}

export const readNews = (happenings: readonly Happening[]): News => {
  const news: News = { users: new Map(), trades: new Map(), books: new Set(), prices: false }
  for (const happening of happenings) {
    if (happening.kind === 'book') news.books.add(happening.asset)
    else if (happening.kind === 'prices') news.prices = true
    else if (happening.kind === 'trade') {
      const { coin } = happening.trade
      news.trades.set(coin, [...(news.trades.get(coin) ?? []), tradeView(happening.trade)])
    } else {
      const digest = news.users.get(happening.user) ?? fresh()
      news.users.set(happening.user, digest)
      note(digest, happening)
    }
  }
  return news
}

/** The messages of one subscription type to one user. */
export const userMessages = (type: string, user: string, digest: Digest): Message[] => {
  const one = (channel: string, list: readonly Json[], data: Json): Message[] =>
    list.length === 0 ? [] : [{ channel, data }]
  switch (type) {
    case 'orderUpdates':
      return one('orderUpdates', digest.orders, digest.orders)
    case 'userFills':
      return one('userFills', digest.fills, { user, fills: digest.fills })
    case 'userFundings':
      return one('userFundings', digest.fundings, { user, fundings: digest.fundings })
    case 'userNonFundingLedgerUpdates':
      return one('userNonFundingLedgerUpdates', digest.ledger, {
        user,
        nonFundingLedgerUpdates: digest.ledger,
      })
    case 'user':
    case 'userEvents':
      return [
        ...one('user', digest.fills, { fills: digest.fills }),
        ...digest.events.map((data) => ({ channel: 'user', data })),
      ]
    case 'notification':
      return digest.notifications.map((notification) => ({ channel: 'notification', data: { notification } }))
    default:
      return []
  }
}
