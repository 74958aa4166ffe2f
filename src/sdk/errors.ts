/** One wrong field of a request: `loc` is the part of the request, then the path within it. */
export type InputIssue = {
  loc: [part: string, ...path: (string | number)[]]
  msg: string
  type: string
  ctx?: Record<string, unknown>
}

/** What the gateway, or a part of the network on the way to it, reported about a failure. */
export type Failure = {
  /** The HTTP status of the answer; 0 if no answer arrived. */
  status: number
  /** A code of `/error-catalog.json`; `connection_failed`, `timeout` or `unexpected_reply` if the gateway gave none. */
  code: string
  detail: string
  retryable: boolean
  request_id: string | undefined
  /** The outcome for the money: if it is `unknown`, look it up, and never send the request under another key. */
  outcome: string | undefined
  errors: readonly InputIssue[]
  /** The other fields of the answer, such as `agent_id` or `retry_after`. */
  extras: Readonly<Record<string, unknown>>
}

/** The error of a failed call; each subclass stands for one HTTP status or one kind of failure. */
export class PorticoError extends Error {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly retryable: boolean
  readonly request_id: string | undefined
  readonly outcome: string | undefined
  readonly errors: readonly InputIssue[]
  readonly extras: Readonly<Record<string, unknown>>

  constructor(failure: Failure, options?: { cause?: unknown }) {
    super(`${failure.code}: ${failure.detail}`, options)
    this.name = new.target.name
    this.status = failure.status
    this.code = failure.code
    this.detail = failure.detail
    this.retryable = failure.retryable
    this.request_id = failure.request_id
    this.outcome = failure.outcome
    this.errors = failure.errors
    this.extras = failure.extras
  }
}

/** Status 400: the request cannot be read, or its nonce is unknown, used or expired. */
export class BadRequestError extends PorticoError {}
/** Status 401: there is no credential, or the credential is no longer valid. */
export class AuthenticationError extends PorticoError {}
/** Status 403: the policy, the scope or the state of the account refuses the call. */
export class PermissionError extends PorticoError {}
/** Status 404: the path, or the record that it names, does not exist. */
export class NotFoundError extends PorticoError {}
/** Status 409: a balance, the state of an object or an idempotency key conflicts with the call. */
export class ConflictError extends PorticoError {}
/** Status 422: a field of the request is invalid; `errors` names each such field. */
export class ValidationError extends PorticoError {}
/** Status 429: a rate limit is spent. */
export class RateLimitError extends PorticoError {}
/** Status 5xx: the gateway, or a service that it needs, has failed. */
export class ServerError extends PorticoError {}
/** No answer arrived. A call that moves money may have been accepted: repeat it under the same key. */
export class ConnectionError extends PorticoError {}

const classes: Readonly<Record<number, typeof PorticoError>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  422: ValidationError,
  429: RateLimitError,
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** Makes the error for an answer with an error status; `body` is the parsed JSON, or the text if it is not JSON. */
export function errorOf(status: number, body: unknown): PorticoError {
  const fields = typeof body === 'object' && body !== null ? (body as Record<string, unknown>) : {}
  const {
    type: _,
    title: __,
    status: ___,
    code,
    detail,
    retryable,
    request_id,
    outcome,
    errors,
    ...extras
  } = fields
  const Class = classes[status] ?? (status >= 500 ? ServerError : PorticoError)
  return new Class({
    status,
    code: textOf(code) ?? 'unexpected_reply',
    detail: textOf(detail) ?? `The answer has the status ${status}, and is not one of the gateway`,
    retryable: typeof retryable === 'boolean' ? retryable : status >= 500,
    request_id: textOf(request_id),
    outcome: textOf(outcome),
    errors: Array.isArray(errors) ? errors : [],
    extras,
  })
}

export const connectionError = (code: 'connection_failed' | 'timeout', detail: string, cause: unknown) =>
  new ConnectionError(
    {
      status: 0,
      code,
      detail,
      retryable: true,
      request_id: undefined,
      outcome: undefined,
      errors: [],
      extras: {},
    },
    { cause },
  )
