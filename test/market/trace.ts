import assert from 'node:assert/strict'
import type { Claim, Source } from '#agent/research/claim.ts'
import { sha256Of, wrongClaims } from '#agent/research/report-claims.ts'
import { indicatorList } from '#market/indicator-list.ts'

/**
 * Follows every figure of a report to the output of a tool. The numbers are read from the text by rules of their own, so
 * that the checker of the product does not judge itself.
 */

export type ReportFiles = { markdown: string; claims: string; sources: string }
export type Traced = { figures: number; claims: Claim[]; sources: Record<string, unknown> }

/** Words with digits in the text that measure nothing. */
const labels = [
  ...Object.values(indicatorList).map(({ label }) => label),
  ...'15m 30m 1h 2h 4h 8h 12h 1d'.split(' '),
  ...[1, 7, 30, 90, 180, 365].map((days) => `${days} ${days === 1 ? 'day' : 'days'}`),
  '24 hours',
  '95 % interval',
  '1.5 ATR',
  '2.5 ATR',
  '100 USD order',
  '1,000 USD order',
  '10,000 USD order',
]

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
const labelPattern = new RegExp(
  `(?<![\\d.,\\p{L}\u2212-])(?:${labels
    .sort((a, b) => b.length - a.length)
    .map(escaped)
    .join('|')})(?![\\d\\p{L}]|[.,]\\d)(?! ?\\[)`,
  'gu',
)
const cited = /(\u2212?[\d.,]*\d)((?: (?:bn|M|k))?(?: (?:%|USD|days?))?(?: an hour)?) \[(\d+)\]/g
const timed = /\d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC \[(\d+)\]/g
const factors: Record<string, number> = { bn: 1e9, M: 1e6, k: 1e3 }

function assertIsValue(shown: string, suffix: string, claim: Claim): void {
  const number = Number(shown.replaceAll(',', '').replace('\u2212', '-'))
  const scale = factors[/ (bn|M|k)/.exec(suffix)?.[1] ?? ''] ?? 1
  const percent = suffix.includes('%') ? 0.01 : 1
  const places = shown.split('.')[1]?.length ?? 0
  const step = 10 ** -places * scale * percent
  const difference = Math.abs(number * scale * percent - Number(claim.value))
  assert.ok(difference <= step * 0.5000001, `${shown}${suffix} for ${JSON.stringify(claim)}`)
}

/** `name`: of the asset, which may have digits. */
export function traceReport(
  { markdown, claims: claimsText, sources: sourcesText }: ReportFiles,
  name: string,
): Traced {
  const document = JSON.parse(claimsText) as { claims: Claim[]; sources: Source[]; dropped: unknown[] }
  const outputs = JSON.parse(sourcesText) as Record<string, unknown>
  const byId = new Map(document.claims.map((claim) => [claim.id, claim]))
  let figures = 0
  const body = markdown.slice(0, markdown.indexOf('\n## Figures'))
  const left = body
    .replace(/\(chart-[\w-]+\.png\)/g, '')
    .replace(timed, (whole, n: string) => {
      const claim = byId.get(`c${n}`)
      assert.ok(claim && new Date(claim.value).toISOString().startsWith(whole.slice(0, 10)), whole)
      figures++
      return ''
    })
    .replace(cited, (whole, shown: string, suffix: string, n: string) => {
      const claim = byId.get(`c${n}`)
      assert.ok(claim, `${whole} cites no claim`)
      if (claim.unit === 'text') assert.ok(claim.value.includes(shown), whole)
      else assertIsValue(shown, suffix, claim)
      figures++
      return ''
    })
    .replace(/\[(\d+)\]/g, (whole, n: string) => {
      assert.ok(byId.has(`c${n}`), `${whole} cites no claim`)
      return ''
    })
    .replace(labelPattern, '')
    .replaceAll(name, '')
  assert.deepEqual(left.match(/.{0,20}\d.{0,10}/g), null, `without a source:\n${left}`)
  for (const { id, sha256 } of document.sources) assert.equal(sha256Of(outputs[id]), sha256, id)
  const known = new Set(Object.keys(outputs))
  for (const claim of document.claims)
    if (claim.kind !== 'opinion') {
      assert.ok(claim.source_ids.length > 0, `${JSON.stringify(claim)} has no source`)
      for (const id of claim.source_ids) assert.ok(known.has(id), id)
    }
  assert.deepEqual(wrongClaims(document.claims, new Map(Object.entries(outputs))), [])
  return { figures, claims: document.claims, sources: outputs }
}
