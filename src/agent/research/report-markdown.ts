import { printedValue } from '#market/figure-text.ts'
import type { Claim, Source } from './claim.ts'
import { type Block, citedClaims, citedSources, type Report } from './report.ts'

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')
const row = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`
export const markdownTable = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n')

export function blockText(block: Block): string {
  switch (block.type) {
    case 'text':
      return block.sentences.join(' ')
    case 'list':
      return block.items.map((item) => `- ${item}`).join('\n')
    case 'table':
      return markdownTable(block.head, block.rows)
    case 'image':
      return `![${block.alt.join(' ')}](${block.file})`
  }
}

const code = (text: string): string => `\`${text.replaceAll('`', "'")}\``

const figureRow = (claim: Claim): string[] => [
  `[${claim.id.slice(1)}]`,
  claim.text,
  printedValue(claim) ?? claim.value,
  `${claim.formula}(${claim.inputs.join(', ')})`,
]

const sourceRow = ({ id, tool, args, fetched_at, sha256 }: Source): string[] => [
  id,
  tool,
  JSON.stringify(args),
  fetched_at,
  sha256.slice(0, 16),
]

export const figuresText =
  'Each number above has the mark of its row. Inputs are JSON pointers into the output of a source, or other rows.'

export function markdownOf(report: Report): string {
  const claims = citedClaims(report)
  const sources = citedSources(report, claims)
  const parts = [
    `# ${report.title}`,
    report.lead.join(' '),
    ...report.sections.flatMap(({ title, blocks }) => [
      `## ${title}`,
      ...(blocks.length > 0 ? blocks.map(blockText) : ['Nothing is known about this.']),
    ]),
    '## Figures',
    figuresText,
    markdownTable(
      ['mark', 'figure', 'value', 'computed as'],
      claims
        .map(figureRow)
        .map(([mark = '', text = '', value = '', formula = '']) => [mark, text, value, code(formula)]),
    ),
    '## Sources',
    markdownTable(
      ['source', 'operation', 'input', 'read at', 'SHA-256 of the output'],
      sources
        .map(sourceRow)
        .map(([id = '', tool = '', args = '', at = '', sha = '']) => [
          id,
          code(tool),
          code(args),
          at,
          code(sha),
        ]),
    ),
  ]
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`
}
