import type { Claim, Source } from './claim.ts'
import { type CheckContext, checkSentence } from './claims-check.ts'

/** A report as data. The writers print it, and add only the lists of figures and of sources. */

export type Block =
  | { type: 'text'; sentences: readonly string[] }
  | { type: 'list'; items: readonly string[] }
  | { type: 'table'; head: readonly string[]; rows: readonly (readonly string[])[] }
  | { type: 'image'; file: string; alt: readonly string[] }
export type Section = { title: string; blocks: readonly Block[] }

export type Report = {
  title: string
  lead: readonly string[]
  sections: readonly Section[]
  claims: readonly Claim[]
  sources: readonly Source[]
  terms: readonly string[]
  generatedAt: string
}

export type Dropped = { section: string; text: string; reason: string }
export type CheckedReport = Report & { dropped: readonly Dropped[] }

type Passing = (text: string, parts?: readonly string[]) => boolean

function checkBlock(block: Block, passes: Passing): Block | undefined {
  switch (block.type) {
    case 'text': {
      const sentences = block.sentences.filter((sentence) => passes(sentence))
      return sentences.length > 0 ? { ...block, sentences } : undefined
    }
    case 'list': {
      const items = block.items.filter((item) => passes(item))
      return items.length > 0 ? { ...block, items } : undefined
    }
    case 'table': {
      // A row is dropped as a whole, because without one of its cells it would say something else.
      const rows = block.rows.filter((row) => passes(row.join(' | '), row))
      return rows.length > 0 && block.head.every((cell) => passes(cell)) ? { ...block, rows } : undefined
    }
    case 'image':
      return { ...block, alt: block.alt.filter((sentence) => passes(sentence)) }
  }
}

/** Removes the sentences, items and rows whose numbers differ from the claims that they cite. */
export function checkReport(report: Report): CheckedReport {
  const context: CheckContext = {
    claims: new Map(report.claims.map((claim) => [claim.id, claim])),
    terms: report.terms,
  }
  const dropped: Dropped[] = []
  const passingIn =
    (section: string): Passing =>
    (text, parts = [text]) => {
      const failed = parts.map((part) => checkSentence(part, context)).find(({ ok }) => !ok)
      if (failed && !failed.ok) dropped.push({ section, text, reason: failed.reason })
      return !failed
    }
  const sections = report.sections.flatMap(({ title, blocks }) => {
    const passes = passingIn(title)
    if (!passes(title)) return []
    const left = blocks.map((block) => checkBlock(block, passes)).filter((block) => block !== undefined)
    return [{ title, blocks: left }]
  })
  const passes = passingIn('lead')
  const lead = report.lead.filter((sentence) => passes(sentence))
  if (!passes(report.title)) return { ...report, title: 'Report', lead, sections, dropped }
  return { ...report, lead, sections, dropped }
}

/** Returns the claims that the report cites, and all claims from which they are computed. */
export function citedClaims(report: Report): Claim[] {
  const byId = new Map(report.claims.map((claim) => [claim.id, claim]))
  const text = [
    report.title,
    ...report.lead,
    ...report.sections.flatMap(({ blocks }) => blocks.flatMap(textsOf)),
  ]
  const wanted = text.flatMap((each) => [...each.matchAll(/\[(\d{1,4})\]/g)].map(([, n]) => `c${n}`))
  const found = new Set<string>()
  for (let id = wanted.pop(); id !== undefined; id = wanted.pop()) {
    const claim = byId.get(id)
    if (!claim || found.has(id)) continue
    found.add(id)
    wanted.push(...claim.inputs)
  }
  return report.claims.filter(({ id }) => found.has(id))
}

export function citedSources(report: Report, claims: readonly Claim[]): Source[] {
  const used = new Set(claims.flatMap(({ source_ids }) => source_ids))
  return report.sources.filter(({ id }) => used.has(id))
}

export function textsOf(block: Block): readonly string[] {
  switch (block.type) {
    case 'text':
      return block.sentences
    case 'list':
      return block.items
    case 'table':
      return [...block.head, ...block.rows.flat()]
    case 'image':
      return block.alt
  }
}
