import { fits } from '#kernel/contract/fits-schema.ts'
import * as T from '#kernel/contract/schema.ts'
import { parseJson } from '#kernel/wire/json.ts'
import { decimalPattern, plain } from './decimals.ts'
import { rejectionMessage } from './rejections.ts'

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

export type LegStatus =
  | { type: 'resting'; orderId: number }
  | { type: 'filled'; orderId: number; size: string; price: string }
  /** A leg that waits for its parent or its trigger price; also the `success` of a cancel. */
  | { type: 'accepted'; as: string }
  | { type: 'error'; message: string }

export type ExchangeReply =
  | { type: 'ok'; legs: LegStatus[] }
  /** The venue rejected the whole action. */
  | { type: 'rejected'; message: string }
  | { type: 'unreadable' }

function parseLeg(leg: T.Static<typeof Leg>): LegStatus {
  if (typeof leg === 'string') return { type: 'accepted', as: leg }
  if ('error' in leg) return { type: 'error', message: rejectionMessage(leg.error) }
  if ('resting' in leg) return { type: 'resting', orderId: leg.resting.oid }
  const { oid, totalSz, avgPx } = leg.filled
  return { type: 'filled', orderId: oid, size: plain(totalSz), price: plain(avgPx) }
}

/** Parses each order separately, because a reply with status 200 may contain both errors and placed orders. */
export function parseExchangeReply(body: string): ExchangeReply {
  const value = parseJson(body)
  if (!fits(ExchangeAnswer, value)) return { type: 'unreadable' }
  if (value.status === 'err') return { type: 'rejected', message: rejectionMessage(value.response) }
  return { type: 'ok', legs: (value.response.data?.statuses ?? []).map(parseLeg) }
}
