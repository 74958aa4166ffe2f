import { assetOf, canonicalAddress } from '#kernel/chains.ts'
import { fromUnits, usdDecimals } from '#kernel/money.ts'

/** Limits of one user, or of the platform. Tokens and recipients are `<chain id>:<address>`. */
export type Limits = {
  perTransactionMicros: bigint
  perDayMicros: bigint
  chains: readonly string[]
  /** null: any token. */
  tokens: readonly string[] | null
  /** Contracts that may receive money; the user's own wallets are always allowed. */
  recipients: readonly string[]
}

export const dayMs = 86_400_000

export const chainAddressOf = (chainId: string, address: string): string => assetOf({ id: chainId }, address)

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
  /** Amount counted against the cap of the last 24 hours. */
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

/** The amount that counts against the caps: an exit returns money to the user and counts nothing. */
export const countedMicros = ({ exit, usdMicros }: Pick<PolicyRequest, 'exit' | 'usdMicros'>): bigint =>
  exit ? 0n : usdMicros

export const remainingMicros = ({
  limits,
  spentMicros,
}: Pick<PolicyState, 'limits' | 'spentMicros'>): bigint =>
  limits.perDayMicros > spentMicros ? limits.perDayMicros - spentMicros : 0n

/** A frozen venue account still allows approving a new trading key, which may be the remedy and spends nothing. */
const isExempt = ({ scope }: Pause, { usdMicros }: PolicyRequest): boolean =>
  scope === 'venue' && usdMicros === 0n

/** Denies by default: null only where every rule allows. */
export function evaluate(request: PolicyRequest, state: PolicyState): Refusal | null {
  const { platformLimits, paused } = state
  // Tightened lists and spent caps must not lock money in. The recipients of an exit are still checked.
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
  const own = new Set(ownAddresses.map(canonicalAddress))
  const disallowed = recipients.find(
    (each) => !own.has(canonicalAddress(each)) && !limits.recipients.includes(chainAddressOf(chainId, each)),
  )
  return disallowed === undefined ? null : refuse('recipient', `recipient ${disallowed} is not allowed`)
}

const min = (a: bigint, b: bigint | null) => (b !== null && b < a ? b : a)

function evaluateCaps(request: PolicyRequest, state: PolicyState): Refusal | null {
  if (request.exit) return null
  const { perTransactionMicros, perDayMicros } = state.limits
  const remaining = remainingMicros(state)
  if (request.usdMicros > perTransactionMicros) {
    const reason = `the value exceeds the cap of ${usd(perTransactionMicros)} USD per transaction`
    return refuse(
      'per_transaction_usd',
      reason,
      usd(perTransactionMicros),
      usd(min(perTransactionMicros, remaining)),
    )
  }
  if (request.usdMicros <= remaining) return null
  const reason = `the value exceeds the ${usd(remaining)} USD that remain of the cap of ${usd(perDayMicros)} USD per 24 hours`
  return refuse('per_day_usd', reason, usd(perDayMicros), usd(remaining))
}

/** Limits that a user tightened; null keeps the platform's. */
export type Overrides = { [K in keyof Limits]: Limits[K] | null }

const intersectLists = (platform: readonly string[], own: readonly string[] | null) =>
  own === null ? platform : platform.filter((each) => own.includes(each))

/** Never wider than the platform's limits, also when these become stricter later. */
export const intersect = (platformLimits: Limits, own: Overrides): Limits => ({
  perTransactionMicros: min(platformLimits.perTransactionMicros, own.perTransactionMicros),
  perDayMicros: min(platformLimits.perDayMicros, own.perDayMicros),
  chains: intersectLists(platformLimits.chains, own.chains),
  tokens: platformLimits.tokens === null ? own.tokens : intersectLists(platformLimits.tokens, own.tokens),
  recipients: intersectLists(platformLimits.recipients, own.recipients),
})

/** The fields in which `wanted` allows more than `limits`. */
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
