/** What is wrong with one field of a request, in the form that FastAPI clients know. */
export type Issue = {
  loc: (string | number)[]
  msg: string
  type: string
  ctx?: Record<string, unknown>
}

type Row = { status: number; retryable: boolean; when: string }

const rows = {
  validation: { status: 422, retryable: false, when: 'a field of the request is missing or wrong' },
  unauthorized: { status: 401, retryable: false, when: 'no credential, or a wrong API key' },
  invalid_token: { status: 401, retryable: true, when: 'the token is unknown, expired or revoked' },
  invalid_signature: { status: 401, retryable: false, when: 'unknown agent or wrong signature' },
  stale_timestamp: { status: 401, retryable: true, when: 'the signed timestamp is outside the window' },
  signature_replayed: { status: 401, retryable: true, when: 'the signature was used before' },
  invalid_challenge: { status: 400, retryable: false, when: 'the nonce is unknown, used or expired' },
  bad_request: { status: 400, retryable: false, when: 'the request line or its headers cannot be read' },
  insufficient_credits: { status: 402, retryable: true, when: 'the credits do not cover the call' },
  policy_denied: { status: 403, retryable: false, when: 'a rule of the policy refuses the action' },
  insufficient_scope: { status: 403, retryable: false, when: 'the token lacks the scope of the operation' },
  suspended: { status: 403, retryable: false, when: 'the account is suspended' },
  origin_not_allowed: { status: 403, retryable: false, when: 'the origin is not on the allow-list' },
  approval_required: { status: 403, retryable: true, when: 'a human has to approve the operation' },
  step_up_required: { status: 403, retryable: true, when: 'a human has to confirm the operation' },
  trading_paused: { status: 403, retryable: false, when: 'a kill switch is set' },
  token_unsafe: { status: 403, retryable: false, when: 'the security check did not pass' },
  not_found: { status: 404, retryable: false, when: 'there is no such object for this caller' },
  method_not_allowed: { status: 405, retryable: false, when: 'the path exists under another method' },
  duplicate_key: { status: 409, retryable: false, when: 'the public key is registered already' },
  idempotency_conflict: { status: 409, retryable: false, when: 'the key was used for another request' },
  possible_duplicate: { status: 409, retryable: true, when: 'the same call under another key is recent' },
  setup_incomplete: { status: 409, retryable: true, when: 'a set-up step is missing' },
  insufficient_balance: { status: 409, retryable: false, when: 'the balance does not cover the amount' },
  no_position: { status: 409, retryable: false, when: 'there is no such position to reduce' },
  entry_unknown: { status: 409, retryable: false, when: 'the entry price is not known' },
  no_route: { status: 409, retryable: true, when: 'no route leads from one token to the other' },
  insufficient_liquidity: { status: 409, retryable: true, when: 'the market cannot serve the amount' },
  quote_expired: { status: 409, retryable: true, when: 'the quote is too old' },
  market_closed: { status: 409, retryable: false, when: 'the market does not trade now' },
  market_not_routable: { status: 409, retryable: false, when: 'the market is not served' },
  order_not_cancellable: { status: 409, retryable: false, when: 'the order has ended' },
  not_cancellable: { status: 409, retryable: false, when: 'the task can no longer be cancelled' },
  account_gate: { status: 409, retryable: false, when: 'the venue does not admit the account' },
  disclaimer_required: { status: 409, retryable: false, when: 'the disclaimer is not acknowledged' },
  conflict: { status: 409, retryable: false, when: 'the state of the object forbids the action' },
  body_too_large: { status: 413, retryable: false, when: 'the body is over the limit' },
  unsupported_media_type: { status: 415, retryable: false, when: 'the body is not JSON' },
  rate_limited: { status: 429, retryable: true, when: 'too many requests' },
  headers_too_large: { status: 431, retryable: false, when: 'the headers are over the limit' },
  internal: {
    status: 500,
    retryable: true,
    when: 'a bug; the same request under the same key may be repeated',
  },
  upstream_rejected: { status: 502, retryable: false, when: 'an upstream refused a read' },
  unavailable: { status: 503, retryable: true, when: 'a part is away; nothing was sent' },
  upstream_changed: { status: 503, retryable: false, when: 'an upstream changed its protocol' },
  overloaded: { status: 503, retryable: true, when: 'the server sheds load' },
  upstream_timeout: { status: 504, retryable: true, when: 'an upstream did not answer a read in time' },
} as const satisfies Record<string, Row>

export type FaultCode = keyof typeof rows

/** The catalogue that is served to clients: code, HTTP status, whether a retry can help, when it happens. */
export const faults: Readonly<Record<FaultCode, Row>> = rows

type Details = { cause?: unknown; extras?: Record<string, unknown>; issues?: Issue[] }

/** An expected failure. Anything else that is thrown is a bug. */
export class Fault extends Error {
  readonly code: FaultCode
  readonly extras: Record<string, unknown>
  readonly issues: Issue[]

  constructor(code: FaultCode, sentence: string, { cause, extras = {}, issues = [] }: Details = {}) {
    super(sentence, cause === undefined ? undefined : { cause })
    this.name = 'Fault'
    this.code = code
    this.extras = extras
    this.issues = issues
  }

  get status(): number {
    return rows[this.code].status
  }

  get retryable(): boolean {
    return rows[this.code].retryable
  }
}

/** A 422 for one field; `field` is a path such as `body.amount_usdc`. */
export function invalid(field: string, type: string, msg: string, ctx?: Record<string, unknown>): Fault {
  const issue: Issue = { loc: field.split('.'), msg, type, ...(ctx && { ctx }) }
  return new Fault('validation', msg, { issues: [issue] })
}

export const notFound = (what: string): Fault => new Fault('not_found', `No such ${what}`)
