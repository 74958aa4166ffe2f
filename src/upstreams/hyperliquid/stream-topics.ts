import {
  type Account,
  type Fill,
  type Funding,
  type LedgerUpdate,
  type OpenOrder,
  parseAccount,
  parseBalances,
  parseFill,
  parseFunding,
  parseLedgerUpdate,
  parseOrders,
  type SpotBalance,
} from './parse-replies.ts'
import type { Channel, ChannelMessage } from './wire.ts'

export type UserEvent =
  | { type: 'fills'; fills: Fill[] }
  | { type: 'fundings'; fundings: Funding[] }
  | { type: 'ledger'; updates: LedgerUpdate[] }
  /** The stream started or restarted, so earlier events may be missing. */
  | { type: 'gap' }
export type UserState = { user: string } & (
  | { part: 'account'; value: Account }
  | { part: 'openOrders'; value: OpenOrder[] }
  | { part: 'spotBalances'; value: SpotBalance[] }
)
export type Subscription = { channel: Channel; user?: string }

export type Subscribe = <K extends Channel>(
  topic: Subscription & { channel: K },
  read: (message: ChannelMessage<K> | undefined) => void,
) => Disposable

/** Messages of all users share one connection, so each topic filters by user. A stream begins with a snapshot. */
export function userTopics(
  subscribe: Subscribe,
  user: string,
  emit: (event: UserEvent) => void,
): Disposable[] {
  const isOwn = (message: { user: string }) => message.user.toLowerCase() === user
  return [
    subscribe({ channel: 'userFills', user }, (message) => {
      if (!message) emit({ type: 'gap' })
      else if (isOwn(message))
        emit(
          message.isSnapshot
            ? { type: 'gap' }
            : { type: 'fills', fills: message.fills.map((fill) => parseFill(fill, user)) },
        )
    }),
    subscribe({ channel: 'userFundings', user }, (message) => {
      if (!message || !isOwn(message) || message.isSnapshot) return
      const fundings = message.fundings.map(({ time, ...delta }) => parseFunding({ time, delta }))
      emit({ type: 'fundings', fundings })
    }),
    subscribe({ channel: 'userNonFundingLedgerUpdates', user }, (message) => {
      if (!message || !isOwn(message) || message.isSnapshot) return
      const updates = message.nonFundingLedgerUpdates.map((update) => parseLedgerUpdate(update, user))
      emit({ type: 'ledger', updates })
    }),
  ]
}

/** Subscribes to a user's account, open orders and spot balances, which saves requests of views and checks. */
export function stateTopics(
  subscribe: Subscribe,
  user: string,
  emit: (state: UserState) => void,
): Disposable[] {
  const isOwn = (message: { user: string } | undefined) => message?.user.toLowerCase() === user
  return [
    subscribe({ channel: 'clearinghouseState', user }, (message) => {
      if (message && isOwn(message))
        emit({ user, part: 'account', value: parseAccount(message.clearinghouseState) })
    }),
    subscribe({ channel: 'openOrders', user }, (message) => {
      if (message && isOwn(message))
        emit({ user, part: 'openOrders', value: message.orders.flatMap(parseOrders) })
    }),
    subscribe({ channel: 'spotState', user }, (message) => {
      if (message && isOwn(message))
        emit({ user, part: 'spotBalances', value: parseBalances(message.spotState) })
    }),
  ]
}
