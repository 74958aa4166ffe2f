import { Fault } from '#kernel/contract/fault.ts'
import { foreignText } from '#kernel/money/token-security-reports.ts'
import { isRecord, parseJson } from '#kernel/wire/json.ts'

/** Translates the failures of a model endpoint for the caller of a turn. No fault text contains the key. */

const upstream = 'model'

type Failure = {
  status: number
  body: string
  retryAfterMs?: number | undefined
  model: string
  key: string | undefined
}

/** Returns the endpoint's words for the log: cut, on one line, and without the key. */
export function endpointWords(body: unknown, key: string | undefined): string {
  const error = isRecord(body) && isRecord(body.error) ? body.error : body
  const { type, code, message } = isRecord(error) ? error : {}
  const words = [type, code, message].filter((each) => typeof each === 'string').join(': ')
  return foreignText(key === undefined ? words : words.replaceAll(key, '[key]'))
}

export const isRetried = (status: number): boolean => status === 429 || status >= 500

export function statusFault({ status, body, retryAfterMs, model, key }: Failure): Fault {
  const extras = { upstream, upstream_status: status }
  // Endpoints repeat a part of the key in these errors, so their words stay out of the fault.
  if (status === 401 || status === 403)
    return new Fault('upstream_rejected', 'The model endpoint does not accept the key', { extras })
  const cause = new Error(`model endpoint ${status}: ${endpointWords(parseJson(body), key)}`)
  if (isRetried(status)) {
    const sentence =
      status === 429
        ? 'The model endpoint limits our requests'
        : 'The model endpoint does not work at present'
    const retryAfter = retryAfterMs !== undefined && { retry_after: Math.ceil(retryAfterMs / 1_000) }
    return new Fault('unavailable', sentence, { cause, extras: { ...extras, ...retryAfter } })
  }
  if (status === 404)
    return new Fault(
      'upstream_rejected',
      `The model endpoint has no model ${model}, or its address is wrong`,
      { cause, extras },
    )
  return new Fault(
    'upstream_rejected',
    `The model endpoint rejected the request with status ${status}; the log of the gateway has its reply`,
    { cause, extras },
  )
}

const passing = ['overloaded_error', 'api_error', 'rate_limit_error', 'timeout_error', 'server_error']

export function eventFault(error: unknown, key?: string): Fault {
  const { type, code } = isRecord(error) ? error : {}
  const names = [type, code].map(String)
  const isPassing =
    names.some((name) => passing.includes(name)) ||
    names.some((name) => /^(429|5\d\d)$|rate_limit/.test(name))
  const cause = new Error(`model endpoint: ${endpointWords(error, key)}`)
  const extras = { upstream }
  return isPassing
    ? new Fault('unavailable', 'The model endpoint failed within its answer', { cause, extras })
    : new Fault('upstream_rejected', 'The model endpoint ended its answer with an error', { cause, extras })
}

export const brokenOff = (): Fault =>
  new Fault('upstream_timeout', 'The model endpoint broke off its answer', { extras: { upstream } })

export const unreadable = (what: string): Fault =>
  new Fault('upstream_changed', `The model endpoint sent ${what}`, { extras: { upstream } })

export function eventFields(data: string): Record<string, unknown> {
  const fields = parseJson(data)
  if (!isRecord(fields)) throw unreadable('an event that is no JSON object')
  return fields
}
