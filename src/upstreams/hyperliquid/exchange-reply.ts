import * as T from 'typebox'
import { decimalPattern, plain } from './decimals.ts'
import { fits, parsed } from './records.ts'
import { sentenceOfRefusal } from './refusals.ts'

/** The venue's reply to an action. */

const text = T.String()
const decimal = T.String({ pattern: decimalPattern })
const whole = T.Integer()

const Leg = T.Union([
  T.String(),
  T.Object({ resting: T.Object({ oid: whole }) }),
  T.Object({ filled: T.Object({ totalSz: decimal, avgPx: decimal, oid: whole }) }),
  T.Object({ error: text }),
])

const ExchangeAnswer = T.Union([
  T.Object({ status: T.Literal('err'), response: text }),
  T.Object({
    status: T.Literal('ok'),
    response: T.Object({ type: text, data: T.Optional(T.Object({ statuses: T.Optional(T.Array(Leg)) })) }),
  }),
])

/** What the venue says of one order of an action. */
export type LegStatus =
  | { is: 'resting'; orderId: number }
  | { is: 'filled'; orderId: number; size: string; price: string }
  /** A leg that sleeps until its parent is filled, or until the mark reaches it; also the plain `success` of a cancel. */
  | { is: 'accepted'; as: string }
  | { is: 'error'; message: string }

export type ExchangeReply =
  | { is: 'ok'; legs: LegStatus[] }
  /** The action as a whole is refused: nothing of it was done. */
  | { is: 'refused'; message: string }
  | { is: 'unreadable' }

function legOf(leg: T.Static<typeof Leg>): LegStatus {
  if (typeof leg === 'string') return { is: 'accepted', as: leg }
  if ('error' in leg) return { is: 'error', message: sentenceOfRefusal(leg.error) }
  if ('resting' in leg) return { is: 'resting', orderId: leg.resting.oid }
  const { oid, totalSz, avgPx } = leg.filled
  return { is: 'filled', orderId: oid, size: plain(totalSz), price: plain(avgPx) }
}

/** Read per order: a 200 may hold an error, and an error beside orders that live. */
export function exchangeReplyOf(body: string): ExchangeReply {
  const value = parsed(body)
  if (!fits(ExchangeAnswer, value)) return { is: 'unreadable' }
  if (value.status === 'err') return { is: 'refused', message: sentenceOfRefusal(value.response) }
  return { is: 'ok', legs: (value.response.data?.statuses ?? []).map(legOf) }
}
