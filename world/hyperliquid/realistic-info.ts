import type { AccountHistory } from './account-history.ts'
import { foreignRecords, withFloats, withUnknownStatus } from './foreign-records.ts'
import { answerInfo } from './info.ts'
import type { LagSetting, RealismControl } from './realism.ts'
import type { Venue } from './venue.ts'
import type { Json } from './views.ts'

/** The setting that delays an answer. */
const lagSettings: Readonly<Record<string, LagSetting>> = {
  orderStatus: 'statusLag',
  historicalOrders: 'statusLag',
  userFills: 'fillsLag',
  userFillsByTime: 'fillsLag',
  openOrders: 'openOrdersLag',
  frontendOpenOrders: 'openOrdersLag',
  clearinghouseState: 'clearinghouseLag',
  activeAssetData: 'clearinghouseLag',
  portfolio: 'clearinghouseLag',
  webData2: 'clearinghouseLag',
  spotClearinghouseState: 'spotLag',
  userFunding: 'ledgerLag',
  userNonFundingLedgerUpdates: 'ledgerLag',
}

type Question = { type?: string; user?: string; oid?: number | string; startTime?: number; endTime?: number }

const addressOf = ({ user }: Question): string => (typeof user === 'string' ? user.toLowerCase() : '')

/** A list of the venue is oldest first where the caller pages by time, otherwise newest first. */
const merged = (
  list: Json,
  foreign: Json[],
  key: 'time' | 'statusTimestamp',
  { newestFirst }: { newestFirst: boolean },
): Json => {
  const sign = newestFirst ? -1 : 1
  const at = (record: Json): number => (record as Record<string, number>)[key] ?? 0
  return [...(list as Json[]), ...foreign].sort((a, b) => sign * (at(a) - at(b)))
}

const withForeign = (venue: Venue, type: string, question: Question, answer: Json): Json => {
  const account = venue.state.accounts.get(addressOf(question))
  if (!account || account.isMarketMaker) return answer
  const span = {
    fromMs: question.startTime ?? 0,
    toMs: Math.min(venue.state.nowMs, question.endTime ?? Number.MAX_SAFE_INTEGER),
  }
  const all = { fromMs: 0, toMs: venue.state.nowMs }
  switch (type) {
    case 'userNonFundingLedgerUpdates':
      return merged(answer, foreignRecords(account, span).ledger, 'time', { newestFirst: false })
    case 'userFillsByTime':
      return merged(answer, foreignRecords(account, span).fills, 'time', { newestFirst: false })
    case 'userFills':
      return merged(answer, foreignRecords(account, all).fills, 'time', { newestFirst: true })
    case 'historicalOrders':
      return merged(answer, foreignRecords(account, all).orders, 'statusTimestamp', { newestFirst: true })
    default:
      return answer
  }
}

type StatusAnswer = {
  status: string
  order?: { order: { oid: number; timestamp: number }; status: string; statusTimestamp: number }
}

const statusAnswer = (realismControl: RealismControl, venue: Venue, answer: StatusAnswer): Json => {
  const { rate, forMs } = realismControl.current().statusBlind
  if (!answer.order) return answer
  if (answer.order.order.timestamp > venue.state.nowMs - forMs && realismControl.isHit('statusBlind', rate))
    return { status: 'unknownOid' }
  return { ...answer, order: withUnknownStatus(realismControl.current(), answer.order) }
}

/** The answers of `answerInfo` with the configured lag and deviations. */
export const createRealisticInfo =
  (venue: Venue, history: AccountHistory, realismControl: RealismControl) =>
  (body: unknown): Json => {
    if (!realismControl.isSet()) return answerInfo(venue, body)
    const question = (typeof body === 'object' && body !== null ? body : {}) as Question
    const { type = '' } = question
    const setting = Object.hasOwn(lagSettings, type) ? lagSettings[type] : undefined
    const lagMs = setting === undefined ? 0 : realismControl.lagMs(setting)
    const view = lagMs === 0 ? venue : history.viewAt(addressOf(question), lagMs)
    const answer = answerInfo(view, body)
    const realism = realismControl.current()
    if (type === 'orderStatus') return statusAnswer(realismControl, venue, answer as StatusAnswer)
    const complete = realism.foreignRecords ? withForeign(view, type, question, answer) : answer
    if (type === 'userNonFundingLedgerUpdates') return withFloats(realism, complete)
    if (type === 'historicalOrders')
      return (complete as NonNullable<StatusAnswer['order']>[]).map((record) =>
        withUnknownStatus(realism, record),
      )
    return complete
  }
