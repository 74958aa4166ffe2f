import type { AccountHistory } from './account-history.ts'
import { channels, type Message, type Topic } from './channels.ts'
import { foreignRecords, withFloats, withUnknownStatus } from './foreign-records.ts'
import type { RealismControl } from './realism.ts'
import type { Venue } from './venue.ts'
import type { Json } from './views.ts'

/** The messages of a stream with the configured lag and deviations. */
export type RealisticStream = {
  snapshot: (type: string, topic: Topic) => Message[]
  edit: (message: Message) => Message
  /** Records of other clients in this span. */
  foreign: (topic: Topic, span: { fromMs: number; toMs: number }) => Message[]
}

export const isOfFills = ({ channel, data }: Message): boolean =>
  channel === 'userFills' || (channel === 'user' && 'fills' in (data as object))

type Records = Record<string, Json>

/** Path of a channel's list; `orderUpdates` itself is a list. */
const ledgerField = 'nonFundingLedgerUpdates'

export const createRealisticStream = (
  venue: Venue,
  history: AccountHistory,
  realismControl: RealismControl,
): RealisticStream => {
  const edit = (message: Message): Message => {
    const realism = realismControl.current()
    if (message.channel === 'userNonFundingLedgerUpdates') {
      const data = message.data as Records
      return { ...message, data: { ...data, [ledgerField]: withFloats(realism, data[ledgerField]) } }
    }
    if (message.channel === 'orderUpdates') {
      const updates = message.data as { order: { oid: number }; status: string }[]
      return { ...message, data: updates.map((update) => withUnknownStatus(realism, update)) }
    }
    return message
  }

  const joined = (message: Message, user: string): Message => {
    const account = venue.state.accounts.get(user)
    if (!account || !realismControl.current().foreignRecords) return message
    const found = foreignRecords(account, { fromMs: 0, toMs: venue.state.nowMs })
    const data = message.data as Records
    const newestFirst = (list: Json, foreign: Json[]): Json =>
      [...(list as { time: number }[]), ...(foreign as { time: number }[])].sort((a, b) => b.time - a.time)
    if (message.channel === 'userFills')
      return { ...message, data: { ...data, fills: newestFirst(data.fills, found.fills) } }
    if (message.channel === 'userNonFundingLedgerUpdates')
      return { ...message, data: { ...data, [ledgerField]: newestFirst(data[ledgerField], found.ledger) } }
    return message
  }

  return {
    edit,
    snapshot: (type, topic) => {
      const channel = channels[type]
      if (!channel) return []
      if (!realismControl.isSet() || topic.user === undefined) return channel.snapshot(venue, topic)
      const { user } = topic
      const lagMs = type === 'userFills' ? realismControl.lagMs('fillsLag') : 0
      const view = lagMs === 0 ? venue : history.viewAt(user, lagMs)
      return channel.snapshot(view, topic).map((message) => edit(joined(message, user)))
    },
    foreign: (topic, span) => {
      const { user } = topic
      const account = user === undefined ? undefined : venue.state.accounts.get(user)
      if (!account || !realismControl.current().foreignRecords) return []
      const { ledger, fills, orders } = foreignRecords(account, span)
      if (ledger.length === 0) return []
      switch (topic.subscription.type) {
        case 'userFills':
          return [{ channel: 'userFills', data: { user, fills } }]
        case 'user':
        case 'userEvents':
          return [{ channel: 'user', data: { fills } }]
        case 'userNonFundingLedgerUpdates':
          return [{ channel: 'userNonFundingLedgerUpdates', data: { user, [ledgerField]: ledger } }]
        case 'orderUpdates':
          return [{ channel: 'orderUpdates', data: orders }]
        default:
          return []
      }
    },
  }
}
