import { type Claim, claimIdOf, isClaimId } from './claim.ts'
import { type Block, citedClaims, type Report, textsOf } from './report.ts'

const mark = /\[(\d{1,4})\]/g

const marksIn = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => [...text.matchAll(mark)].map(([, n]) => claimIdOf(n ?? '')))

function mapTexts(block: Block, change: (text: string) => string): Block {
  switch (block.type) {
    case 'text':
      return { ...block, sentences: block.sentences.map(change) }
    case 'list':
      return { ...block, items: block.items.map(change) }
    case 'table':
      return { ...block, rows: block.rows.map((row) => row.map(change)) }
    case 'image':
      return { ...block, alt: block.alt.map(change) }
  }
}

/**
 * Numbers the claims of a report in the order of its marks. Claims that the report does not need are left out with
 * `needed`, and come last with `all`.
 */
export function renumbered<R extends Report>(report: R, claimsLeft: 'needed' | 'all'): R {
  const needed = claimsLeft === 'all' ? report.claims : citedClaims(report)
  const byId = new Map(needed.map((claim) => [claim.id, claim]))
  const texts = [...report.lead, ...report.sections.flatMap(({ blocks }) => blocks.flatMap(textsOf))]
  const order = [...new Set([...marksIn(texts), ...byId.keys()])].filter((id) => byId.has(id))
  const ids = new Map(order.map((id, at) => [id, `c${at + 1}`]))
  const newId = (id: string): string => ids.get(id) ?? id
  const change = (text: string): string =>
    text.replace(mark, (_, n: string) => `[${newId(claimIdOf(n)).slice(1)}]`)
  const claims = order.map((id): Claim => {
    const claim = byId.get(id) as Claim
    const inputs = claim.inputs.map((input) => (isClaimId(input) ? newId(input) : input))
    return { ...claim, id: newId(id), inputs }
  })
  return {
    ...report,
    lead: report.lead.map(change),
    sections: report.sections.map(({ title, blocks }) => ({
      title,
      blocks: blocks.map((block) => mapTexts(block, change)),
    })),
    claims,
  }
}
