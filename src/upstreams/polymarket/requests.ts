import { Fault } from '#kernel/contract/fault.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type * as T from '#kernel/contract/schema.ts'
import type { Unsettled } from '#kernel/money/prediction-refusals.ts'
import type { SignerLimit } from '#kernel/money/prediction-venue.ts'
import type { Net, NetReply } from '#kernel/wire/upstream-http.ts'
import { lineOf, messageMax, parseReply } from './foreign-text.ts'
import { boundedWaitMs, isDuplicate, orderRefusalOf, quotaResetMs } from './refusals.ts'
import { ErrorBody } from './wire-clob.ts'

/** Sends requests to the venue's services, each once: the caller decides what is sent again. */

export type Services = Record<'clob' | 'gamma' | 'data' | 'relayer' | 'bridge' | 'geoblock', string>

export type Call = {
  service: keyof Services
  method?: 'GET' | 'POST' | 'DELETE'
  path: string
  /** Undefined values are left out, and a list repeats its name. */
  query?: Record<string, string | readonly string[] | undefined>
  body?: string
  headers?: Record<string, string>
  timeoutMs?: number
}

/** An answer in JSON that says what became of the request. */
export type Answer = { type: 'answered'; status: number; value: unknown; message: string }

const defaultTimeoutMs = 10_000
const maxBytes = 8 * 1024 * 1024
/** https://docs.polymarket.com/api-reference/trading-rate-limits */
const limitHeaders = ['poly-ratelimit-remaining', 'poly-ratelimit-reset', 'poly-ratelimit-tier'] as const

type Reply = NetReply & { json: unknown }

/** A whole number that a database takes as well; undefined text is none. */
function integerOf(text: string | undefined, max: number): number | null {
  if (text === undefined || !/^-?\d{1,30}(\.\d{1,30})?$/.test(text)) return null
  return Math.max(-max, Math.min(max, Math.floor(Number(text))))
}
const remainingMax = 1_000_000_000
const secondsMax = 100_000_000_000
const tierMax = 40

export function signerLimitOf(headers: Record<string, string> | undefined): SignerLimit | null {
  const [remaining, reset, tier] = limitHeaders.map((name) => headers?.[name])
  if (remaining === undefined && reset === undefined && tier === undefined) return null
  return {
    remaining: integerOf(remaining, remainingMax),
    resetAtSeconds: integerOf(reset, secondsMax),
    tier: tier?.slice(0, tierMax) ?? null,
  }
}

/** Returns the venue's words, or an empty text. */
export function messageOf(json: unknown): string {
  if (!fits(ErrorBody, json)) return ''
  return lineOf(json.error ?? json.errorMsg ?? json.error_msg ?? '', messageMax)
}

const waitOf = ({ json, retryAfterMs }: Reply): number | null => {
  const seconds = fits(ErrorBody, json) ? json.retry_after_seconds : undefined
  const wait = retryAfterMs ?? (typeof seconds === 'number' ? seconds * 1_000 : undefined)
  return wait === undefined ? null : boundedWaitMs(wait)
}

/** What the venue refuses for now, whatever was asked; undefined for any other reply. */
export function laterOf(reply: Reply): Extract<Unsettled, { type: 'later' }> | undefined {
  const { status, json } = reply
  const message = messageOf(json)
  const later = (reason: Extract<Unsettled, { type: 'later' }>['reason'], waitMs = waitOf(reply)) =>
    ({ type: 'later', reason, message, retryAfterMs: waitMs }) as const
  const quotaMs = quotaResetMs(message)
  if (quotaMs !== undefined) return later('quota', quotaMs)
  if (status === 429) return later('rate_limited')
  if (status === 425) return later('restarting')
  if (status !== 503) return undefined
  const type = fits(ErrorBody, json) ? json.type : undefined
  if (type === 'POST_ONLY' || /^post-only mode/i.test(message)) return later('post_only')
  if (type === 'CANCEL_ONLY' || /cancel-only/i.test(message)) return later('cancel_only')
  return /trading is currently disabled/i.test(message) ? later('disabled') : undefined
}

/** Whether the reply proves that the venue itself refused; a page of a proxy does not. */
const isAnswer = ({ status, json }: Reply): boolean =>
  json !== undefined && status >= 200 && status < 500 && status !== 408

export function faultOf(call: Call, reply: Reply): Fault {
  const { status, json } = reply
  const message = messageOf(json)
  const waitMs = waitOf(reply)
  const wait = waitMs === null ? {} : { retry_after: Math.ceil(waitMs / 1_000) }
  const later = laterOf(reply)
  if (later)
    return new Fault('unavailable', `Polymarket refuses ${call.path} for now: ${later.reason}`, {
      extras: { reason: later.reason, ...wait },
    })
  if (json === undefined || status >= 500 || status === 408)
    return new Fault('unavailable', `Polymarket answered ${call.path} with status ${status}`, {
      extras: wait,
    })
  if (status === 404) return new Fault('not_found', message || `Polymarket does not know ${call.path}`)
  return new Fault('upstream_rejected', `Polymarket refused ${call.path}: ${message || status}`, {
    extras: { reason: orderRefusalOf(message) },
  })
}

export type Requests = {
  read<S extends T.TSchema>(call: Call, schema: S): Promise<T.Static<S>>
  /** Undefined if the venue answers 404 or null. */
  readOptional<S extends T.TSchema>(call: Call, schema: S): Promise<T.Static<S> | undefined>
  act(call: Call): Promise<(Answer | Unsettled) & { limit: SignerLimit | null }>
}

export function createRequests({ urls, net }: { urls: Services; net: Net }): Requests {
  async function send({
    service,
    method = 'GET',
    path,
    query,
    body,
    headers,
    timeoutMs,
  }: Call): Promise<Reply> {
    const given = Object.entries(query ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [value].flat().map((each): [string, string] => [name, each]),
    )
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    const reply = await net.fetch({
      url: `${urls[service]}${path}${search}`,
      method,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body }),
      timeoutMs: timeoutMs ?? defaultTimeoutMs,
      maxBytes,
      replyHeaders: limitHeaders,
    })
    return { ...reply, json: parseReply(reply.body) }
  }

  async function read<S extends T.TSchema>(call: Call, schema: S): Promise<T.Static<S>> {
    const reply = await send(call)
    if (reply.status !== 200 && reply.status !== 201) throw faultOf(call, reply)
    if (reply.json === undefined) throw new Fault('unavailable', `Polymarket sent no JSON for ${call.path}`)
    if (fits(schema, reply.json)) return reply.json
    throw new Fault('upstream_changed', `Polymarket answered ${call.path} in an unknown format`)
  }

  return {
    read,
    async readOptional(call, schema) {
      const reply = await send(call)
      if (reply.status === 404 && reply.json !== undefined) return undefined
      if (reply.status !== 200) throw faultOf(call, reply)
      if (reply.json === null) return undefined
      if (fits(schema, reply.json)) return reply.json
      throw new Fault('upstream_changed', `Polymarket answered ${call.path} in an unknown format`)
    },
    async act(call) {
      let reply: Reply
      try {
        reply = await send(call)
      } catch (fault) {
        if (!(fault instanceof Fault)) throw fault
        const isSent = fault.code !== 'unavailable'
        return {
          ...(isSent ? { type: 'unknown', message: fault.message } : { type: 'not_sent' }),
          limit: null,
        }
      }
      const limit = signerLimitOf(reply.headers)
      const later = laterOf(reply)
      if (later) return { ...later, limit }
      const message = messageOf(reply.json)
      if (isDuplicate(message)) return { type: 'unknown', message, isDuplicate: true, limit }
      if (!isAnswer(reply)) return { type: 'unknown', message: message || `status ${reply.status}`, limit }
      return { type: 'answered', status: reply.status, value: reply.json, message, limit }
    },
  }
}
