import {
  type Account,
  accountOf,
  balancesOf,
  type Fill,
  type Funding,
  fillOf,
  fundingOf,
  type LedgerUpdate,
  ledgerUpdateOf,
  type OpenOrder,
  ordersOf,
  type SpotBalance,
} from './reading.ts'
import type { Channel, ChannelMessage } from './wire.ts'

/** The subscriptions of one followed user. */

export type UserNews =
  | { is: 'fills'; fills: Fill[] }
  | { is: 'fundings'; fundings: Funding[] }
  | { is: 'ledger'; updates: LedgerUpdate[] }
  /** The stream has just begun, or begun again: what happened before was not told. */
  | { is: 'gap' }
export type UserState = { user: string } & (
  | { part: 'account'; value: Account }
  | { part: 'openOrders'; value: OpenOrder[] }
  | { part: 'spotBalances'; value: SpotBalance[] }
)
export type Subscription = { channel: Channel; user?: string }

type Hold = <K extends Channel>(
  topic: Subscription & { channel: K },
  read: (message: ChannelMessage<K> | undefined) => void,
) => Disposable

/** One connection carries the messages of all users, so that each topic takes its own. A snapshot begins a stream. */
export function userTopics(hold: Hold, user: string, tell: (news: UserNews) => void): Disposable[] {
  const mine = (message: { user: string }) => message.user.toLowerCase() === user
  return [
    hold({ channel: 'userFills', user }, (message) => {
      if (!message) tell({ is: 'gap' })
      else if (mine(message))
        tell(
          message.isSnapshot
            ? { is: 'gap' }
            : { is: 'fills', fills: message.fills.map((fill) => fillOf(fill, user)) },
        )
    }),
    hold({ channel: 'userFundings', user }, (message) => {
      if (!message || !mine(message) || message.isSnapshot) return
      const fundings = message.fundings.map(({ time, ...delta }) => fundingOf({ time, delta }))
      tell({ is: 'fundings', fundings })
    }),
    hold({ channel: 'userNonFundingLedgerUpdates', user }, (message) => {
      if (!message || !mine(message) || message.isSnapshot) return
      const updates = message.nonFundingLedgerUpdates.map((update) => ledgerUpdateOf(update, user))
      tell({ is: 'ledger', updates })
    }),
  ]
}

/** The state itself, so that views and checks need not ask for it. */
export function stateTopics(hold: Hold, user: string, tell: (state: UserState) => void): Disposable[] {
  const mine = (message: { user: string } | undefined) => message?.user.toLowerCase() === user
  return [
    hold({ channel: 'clearinghouseState', user }, (message) => {
      if (message && mine(message))
        tell({ user, part: 'account', value: accountOf(message.clearinghouseState) })
    }),
    hold({ channel: 'openOrders', user }, (message) => {
      if (message && mine(message))
        tell({ user, part: 'openOrders', value: message.orders.flatMap(ordersOf) })
    }),
    hold({ channel: 'spotState', user }, (message) => {
      if (message && mine(message)) tell({ user, part: 'spotBalances', value: balancesOf(message.spotState) })
    }),
  ]
}
