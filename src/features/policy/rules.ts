import { fromUnits, usdDecimals } from '#kernel/money.ts'

/** Limits of one user, or of the platform. A place is a chain and an address on it. */
export type Limits = {
  perTransactionMicros: bigint
  perDayMicros: bigint
  chains: readonly string[]
  /** null: any token. */
  tokens: readonly string[] | null
  /** Contracts that may take money; the user's own wallets always may. */
  recipients: readonly string[]
}

export const dayMs = 86_400_000

/** EVM addresses are one place in any case; those of Solana are not. */
const normalize = (address: string) => (address.startsWith('0x') ? address.toLowerCase() : address)
export const chainAddressOf = (chainId: string, address: string): string => `${chainId}:${normalize(address)}`

export type PolicyRequest = {
  chainId: string
  tokens: readonly string[]
  recipients: readonly string[]
  usdMicros: bigint
  exit: boolean
}
export type Pause =
  | { scope: 'global' | 'user'; since: Date }
  | { scope: 'venue'; since: Date; reason: string }
export type PolicyState = {
  limits: Limits
  platformLimits: Limits
  ownAddresses: readonly string[]
  /** What the last 24 hours took from the day's cap. */
  spentMicros: bigint
  paused: Pause | null
}
export type Refusal =
  | ({ code: 'trading_paused' } & Pause)
  | { code: 'policy_denied'; rule: Rule; limit: string | null; remaining: string | null; reason: string }
export type Rule =
  | 'amount'
  | 'chain'
  | 'token'
  | 'recipient'
  | 'per_transaction_usd'
  | 'per_day_usd'
  | 'reservation'

export const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)
export const refuse = (
  rule: Rule,
  reason: string,
  limit: string | null = null,
  remaining: string | null = null,
): Refusal => ({ code: 'policy_denied', rule, limit, remaining, reason })

/** What an ask takes from the caps: an exit brings money home and takes nothing. */
export const countedMicros = ({ exit, usdMicros }: Pick<PolicyRequest, 'exit' | 'usdMicros'>): bigint =>
  exit ? 0n : usdMicros

export const remainingMicros = ({
  limits,
  spentMicros,
}: Pick<PolicyState, 'limits' | 'spentMicros'>): bigint =>
  limits.perDayMicros > spentMicros ? limits.perDayMicros - spentMicros : 0n

/** Where venue and gateway disagree, a new trading key may be the remedy. It spends nothing. */
const isExempt = ({ scope }: Pause, { usdMicros }: PolicyRequest): boolean =>
  scope === 'venue' && usdMicros === 0n

/** Denies by default: null only where every rule agrees. */
export function evaluate(request: PolicyRequest, state: PolicyState): Refusal | null {
  const { platformLimits, paused } = state
  // Tightened lists and spent caps must not lock money in; where it goes is asked of exits too.
  const limits = request.exit ? platformLimits : state.limits
  if (paused && !request.exit && !isExempt(paused, request)) return { code: 'trading_paused', ...paused }
  if (request.usdMicros < 0n) return refuse('amount', 'the value is negative')
  if (!limits.chains.includes(request.chainId))
    return refuse('chain', `chain ${request.chainId} is not allowed`)
  return (
    evaluateTokens(request, limits) ??
    evaluateRecipients(request, state, limits) ??
    evaluateCaps(request, state)
  )
}

function evaluateTokens({ chainId, tokens }: PolicyRequest, limits: Limits): Refusal | null {
  const disallowed = tokens.find((each) => limits.tokens?.includes(chainAddressOf(chainId, each)) === false)
  return disallowed === undefined ? null : refuse('token', `token ${disallowed} is not allowed`)
}

function evaluateRecipients(
  { chainId, recipients }: PolicyRequest,
  { ownAddresses }: PolicyState,
  limits: Limits,
) {
  const own = new Set(ownAddresses.map(normalize))
  const disallowed = recipients.find(
    (each) => !own.has(normalize(each)) && !limits.recipients.includes(chainAddressOf(chainId, each)),
  )
  return disallowed === undefined ? null : refuse('recipient', `recipient ${disallowed} is not allowed`)
}

const min = (a: bigint, b: bigint | null) => (b !== null && b < a ? b : a)

function evaluateCaps(request: PolicyRequest, state: PolicyState): Refusal | null {
  if (request.exit) return null
  const { perTransactionMicros, perDayMicros } = state.limits
  const remaining = remainingMicros(state)
  if (request.usdMicros > perTransactionMicros) {
    const reason = 'the value is above the cap of one transaction'
    return refuse(
      'per_transaction_usd',
      reason,
      usd(perTransactionMicros),
      usd(min(perTransactionMicros, remaining)),
    )
  }
  if (request.usdMicros <= remaining) return null
  const reason = 'the value does not fit into what is left of the last 24 hours'
  return refuse('per_day_usd', reason, usd(perDayMicros), usd(remaining))
}

/** What a user took away from the platform's limits; null leaves the platform's own. */
export type Overrides = { [K in keyof Limits]: Limits[K] | null }

const intersectLists = (platform: readonly string[], own: readonly string[] | null) =>
  own === null ? platform : platform.filter((each) => own.includes(each))

/** Never wider than the platform's limits, also when these became stricter later. */
export const intersect = (platformLimits: Limits, own: Overrides): Limits => ({
  perTransactionMicros: min(platformLimits.perTransactionMicros, own.perTransactionMicros),
  perDayMicros: min(platformLimits.perDayMicros, own.perDayMicros),
  chains: intersectLists(platformLimits.chains, own.chains),
  tokens: platformLimits.tokens === null ? own.tokens : intersectLists(platformLimits.tokens, own.tokens),
  recipients: intersectLists(platformLimits.recipients, own.recipients),
})

/** The fields in which `wanted` would allow what `limits` do not. */
export function widenedFields(limits: Limits, wanted: Overrides): (keyof Limits)[] {
  const exceeds = (max: bigint, asked: bigint | null) => asked !== null && asked > max
  const hasUnlisted = (list: readonly string[] | null, asked: readonly string[] | null) =>
    list !== null && (asked ?? []).some((each) => !list.includes(each))
  const wider: Record<keyof Limits, boolean> = {
    perTransactionMicros: exceeds(limits.perTransactionMicros, wanted.perTransactionMicros),
    perDayMicros: exceeds(limits.perDayMicros, wanted.perDayMicros),
    chains: hasUnlisted(limits.chains, wanted.chains),
    tokens: hasUnlisted(limits.tokens, wanted.tokens),
    recipients: hasUnlisted(limits.recipients, wanted.recipients),
  }
  return (Object.keys(wider) as (keyof Limits)[]).filter((field) => wider[field])
}
