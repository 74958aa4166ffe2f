export type InputLocation = 'path' | 'query' | 'body' | 'header'

/** One invalid field of an input, in the form of FastAPI's errors. */
export type Issue = {
  /**
   * The part of the request; absent if an operation reports the issue, because only the contract knows which part
   * it is.
   */
  location?: InputLocation
  /** The path of the field within its part of the request; an empty path means the whole part. */
  path: (string | number)[]
  msg: string
  type: string
  ctx?: Record<string, unknown>
}

/** At most this many issues are reported at once: clients rarely fix more in one go, and thousands would only cost. */
export const issuesMax = 20

type Row = { status: number; retryable: boolean; when: string }

const catalogue = {
  validation: { status: 422, retryable: false, when: 'a field of the request is missing or wrong' },
  unauthorized: { status: 401, retryable: false, when: 'no credential, or a wrong API key' },
  invalid_token: { status: 401, retryable: true, when: 'the token is unknown, expired or revoked' },
  invalid_signature: { status: 401, retryable: false, when: 'unknown agent or wrong signature' },
  stale_timestamp: { status: 401, retryable: false, when: 'the signed timestamp is outside the window' },
  signature_replayed: { status: 401, retryable: false, when: 'the signature was used before' },
  invalid_challenge: { status: 400, retryable: false, when: 'the nonce is unknown, used or expired' },
  bad_request: { status: 400, retryable: false, when: 'the request line or its headers cannot be read' },
  insufficient_credits: {
    status: 402,
    retryable: true,
    when: 'the credits do not cover the operation; it succeeds once credits were bought',
  },
  policy_denied: { status: 403, retryable: false, when: 'a rule of the policy refuses the action' },
  approval_required: {
    status: 403,
    retryable: false,
    when: 'a person has to approve the action, and none belongs to the agent, or the operation is no task that could wait',
  },
  insufficient_scope: { status: 403, retryable: false, when: 'the token lacks the scope of the operation' },
  origin_not_allowed: {
    status: 403,
    retryable: false,
    when: 'over MCP, the Host or the Origin of the request is not allowed',
  },
  signup_required: { status: 403, retryable: true, when: 'the person of the token has not signed up yet' },
  suspended: { status: 403, retryable: false, when: 'the account is suspended' },
  step_up_required: { status: 403, retryable: false, when: 'a human has to confirm the operation' },
  token_unsafe: { status: 403, retryable: false, when: 'the security check did not pass the token' },
  trading_paused: { status: 403, retryable: false, when: 'a kill switch is set' },
  not_found: { status: 404, retryable: false, when: 'there is no such object for this caller' },
  method_not_allowed: { status: 405, retryable: false, when: 'the path exists under another method' },
  duplicate_key: { status: 409, retryable: false, when: 'the public key is registered already' },
  idempotency_conflict: { status: 409, retryable: false, when: 'the key was used for another request' },
  possible_duplicate: {
    status: 409,
    retryable: false,
    when: 'over MCP, the same request was accepted less than 10 minutes ago under another key',
  },
  setup_incomplete: { status: 409, retryable: true, when: 'a set-up step is missing' },
  disclaimer_required: {
    status: 409,
    retryable: true,
    when: 'the disclaimer on prediction markets was not acknowledged yet',
  },
  venue_restricted: {
    status: 403,
    retryable: false,
    when: 'the venue lets this account or this region only close, or not trade at all',
  },
  shares_not_settled: {
    status: 409,
    retryable: true,
    when: 'the shares were matched, and their settlement is not confirmed yet',
  },
  not_resolved: { status: 409, retryable: true, when: 'the chain has no result of the market yet' },
  insufficient_balance: { status: 409, retryable: false, when: 'the balance does not cover the amount' },
  entry_unknown: { status: 409, retryable: false, when: 'no purchase of the token gives an entry price' },
  no_position: { status: 409, retryable: false, when: 'there is no such position to reduce' },
  insufficient_liquidity: { status: 409, retryable: true, when: 'the market cannot serve the amount' },
  no_route: { status: 409, retryable: true, when: 'no provider has a route for the swap' },
  quote_expired: { status: 409, retryable: true, when: 'the quote is no longer valid' },
  market_closed: { status: 409, retryable: false, when: 'the market does not trade now' },
  order_not_cancellable: { status: 409, retryable: false, when: 'the order has ended' },
  not_cancellable: { status: 409, retryable: false, when: 'the task can no longer be cancelled' },
  limit_reached: { status: 409, retryable: false, when: 'the user has as many of them as a user may have' },
  asset_in_use: {
    status: 409,
    retryable: false,
    when: 'another strategy of the account trades the market live',
  },
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

export type FaultCode = keyof typeof catalogue

/** The catalogue that is served to clients: code, HTTP status, whether a retry can help, when it happens. */
export const faults: Readonly<Record<FaultCode, Row>> = catalogue

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
    return catalogue[this.code].status
  }

  get retryable(): boolean {
    return catalogue[this.code].retryable
  }
}

/** Makes the fault of an action that the state of an object forbids; `reason` says which state. */
export const conflict = (sentence: string, reason: string): Fault =>
  new Fault('conflict', sentence, { extras: { reason } })

/** Who owns a budget, such as a rate limit. The use of one owner never reduces the budget of another. */
export type BudgetOwner = 'user' | 'backend' | 'address' | 'instance' | 'platform'
export type SpentBudget = { budget: string; owner: BudgetOwner; retryAfterSeconds: number }

/**
 * Makes the error of an exhausted budget, which names the budget, its owner, and when the budget is available
 * again.
 */
export const budgetSpent = (
  code: 'rate_limited' | 'overloaded' | 'unavailable',
  sentence: string,
  { budget, owner, retryAfterSeconds }: SpentBudget,
): Fault => new Fault(code, sentence, { extras: { budget, owner, retry_after: retryAfterSeconds } })

export const internalFault = (cause: unknown, { mayHaveActed }: { mayHaveActed: boolean }): Fault =>
  new Fault('internal', 'Something went wrong on our side', {
    cause,
    extras: mayHaveActed ? { outcome: 'unknown' } : {},
  })

/** Returns a 422 for one field; `field` is a path such as `amount_usdc` or `tokens.0.address`. */
export const invalid = (field: string, type: string, msg: string, ctx?: Record<string, unknown>): Fault => {
  const path = field.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part))
  return new Fault('validation', msg, { issues: [{ path, msg, type, ...(ctx && { ctx }) }] })
}

/** Renames the fields in the issues of an inner call's error to the names that the request uses. */
export function renameFields(error: unknown, names: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof Fault) || error.code !== 'validation') return error
  const issues = error.issues.map((issue) => {
    const [first, ...rest] = issue.path
    return { ...issue, path: issue.path.length === 0 ? [] : [names[String(first)] ?? first!, ...rest] }
  })
  return new Fault('validation', error.message, { cause: error, extras: error.extras, issues })
}

/** Makes the 422 of a request that sent both or neither of two fields, of which exactly one is required. */
export const exactlyOneOf = (first: string, second: string, { hasBoth }: { hasBoth: boolean }): Fault =>
  invalid(
    first,
    'exactly_one_of',
    `Exactly one of \`${first}\` and \`${second}\` is required: ${hasBoth ? 'leave one of them out' : 'add one of them'}`,
    { fields: [first, second] },
  )

/**
 * Makes the 404 of an object that is absent or belongs to another user, in the same words. `listedBy` is the
 * operation that lists such objects.
 */
export const notFound = (what: string, listedBy?: string): Fault => {
  const lists = listedBy === undefined ? '' : `; \`${listedBy}\` lists those that exist`
  return new Fault('not_found', `There is no such ${what}${lists}`)
}
