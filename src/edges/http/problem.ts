import { type FaultView, faultView } from '#invoke/fault-view.ts'
import { Fault, type FaultCode, faults } from '#kernel/contract/fault.ts'

/** This module alone prints HTTP errors. Every exception becomes one of the two documented forms. */

export type Printed = { status: number; headers: Record<string, string>; body: string }
type Facts = { requestId: string; accept: string | undefined; baseUrl: string }

const problemType = 'application/problem+json'
const jsonType = 'application/json; charset=utf-8'

/** The seconds in `Retry-After` if the fault names none; answers with these codes must have the header. */
const retrySeconds: Partial<Record<FaultCode, number>> = {
  rate_limited: 1,
  overloaded: 1,
  unavailable: 2,
  upstream_changed: 600,
}

export const challengeOf = (baseUrl: string): string =>
  `Bearer resource_metadata="${baseUrl}/.well-known/oauth-protected-resource"`

/** Errors that Fastify and Node raise before any code of the gateway runs, by their codes. */
const frameworkCodes: Record<string, FaultCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_TYPE: 'unsupported_media_type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'bad_request',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
}

const sentences: Partial<Record<FaultCode, string>> = {
  body_too_large: 'The body is over the limit of this operation: 256 KiB, or 8 KiB without a credential',
  unsupported_media_type: 'The body has to be JSON: send it with the header Content-Type: application/json',
  bad_request:
    'The request cannot be read: check the request line, the headers, and that each % of the path is followed by two hexadecimal digits',
  not_found: 'There is no such path: a part of it is too long',
  headers_too_large: 'The headers are over the limit of 16 KiB: send fewer or shorter ones',
}

export function faultOf(error: unknown): Fault | undefined {
  if (error instanceof Fault) return error
  const code = (error as { code?: unknown } | null)?.code
  const known = typeof code === 'string' ? frameworkCodes[code] : undefined
  return known && faultNamed(known, error)
}

export const faultNamed = (code: FaultCode, cause?: unknown): Fault =>
  new Fault(code, sentences[code] ?? faults[code].when, { cause })

export function print(fault: Fault, facts: Facts): Printed {
  const view = faultView(fault)
  const { status, code, message, retryable } = view
  const extras = extrasOf(view)
  const headers = { ...headersOf(view, facts.baseUrl), 'cache-control': 'no-store' }
  const isValidation = code === 'validation'
  const wantsProblem = facts.accept?.includes(problemType) ?? false
  if (wantsProblem) {
    // Extras with a name of a member of RFC 9457 are dropped, so that they do not replace the member.
    const { type: _type, title: _title, status: _status, ...more } = extras
    const problem = {
      type: `${facts.baseUrl}/error-catalog.json#${code}`,
      title: faults[code].when,
      status,
      detail: message,
      ...(isValidation ? { errors: issuesOf(view) } : {}),
      code,
      retryable,
      ...more,
      request_id: facts.requestId,
    }
    return { status, headers: { ...headers, 'content-type': problemType }, body: JSON.stringify(problem) }
  }
  const body = {
    detail: isValidation ? issuesOf(view) : message,
    code,
    retryable,
    // The extras of a validation fault are in its items.
    ...(isValidation ? {} : extras),
    request_id: facts.requestId,
  }
  return { status, headers: { ...headers, 'content-type': jsonType }, body: JSON.stringify(body) }
}

/** The issues have the form that FastAPI uses. */
const issuesOf = ({ issues }: FaultView) =>
  issues.map(({ location, path, ...rest }) => ({ loc: [location, ...path], ...rest }))

/** Returns the extras that are added to the common fields of an error; they never replace a common field. */
function extrasOf({ extras }: FaultView): Record<string, unknown> {
  const { detail: _detail, code: _code, retryable: _retryable, request_id: _id, ...more } = extras
  return more
}

function headersOf({ status, code, extras }: FaultView, baseUrl: string): Record<string, string> {
  const headers: Record<string, string> = {}
  if (status === 401) headers['www-authenticate'] = challengeOf(baseUrl)
  // The rest of the body is never read, so the connection cannot be reused.
  if (status === 413) headers.connection = 'close'
  if (Array.isArray(extras.allow)) headers.allow = extras.allow.join(', ')
  const owed = retrySeconds[code] ?? (status === 429 || status === 503 ? 1 : undefined)
  const seconds = typeof extras.retry_after === 'number' ? extras.retry_after : owed
  if (seconds !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(seconds)))
  return headers
}
