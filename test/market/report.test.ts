import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cite } from '#agent/research/claim.ts'
import { csvCell, csvOf } from '#agent/research/csv.ts'
import { checkReport, type Report } from '#agent/research/report.ts'
import { createClaimBook } from '#agent/research/report-claims.ts'
import { claimsJsonOf } from '#agent/research/report-data-files.ts'
import { markdownOf } from '#agent/research/report-markdown.ts'

function reportOf(): Report {
  const book = createClaimBook()
  const output = { price: '26.3041', before: '25', name: '<script>alert(1)</script>' }
  const source = book.source('perp_markets', { asset: 'HYPE' }, { output, fetchedAt: new Date(0) })
  const price = book.measured('price', 'price', `${source}#/price`)!
  const before = book.measured('price a day before', 'price', `${source}#/before`)!
  const move = book.derived('change of a day', 'fraction', { formula: 'change', inputs: [price, before] })!
  book.measured('never cited', 'price', `${source}#/before`)
  return {
    title: 'HYPE & <b>more</b>',
    lead: [`It costs ${cite(price)}.`],
    sections: [
      {
        title: 'Performance',
        blocks: [
          {
            type: 'text',
            sentences: [`It moved by ${cite(move)}.`, 'It will cost 40 USD [1].', 'It costs 26 USD.'],
          },
          { type: 'list', items: ['A dollar | a day', 'Up 7 %'] },
          {
            type: 'table',
            head: ['figure', 'value'],
            rows: [
              ['price', cite(price)],
              ['price', '27.00 USD [1]'],
            ],
          },
          {
            type: 'image',
            file: 'chart-candles.png',
            alt: [`Candles, last close ${cite(price)}.`, '5 lines.'],
          },
        ],
      },
      { title: 'Odds', blocks: [{ type: 'text', sentences: ['They are 3 to 1.'] }] },
      { title: 'The 7 risks', blocks: [] },
    ],
    claims: book.claims(),
    sources: book.sources(),
    terms: [],
    generatedAt: '1970-01-01T00:00:00.000Z',
  }
}

test('a report loses each sentence, item, row and title with a number that no claim has', () => {
  const report = checkReport(reportOf())
  assert.deepEqual(
    report.dropped.map(({ text }) => text),
    [
      'It will cost 40 USD [1].',
      'It costs 26 USD.',
      'Up 7 %',
      'price | 27.00 USD [1]',
      '5 lines.',
      'They are 3 to 1.',
      'The 7 risks',
    ],
  )
  assert.deepEqual(
    report.sections.map(({ title, blocks }) => [title, blocks.length]),
    [
      ['Performance', 4],
      ['Odds', 0],
    ],
  )
})

test('the Markdown has the figures with their formulas, and the sources with their times', () => {
  const text = markdownOf(checkReport(reportOf()))
  for (const part of [
    'It moved by 5.22 % [3].',
    '| price | 26.30 USD [1] |',
    '![Candles, last close 26.30 USD [1].](chart-candles.png)',
    '| [3] | change of a day | 5.22 % | `change(c1, c2)` |',
    '| s1 | `perp_markets` | `{"asset":"HYPE"}` | 1970-01-01T00:00:00.000Z |',
    '## Odds\n\nNothing is known about this.',
  ])
    assert.ok(text.includes(part), `${part} in\n${text}`)
  assert.ok(!text.includes('never cited') && !text.includes('40 USD'))
})

test('the claims of the report are JSON with what was dropped', () => {
  const document = JSON.parse(claimsJsonOf(checkReport(reportOf())))
  assert.deepEqual(
    document.claims.map(({ id, value }: { id: string; value: string }) => [id, value]),
    [
      ['c1', '26.3041'],
      ['c2', '25'],
      ['c3', '0.052164'],
    ],
  )
  assert.equal(document.sources[0].sha256.length, 64)
  assert.equal(document.dropped.length, 7)
})

test('cells of a table run no formula, and plain numbers stay numbers', () => {
  assert.deepEqual(['=1+1', '+1', '-1', '-1.50', '@x', '-x', '\tx', 'a,b', 'say "x"', ''].map(csvCell), [
    "'=1+1",
    "'+1",
    '-1',
    '-1.50',
    "'@x",
    "'-x",
    "'\tx",
    '"a,b"',
    '"say ""x"""',
    '',
  ])
  fc.assert(
    fc.property(fc.string(), (text) => {
      const cell = csvCell(text)
      const content = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell
      assert.ok(!/^[=+@\t\r]/.test(content) && (!content.startsWith('-') || /^-\d+(\.\d+)?$/.test(content)))
    }),
  )
  assert.equal(
    csvOf([
      ['a', 'b'],
      ['1', '=x'],
    ]),
    "a,b\r\n1,'=x\r\n",
  )
})
