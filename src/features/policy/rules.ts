import { canonicalAddress, toAssetId } from '#kernel/money/chains.ts'
import { fromUnits, usdDecimals } from '#kernel/money/money.ts'
import { type Principal, transferOperation } from '#kernel/task/policy-action.ts'

/** The limits of one user, or of the platform. Tokens and recipients are `<chain id>:<address>`. */
export type Limits = {
  perTransactionMicros: bigint
  perDayMicros: bigint
  /** The value that chats may start by themselves in 24 hours. */
  chatPerDayMicros: bigint
  chains: readonly string[]
  /** The tokens that may be moved; null allows any token. */
  tokens: readonly string[] | null
  /** The contracts that may receive money; the user's own wallets are always allowed. */
  recipients: readonly string[]
  /** A request of an agent above this value waits for a person; null lets no request wait. */
  approvalAboveMicros: bigint | null
}

export const dayMs = 86_400_000

export const chainAddressOf = (chainId: string, address: string): string =>
  toAssetId({ id: chainId }, address)

export type PolicyRequest = {
  operation?: string
  /** Who asks; without a principal, an agent is assumed. */
  principal?: Principal
  chainId: string
  tokens: readonly string[]
  recipients: readonly string[]
  usdMicros: bigint
  exit: boolean
  /** The accepted loss, if it is a greater part of the value than the default allows. */
  acceptedLossBps?: number
  /** The value up to which a person has approved this request before. */
  approvedMicros?: bigint | null
}
export type Pause =
  /** The scope `person` pauses by the switch of the person to whom the agent is linked. */
  { scope: 'global' | 'person' | 'user'; since: Date } | { scope: 'venue'; since: Date; reason: string }
/** Somebody else's address that a person has allowed and that is in effect. */
export type EffectiveRecipient = { chainId: string; address: string; agents: AgentsRule }
/** Whether agents may send to a recipient not at all, with the approval of a person, or by themselves. */
export type AgentsRule = 'denied' | 'approval' | 'allowed'
export type PolicyState = {
  /** The recipients of transfers; no other operation pays to them. */
  effectiveRecipients?: readonly EffectiveRecipient[]
  limits: Limits
  platformLimits: Limits
  ownAddresses: readonly string[]
  /** The amount that counts against the cap of the last 24 hours. */
  spentMicros: bigint
  /** The part of the spent amount that chats have started by themselves. */
  chatSpentMicros: bigint
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
  | 'agent_transfer'
  | 'per_transaction_usd'
  | 'per_day_usd'
  | 'chat_per_day_usd'
  | 'budget_usd'
  | 'approval_above_usd'
  | 'reservation'

export const usd = (micros: bigint): string => fromUnits(micros, usdDecimals)
export const refuse = (
  rule: Rule,
  reason: string,
  limit: string | null = null,
  remaining: string | null = null,
): Refusal => ({ code: 'policy_denied', rule, limit, remaining, reason })

/** The amount that counts against the caps. An exit returns money to the user and counts nothing. */
export const countedMicros = ({ exit, usdMicros }: Pick<PolicyRequest, 'exit' | 'usdMicros'>): bigint =>
  exit ? 0n : usdMicros

export const remainingMicros = ({
  limits,
  spentMicros,
}: Pick<PolicyState, 'limits' | 'spentMicros'>): bigint =>
  limits.perDayMicros > spentMicros ? limits.perDayMicros - spentMicros : 0n

export const chatRemainingMicros = ({
  limits,
  chatSpentMicros,
}: Pick<PolicyState, 'limits' | 'chatSpentMicros'>): bigint =>
  limits.chatPerDayMicros > chatSpentMicros ? limits.chatPerDayMicros - chatSpentMicros : 0n

/** A frozen venue account may still approve a new trading key, which may be the remedy and spends nothing. */
const isExempt = ({ scope }: Pause, { usdMicros }: PolicyRequest): boolean =>
  scope === 'venue' && usdMicros === 0n

/** Denies by default, and returns null only if every rule allows. */
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
    (request.operation === transferOperation
      ? evaluateTransfer(request, state)
      : evaluateRecipients(request, state, limits)) ??
    evaluateCaps(request, state)
  )
}

function evaluateTokens({ chainId, tokens }: PolicyRequest, limits: Limits): Refusal | null {
  const disallowed = tokens.find((each) => limits.tokens?.includes(chainAddressOf(chainId, each)) === false)
  return disallowed === undefined ? null : refuse('token', `token ${disallowed} is not allowed`)
}

/** A transfer goes only to effective recipients, and an agent's only to those where a person has allowed agents. */
function evaluateTransfer(
  { chainId, recipients, principal }: PolicyRequest,
  { effectiveRecipients = [] }: PolicyState,
): Refusal | null {
  if (recipients.length === 0) return refuse('recipient', 'a transfer has no recipient')
  for (const address of recipients) {
    const found = recipientAt({ chainId, effectiveRecipients }, address)
    if (!found)
      return refuse('recipient', `${address} is no effective recipient; \`recipients_list\` lists yours`)
    if (principal !== 'person' && principal !== 'app' && found.agents === 'denied')
      return refuse(
        'agent_transfer',
        'agents may not send to this recipient: an app of the person sends with an approval, or the person allows agents there',
      )
  }
  return null
}

type KnownRecipients = { chainId: string; effectiveRecipients: readonly EffectiveRecipient[] }
export const recipientAt = ({ chainId, effectiveRecipients }: KnownRecipients, address: string) =>
  effectiveRecipients.find(
    (each) => each.chainId === chainId && canonicalAddress(each.address) === canonicalAddress(address),
  )

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
  if (request.usdMicros <= remaining) return evaluateChatCap(request, state)
  const reason = `the value exceeds the ${usd(remaining)} USD that remain of the cap of ${usd(perDayMicros)} USD per 24 hours`
  return refuse('per_day_usd', reason, usd(perDayMicros), usd(remaining))
}

function evaluateChatCap({ principal, usdMicros }: PolicyRequest, state: PolicyState): Refusal | null {
  const remaining = chatRemainingMicros(state)
  if (principal !== 'chat' || usdMicros <= remaining) return null
  const limit = usd(state.limits.chatPerDayMicros)
  const reason = `the value exceeds the ${usd(remaining)} USD that remain of the ${limit} USD that chats may start by themselves in 24 hours`
  return refuse('chat_per_day_usd', reason, limit, usd(remaining))
}

/**
 * A chat starts no transfers by itself, and nothing that counts 0 dollars, because the limit for chats could not bound
 * such actions.
 */
export function refusedToChats(request: PolicyRequest, state: PolicyState): Refusal | null {
  if (request.principal !== 'chat') return null
  if (request.operation !== transferOperation && countedMicros(request) > 0n) return null
  const reason = 'chats start by themselves only what counts against the limits'
  const remaining = usd(chatRemainingMicros(state))
  return refuse('chat_per_day_usd', reason, usd(state.limits.chatPerDayMicros), remaining)
}

/** Returns a refusal of what is more than a schedule may still spend of its budget. */
export function refusedByBudget(
  request: PolicyRequest,
  { micros, spentMicros }: { micros: bigint; spentMicros: bigint },
): Refusal | null {
  const left = micros > spentMicros ? micros - spentMicros : 0n
  if (countedMicros(request) <= left) return null
  const reason = `the value exceeds the ${usd(left)} USD that remain of the budget of ${usd(micros)} USD of the schedule`
  return refuse('budget_usd', reason, usd(micros), usd(left))
}

/** The limits that a user has set. Null keeps the platform's limit, and lets chats start nothing. */
export type Overrides = { [K in keyof Limits]: Limits[K] | null }

const intersectLists = (platform: readonly string[], own: readonly string[] | null) =>
  own === null ? platform : platform.filter((each) => own.includes(each))

/** Returns the user's limits within the platform's, even where the platform's became stricter later. */
export const intersect = (platformLimits: Limits, own: Overrides): Limits => ({
  perTransactionMicros: min(platformLimits.perTransactionMicros, own.perTransactionMicros),
  perDayMicros: min(platformLimits.perDayMicros, own.perDayMicros),
  chatPerDayMicros: min(platformLimits.chatPerDayMicros, own.chatPerDayMicros ?? 0n),
  chains: intersectLists(platformLimits.chains, own.chains),
  tokens: platformLimits.tokens === null ? own.tokens : intersectLists(platformLimits.tokens, own.tokens),
  recipients: intersectLists(platformLimits.recipients, own.recipients),
  approvalAboveMicros:
    platformLimits.approvalAboveMicros === null
      ? own.approvalAboveMicros
      : min(platformLimits.approvalAboveMicros, own.approvalAboveMicros),
})

/** New values of some fields; a field that is absent stays as it is. */
export type Wanted = { [K in keyof Limits]?: Limits[K] }

/** Returns the fields in which `wanted` allows more than `limits`. */
export function widenedFields(limits: Limits, wanted: Wanted): (keyof Limits)[] {
  const exceeds = (max: bigint, asked: bigint | undefined) => asked !== undefined && asked > max
  const hasUnlisted = (list: readonly string[] | null, asked: readonly string[] | null | undefined) =>
    list !== null && (asked === null || (asked ?? []).some((each) => !list.includes(each)))
  const wider: Record<keyof Limits, boolean> = {
    perTransactionMicros: exceeds(limits.perTransactionMicros, wanted.perTransactionMicros),
    perDayMicros: exceeds(limits.perDayMicros, wanted.perDayMicros),
    chatPerDayMicros: exceeds(limits.chatPerDayMicros, wanted.chatPerDayMicros),
    chains: hasUnlisted(limits.chains, wanted.chains),
    tokens: hasUnlisted(limits.tokens, wanted.tokens),
    recipients: hasUnlisted(limits.recipients, wanted.recipients),
    approvalAboveMicros:
      limits.approvalAboveMicros !== null &&
      wanted.approvalAboveMicros !== undefined &&
      (wanted.approvalAboveMicros === null || wanted.approvalAboveMicros > limits.approvalAboveMicros),
  }
  return (Object.keys(wider) as (keyof Limits)[]).filter((field) => wider[field])
}

/** A limit that a person has raised, which counts from `effectiveAt` on. */
export type Change = {
  id: string
  field: keyof Limits
  value: Limits[keyof Limits]
  requestedAt: Date
  effectiveAt: Date
}

/** Splits the changes: those in effect are applied to the user's limits, and the others are pending. */
export function withChanges(
  own: Overrides,
  changes: readonly Change[],
  now: Date,
): { own: Overrides; pending: Change[] } {
  const inEffect = changes.filter(({ effectiveAt }) => effectiveAt <= now)
  return {
    own: { ...own, ...Object.fromEntries(inEffect.map(({ field, value }) => [field, value])) },
    pending: changes.filter(({ effectiveAt }) => effectiveAt > now),
  }
}

const isSameValue = (a: Limits[keyof Limits] | undefined, b: Limits[keyof Limits]): boolean =>
  Array.isArray(a) && Array.isArray(b)
    ? a.length === b.length && a.every((each) => b.includes(each))
    : a === b

type State = { own: Overrides; pending: readonly Change[]; limits: Limits }
/** Lower limits count at once, and higher ones wait. */
export type Decision = {
  own: Overrides
  tightened: (keyof Limits)[]
  /** The raised fields, without those that wait for the same value already. */
  raised: (keyof Limits)[]
  /** The pending changes that stay; a request replaces the pending changes of the fields that it names. */
  remaining: Change[]
}

export function decide({ own, pending, limits }: State, wanted: Wanted): Decision {
  const named = Object.keys(wanted) as (keyof Limits)[]
  const wider = widenedFields(limits, wanted)
  const tightened = named.filter((field) => !wider.includes(field))
  const waitsAlready = ({ field, value }: Change) =>
    wider.includes(field) && isSameValue(wanted[field], value)
  const remaining = pending.filter((change) => !named.includes(change.field) || waitsAlready(change))
  return {
    own: { ...own, ...Object.fromEntries(tightened.map((field) => [field, wanted[field]])) },
    tightened,
    raised: wider.filter((field) => !remaining.some((change) => change.field === field)),
    remaining,
  }
}
