import { Fault } from '#kernel/contract/fault.ts'
import {
  type Assessment,
  assessmentOf,
  type RiskLevel,
  riskLevels,
  type SecurityReason,
} from '#kernel/money/token-security.ts'
import { foreignText } from '#kernel/money/token-security-reports.ts'
import { isRecord } from '#kernel/wire/json.ts'

/** Reads the answer of honeypot.is to `GET /v2/IsHoneypot`. An absent field is unknown, never false. */

export const source = 'honeypot.is'

const unusable = (what: string) => new Fault('unavailable', `${source} answered ${what}`)
const unknown = (code: string, message: string): Assessment =>
  assessmentOf(source, [{ code, level: 'unknown', message }])

export function assessReply(
  { status, body }: { status: number; body: unknown },
  address: string,
): Assessment {
  if (!isRecord(body)) throw unusable('with something that is no report')
  if (status === 404) return unknown('not_reported', `${source} does not know a pair of this token`)
  if (status !== 200) throw unusable(`with status ${status}`)
  const { token, summary, simulationSuccess, honeypotResult, simulationResult, contractCode } = body
  if (!isRecord(token) || String(token.address).toLowerCase() !== address.toLowerCase())
    throw unusable('about another token')
  const isHoneypot = isRecord(honeypotResult) ? honeypotResult.isHoneypot : undefined
  const level = levelOf(summary)
  const score = scoreOf(summary)
  if (isHoneypot === true) {
    const why = foreignText(isRecord(honeypotResult) ? honeypotResult.honeypotReason : '')
    const message = `${source} calls it a honeypot${why === '' ? '' : `: ${why}`}`
    return assessmentOf(source, [{ code: 'honeypot', level: 'honeypot', message }], {
      ...taxesOf(simulationResult),
      isHoneypot: true,
      score,
    })
  }
  const reasons: SecurityReason[] = [...codeReasons(contractCode)]
  if (level !== 'very_low')
    reasons.push({ code: 'provider_risk', level, message: `${source} gives it the risk ${level}` })
  if (simulationSuccess !== true || isHoneypot !== false || !hasTaxes(simulationResult))
    reasons.push({ code: 'not_simulated', level: 'unknown', message: `${source} simulated no trade of it` })
  return assessmentOf(source, reasons, {
    ...taxesOf(simulationResult),
    isHoneypot: simulationSuccess === true && isHoneypot === false ? false : null,
    score,
  })
}

const levelOf = (summary: unknown): RiskLevel =>
  riskLevels.find((level) => isRecord(summary) && summary.risk === level) ?? 'unknown'

function scoreOf(summary: unknown): number | null {
  const score = isRecord(summary) ? summary.riskLevel : undefined
  return typeof score === 'number' && score >= 0 && score <= 100 ? score : null
}

/**
 * Converts a percentage to hundredths of a percent, rounded up like the gateway's own figures; null if the value is no
 * percentage.
 */
function bpsOf(value: unknown): number | null {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0 || value > 100) return null
  return Math.ceil(Number((value * 100).toFixed(6)))
}

const taxFields = ['buyTax', 'sellTax', 'transferTax'] as const
const hasTaxes = (result: unknown): boolean =>
  isRecord(result) && taxFields.slice(0, 2).every((name) => bpsOf(result[name]) !== null)

function taxesOf(result: unknown) {
  const [buyTaxBps, sellTaxBps, transferTaxBps] = taxFields.map((name) =>
    isRecord(result) ? bpsOf(result[name]) : null,
  ) as [number | null, number | null, number | null]
  return { buyTaxBps, sellTaxBps, transferTaxBps }
}

function codeReasons(contractCode: unknown): SecurityReason[] {
  if (!isRecord(contractCode)) return []
  return contractCode.openSource === false
    ? [{ code: 'not_open_source', level: 'medium', message: 'The source of its code is not published' }]
    : []
}
