import assert from 'node:assert/strict'
import { test } from 'node:test'
import { markdown, type Run, withSections } from '../scripts/bench.ts'

/**
 * The document of the benches: its own section of a bench survives a run of all, and is replaced when its bench runs.
 */

const at = new Date('2026-01-02T00:00:00Z')
const run = (file: string, id: string, median: number, title?: string): Run => ({
  file,
  results: [
    {
      id,
      name: `what ${id} measures`,
      goal: '<= 6',
      unit: 'weight',
      ratio: median,
      median,
      min: median,
      max: median,
      runs: 1,
      verdict: median <= 6 ? 'met' : 'not met',
      annex: { parts: { order: 1 } },
    },
  ],
  skipped: [],
  ...(title && { section: { title, about: `About ${title}.` } }),
})
const headings = (text: string) => text.split('\n').filter((line) => line.startsWith('## '))

test('a run of all benches writes every section, and none of their rows into the first table', () => {
  const text = markdown([run('a.bench.ts', 'P1', 2), run('w.bench.ts', 'W1', 9, 'Weights')], at)
  assert.deepEqual(headings(text), ['## Absolute figures', '## Weights'])
  const [first = '', section = ''] = text.split('## Weights')
  assert.ok(first.includes('| P1 |') && !first.includes('| W1 |'), first)
  assert.ok(first.includes('Every goal is met.'), first)
  assert.match(section, /About Weights\..*\| W1 \|.*9 weight.*not met.*\*\*W1\*\* parts/s)
})

test('a run of one bench replaces its section and leaves the rest as it was', () => {
  const before = markdown([run('w.bench.ts', 'W1', 9, 'Weights'), run('a.bench.ts', 'P1', 2)], at)
  const later = `${before}\n## By hand\n\nKept.\n`
  const text = withSections(later, [run('w.bench.ts', 'W1', 5, 'Weights')], at)
  assert.deepEqual(headings(text), headings(later))
  assert.ok(text.includes('5 weight') && !text.includes('9 weight'), text)
  assert.ok(text.includes('| P1 |') && text.endsWith('## By hand\n\nKept.\n'), text)
  assert.equal(withSections(text, [run('w.bench.ts', 'W1', 5, 'Weights')], at), text)
})

test('a section that is new is added at the end', () => {
  const text = withSections(markdown([run('a.bench.ts', 'P1', 2)], at), [run('w', 'W1', 5, 'Weights')], at)
  assert.equal(headings(text).at(-1), '## Weights')
})

test('a table that is written again keeps the sections of benches that did not run', () => {
  const before = markdown([run('w.bench.ts', 'W1', 9, 'Weights'), run('a.bench.ts', 'P1', 2)], at)
  const text = markdown([run('a.bench.ts', 'P1', 3)], at, before)
  assert.match(text, /## Weights.*W1/s)
  assert.match(text, /\| P1 \|/)
  assert.equal(text.split('## Weights').length, 2)
})
