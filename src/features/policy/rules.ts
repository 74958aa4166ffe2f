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
const fold = (address: string) => (address.startsWith('0x') ? address.toLowerCase() : address)
export const placeOf = (chainId: string, address: string): string => `${chainId}:${fold(address)}`

export type Ask = {
  chainId: string
  tokens: readonly string[]
  recipients: readonly string[]
  usdMicros: bigint
  exit: boolean
}
export type Pause =
  | { scope: 'global' | 'user'; since: Date }
  | { scope: 'venue'; since: Date; reason: string }
export type Standing = {
  limits: Limits
  house: Limits
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
export const countedMicros = ({ exit, usdMicros }: Pick<Ask, 'exit' | 'usdMicros'>): bigint =>
  exit ? 0n : usdMicros

export const remainingMicros = ({ limits, spentMicros }: Pick<Standing, 'limits' | 'spentMicros'>): bigint =>
  limits.perDayMicros > spentMicros ? limits.perDayMicros - spentMicros : 0n

/** Where venue and gateway disagree, a new trading key may be the remedy. It spends nothing. */
const harmless = ({ scope }: Pause, { usdMicros }: Ask): boolean => scope === 'venue' && usdMicros === 0n

/** Denies by default: null only where every rule agrees. */
export function judge(ask: Ask, standing: Standing): Refusal | null {
  const { house, paused } = standing
  // Tightened lists and spent caps must not lock money in; where it goes is asked of exits too.
  const limits = ask.exit ? house : standing.limits
  if (paused && !ask.exit && !harmless(paused, ask)) return { code: 'trading_paused', ...paused }
  if (ask.usdMicros < 0n) return refuse('amount', 'the value is negative')
  if (!limits.chains.includes(ask.chainId)) return refuse('chain', `chain ${ask.chainId} is not allowed`)
  return judgeTokens(ask, limits) ?? judgeRecipients(ask, standing, limits) ?? judgeCaps(ask, standing)
}

function judgeTokens({ chainId, tokens }: Ask, limits: Limits): Refusal | null {
  const foreign = tokens.find((each) => limits.tokens?.includes(placeOf(chainId, each)) === false)
  return foreign === undefined ? null : refuse('token', `token ${foreign} is not allowed`)
}

function judgeRecipients({ chainId, recipients }: Ask, { ownAddresses }: Standing, limits: Limits) {
  const own = new Set(ownAddresses.map(fold))
  const foreign = recipients.find(
    (each) => !own.has(fold(each)) && !limits.recipients.includes(placeOf(chainId, each)),
  )
  return foreign === undefined ? null : refuse('recipient', `recipient ${foreign} is not allowed`)
}

const least = (a: bigint, b: bigint | null) => (b !== null && b < a ? b : a)

function judgeCaps(ask: Ask, standing: Standing): Refusal | null {
  if (ask.exit) return null
  const { perTransactionMicros, perDayMicros } = standing.limits
  const remaining = remainingMicros(standing)
  if (ask.usdMicros > perTransactionMicros) {
    const reason = 'the value is above the cap of one transaction'
    return refuse(
      'per_transaction_usd',
      reason,
      usd(perTransactionMicros),
      usd(least(perTransactionMicros, remaining)),
    )
  }
  if (ask.usdMicros <= remaining) return null
  const reason = 'the value does not fit into what is left of the last 24 hours'
  return refuse('per_day_usd', reason, usd(perDayMicros), usd(remaining))
}

/** What a user took away from the platform's limits; null leaves the platform's own. */
export type Tightening = { [K in keyof Limits]: Limits[K] | null }

const within = (house: readonly string[], own: readonly string[] | null) =>
  own === null ? house : house.filter((each) => own.includes(each))

/** Never wider than the platform's limits, also when these became stricter later. */
export const narrow = (house: Limits, own: Tightening): Limits => ({
  perTransactionMicros: least(house.perTransactionMicros, own.perTransactionMicros),
  perDayMicros: least(house.perDayMicros, own.perDayMicros),
  chains: within(house.chains, own.chains),
  tokens: house.tokens === null ? own.tokens : within(house.tokens, own.tokens),
  recipients: within(house.recipients, own.recipients),
})

/** The fields in which `wanted` would allow what `limits` do not. */
export function loosened(limits: Limits, wanted: Tightening): (keyof Limits)[] {
  const above = (most: bigint, asked: bigint | null) => asked !== null && asked > most
  const outside = (list: readonly string[] | null, asked: readonly string[] | null) =>
    list !== null && (asked ?? []).some((each) => !list.includes(each))
  const wider: Record<keyof Limits, boolean> = {
    perTransactionMicros: above(limits.perTransactionMicros, wanted.perTransactionMicros),
    perDayMicros: above(limits.perDayMicros, wanted.perDayMicros),
    chains: outside(limits.chains, wanted.chains),
    tokens: outside(limits.tokens, wanted.tokens),
    recipients: outside(limits.recipients, wanted.recipients),
  }
  return (Object.keys(wider) as (keyof Limits)[]).filter((field) => wider[field])
}
