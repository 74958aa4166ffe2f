/**
 * Writes docs/generated/mistakes.md from the table that test/proof/mistakes.test.ts proves; with --check it only reports
 * whether it is current.
 */
import type { Mistake } from '../test/proof/support/mistakes/mistake.ts'
import { mistakeSections } from '../test/proof/support/mistakes/sections.ts'
import { writeGenerated } from './generated-file.ts'

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', '\\n')
const code = (text: string): string => (text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``)

/** The route, the request, and the headers that make the mistake. */
function requestText({ send, body, raw, headers = {}, shown }: Mistake): string {
  if (shown !== undefined) return shown
  const sent = raw ?? (body === undefined ? '' : JSON.stringify(body))
  const named = Object.entries(headers).flatMap(([name, value]) =>
    value === null ? [] : [`${name}: ${value}`],
  )
  return [send, ...named, sent]
    .filter((part) => part !== '')
    .map(code)
    .join(' ')
}

const row = (mistake: Mistake): string => {
  const { status, code: name, at, says } = mistake.answer
  const place = at === undefined ? '' : code(at)
  return `| ${[mistake.mistake, requestText(mistake), `${status} ${code(name)}`, place, says].map(cell).join(' | ')} |`
}

const count = mistakeSections.reduce((sum, { mistakes }) => sum + mistakes.length, 0)
const text = [
  '# Typical mistakes and their answers',
  '',
  `${count} mistakes that people and models make, and the sentence that answers each: what is wrong, where, and what to do. \`test/proof/mistakes.test.ts\` makes each of them at a running gateway and compares status, code, place and sentence. This page is written from the same table by \`scripts/mistakes.ts\`. Names in braces stand for values of the run, \`<...>\` for figures that differ. The place is \`loc\` of the item in \`detail\` of a 422; other answers carry the sentence as \`detail\`.`,
  ...mistakeSections.flatMap(({ title, mistakes }) => [
    '',
    `## ${title}`,
    '| mistake | request | answer | place | sentence |',
    '|---|---|---|---|---|',
    ...mistakes.map(row),
  ]),
  '',
].join('\n')

writeGenerated({
  file: 'docs/generated/mistakes.md',
  text,
  source: 'the table of test/proof/support/mistakes',
})
