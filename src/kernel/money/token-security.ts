import { fullBps } from './money.ts'

/** Verdicts about tokens: what each source found, and the worst of them. */

export type TokenRef = { chainId: string; address: string }

/** `unknown` means that nothing was proven; it counts as unsafe. */
export const securityVerdicts = ['safe', 'risky', 'unknown'] as const
export type SecurityVerdict = (typeof securityVerdicts)[number]

export const securityStatuses = [
  'passed',
  'flagged',
  'unsupported_chain',
  'api_unavailable',
  'skipped',
] as const
export type SecurityStatus = (typeof securityStatuses)[number]

/** The levels are in ascending order, except `unknown`, which has no rank. */
export const riskLevels = ['very_low', 'low', 'medium', 'high', 'very_high', 'honeypot', 'unknown'] as const
export type RiskLevel = (typeof riskLevels)[number]

/** A reason of `high` or above makes a token risky; `unknown` means that something could not be found out. */
export type SecurityReason = { code: string; level: RiskLevel; message: string }

/** The taxes of a token, in hundredths of a percent; null if a tax was not measured. */
export type TokenTaxes = {
  buyTaxBps: number | null
  sellTaxBps: number | null
  transferTaxBps: number | null
}

export type Assessment = TokenTaxes & {
  source: string
  verdict: SecurityVerdict
  reasons: readonly SecurityReason[]
  isHoneypot: boolean | null
  /** The risk score from 0 to 100, where higher is worse; null if the source has no score. */
  score: number | null
}

export type TokenVerdict = TokenRef &
  TokenTaxes & {
    status: SecurityStatus
    verdict: SecurityVerdict
    /** True only if `status` is `passed`. */
    allowed: boolean
    riskLevel: RiskLevel
    reasons: readonly (SecurityReason & { source: string })[]
    sources: readonly { source: string; verdict: SecurityVerdict }[]
    isHoneypot: boolean | null
    score: number | null
    simulatedAtBlock: bigint | null
    /** The value, in micro-dollars, of the other asset in the pool of the simulation; null if it is unknown. */
    poolMicros: bigint | null
    checkedAt: Date
  }

/**
 * Returns one verdict per token, in the order of the tokens. A token that cannot be checked never makes the call throw.
 * The checks of different users take turns.
 */
export type SecurityVerdicts = {
  verdictOf(tokens: readonly TokenRef[], trader: { userId: string }): Promise<TokenVerdict[]>
}

export const noTaxes: TokenTaxes = { buyTaxBps: null, sellTaxBps: null, transferTaxBps: null }

/**
 * Returns how much of a quoted amount is missing, in hundredths of a percent, rounded up so that no tax looks
 * smaller.
 */
export function taxBps(quotedUnits: bigint, gotUnits: bigint): number | null {
  if (quotedUnits <= 0n || gotUnits < 0n) return null
  if (gotUnits >= quotedUnits) return 0
  const missing = (quotedUnits - gotUnits) * fullBps
  return Number((missing + quotedUnits - 1n) / quotedUnits)
}

const rankOf = (level: RiskLevel): number => (level === 'unknown' ? -1 : riskLevels.indexOf(level))
const riskyRank = rankOf('high')

export const isRisky = ({ level }: Pick<SecurityReason, 'level'>): boolean => rankOf(level) >= riskyRank

/** Makes an assessment whose verdict follows from the reasons alone. */
export function assessmentOf(
  source: string,
  reasons: readonly SecurityReason[],
  found: Partial<Pick<Assessment, 'isHoneypot' | 'score'> & TokenTaxes> = {},
): Assessment {
  const verdict = reasons.some(isRisky)
    ? 'risky'
    : reasons.some(({ level }) => level === 'unknown')
      ? 'unknown'
      : 'safe'
  return { ...noTaxes, isHoneypot: null, score: null, ...found, source, verdict, reasons }
}

const highest = (values: readonly (number | null)[]): number | null =>
  values.reduce((most, each) => (each !== null && (most === null || each > most) ? each : most), null)

type Own = Assessment & Pick<TokenVerdict, 'poolMicros'> & { block: bigint | null }

/**
 * Returns the worst verdict of all sources. A token is safe only if our own check says so: other sources can
 * make it risky, but never safe. A source without a verdict changes nothing.
 */
export function worstOf(
  token: TokenRef,
  { own, others, checkedAt }: { own: Own; others: readonly Assessment[]; checkedAt: Date },
): TokenVerdict {
  const all = [own, ...others]
  const verdict = all.some((each) => each.verdict === 'risky') ? 'risky' : own.verdict
  const reasons = all.flatMap(({ source, reasons: found }) => found.map((each) => ({ ...each, source })))
  const worst = reasons.reduce((most, { level }) => Math.max(most, rankOf(level)), 0)
  return {
    ...token,
    status: verdict === 'safe' ? 'passed' : verdict === 'risky' ? 'flagged' : 'api_unavailable',
    verdict,
    allowed: verdict === 'safe',
    riskLevel: verdict === 'unknown' ? 'unknown' : riskLevels[worst]!,
    reasons,
    sources: all.map(({ source, verdict: each }) => ({ source, verdict: each })),
    buyTaxBps: highest(all.map((each) => each.buyTaxBps)),
    sellTaxBps: highest(all.map((each) => each.sellTaxBps)),
    transferTaxBps: highest(all.map((each) => each.transferTaxBps)),
    isHoneypot: all.some((each) => each.isHoneypot) ? true : own.isHoneypot,
    score: highest(all.map((each) => each.score)),
    simulatedAtBlock: own.block,
    poolMicros: own.poolMicros,
    checkedAt,
  }
}
