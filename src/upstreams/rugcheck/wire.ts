import { Fault } from '#kernel/contract/fault.ts'
import { type Assessment, assessmentOf, type SecurityReason } from '#kernel/money/token-security.ts'
import { foreignText } from '#kernel/money/token-security-reports.ts'
import { isRecord } from '#kernel/wire/json.ts'

/** Reads the answer of RugCheck to `GET /v1/tokens/{mint}/report`. An absent field is unknown, never false. */

export const source = 'rugcheck'

const risksMax = 20
const liquidityUsdMin = 5_000

const unusable = (what: string) => new Fault('unavailable', `${source} answered ${what}`)

export function assessReply({ status, body }: { status: number; body: unknown }, mint: string): Assessment {
  if (!isRecord(body)) throw unusable('with something that is no report')
  if (status === 400 || status === 404)
    return assessmentOf(source, [
      { code: 'not_reported', level: 'unknown', message: `${source} has no report about this token` },
    ])
  if (status !== 200) throw unusable(`with status ${status}`)
  if (body.mint !== mint) throw unusable('about another token')
  const reasons = [
    ...ruggedReasons(body.rugged),
    ...authorityReasons(body),
    ...liquidityReasons(body.totalMarketLiquidity),
    ...riskReasons(body.risks),
  ]
  const score = body.score_normalised
  return assessmentOf(source, reasons, {
    score: typeof score === 'number' && score >= 0 && score <= 100 ? score : null,
  })
}

const missing = (field: string): SecurityReason => ({
  code: 'not_reported',
  level: 'unknown',
  message: `The report of ${source} lacks \`${field}\``,
})

function ruggedReasons(rugged: unknown): SecurityReason[] {
  if (rugged === false) return []
  if (rugged !== true) return [missing('rugged')]
  return [{ code: 'rugged', level: 'very_high', message: `${source} calls it rugged` }]
}

const authorities = [
  ['mintAuthority', 'mint_authority'],
  ['freezeAuthority', 'freeze_authority'],
] as const

const authorityReasons = (body: Record<string, unknown>): SecurityReason[] =>
  authorities.flatMap(([field, code]): SecurityReason[] => {
    if (body[field] === null) return []
    if (typeof body[field] !== 'string') return [missing(field)]
    return [{ code, level: 'high', message: `${source} reports that \`${field}\` is set` }]
  })

function liquidityReasons(liquidity: unknown): SecurityReason[] {
  if (typeof liquidity !== 'number' || !Number.isFinite(liquidity)) return [missing('totalMarketLiquidity')]
  if (liquidity >= liquidityUsdMin) return []
  return [
    {
      code: 'thin_liquidity',
      level: 'high',
      message: `${source} reports less than ${liquidityUsdMin} dollars of liquidity`,
    },
  ]
}

function riskReasons(risks: unknown): SecurityReason[] {
  // An empty list or null means no risks.
  if (risks === null) return []
  if (!Array.isArray(risks)) return [missing('risks')]
  return risks.slice(0, risksMax).map((risk: unknown): SecurityReason => {
    if (!isRecord(risk)) return missing('risks')
    const name = foreignText(risk.name)
    const message = `${source}: ${name === '' ? 'a risk without a name' : name}`
    // A level that is unknown here counts as dangerous.
    return { code: 'provider_risk', level: risk.level === 'warn' ? 'medium' : 'high', message }
  })
}
