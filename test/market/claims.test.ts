import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Claim, cite } from '#agent/research/claim.ts'
import { checkSentence, sentencesOf } from '#agent/research/claims-check.ts'
import { createClaimBook, wrongClaims } from '#agent/research/report-claims.ts'
import { fromUnits } from '#kernel/money/money.ts'
import { plainName, printedValue, type Unit } from '#market/figure-text.ts'

const claimOf = (id: number, value: string, unit: Unit): Claim => ({
  id: `c${id}`,
  text: '',
  value,
  unit,
  formula: 'value',
  inputs: ['s1#/a'],
  source_ids: ['s1'],
  kind: 'measured',
})

const claims = [
  claimOf(1, '26.3041', 'price'),
  claimOf(2, '-0.0325', 'fraction'),
  claimOf(3, '61.27', 'index'),
  claimOf(4, '1234567890', 'volume'),
  claimOf(5, '2026-11-26T09:00:00.000Z', 'time'),
  claimOf(6, 'yes', 'text'),
  claimOf(7, '42', 'count'),
  claimOf(8, '0.0000125', 'hourly'),
  claimOf(9, '0', 'fraction'),
  claimOf(10, '30', 'days'),
  claimOf(12, 'Base 2', 'text'),
]
const context = {
  claims: new Map(claims.map((claim) => [claim.id, claim])),
  terms: ['RSI 14', '30 days', '4h', '1INCH'],
}
const passes = (sentence: string): boolean => checkSentence(sentence, context).ok

test('a sentence passes where each number is the value of the claim that it cites', () => {
  for (const sentence of [
    'The price is 26.30 USD [1].',
    'It is $26.3 [1] now, 26 USD [1] in round numbers.',
    'It moved by \u22123.25 % [2], or -3.3 % [2].',
    'RSI 14 is 61.3 [3] on the 4h candles of 1INCH over 30 days.',
    'The volume is 1.23 bn USD [4] or 1,235 M USD [4].',
    'As of 2026-11-26 09:00 UTC [5] or 2026-11-26 [5] it can be sold [6].',
    'There were 42 [7] trades.',
    'Funding is 0.0013 % [8] an hour, and 0 % [9] is nothing.',
    'It lasted 30 days [10].',
    'Nothing is said here.',
    'It is on "Base 2" [12].',
  ])
    assert.ok(passes(sentence), `${sentence} ${JSON.stringify(checkSentence(sentence, context))}`)
})

test('a sentence is dropped where a number has no mark, another value, unit or form', () => {
  for (const sentence of [
    'The price is 26.30 USD.',
    'The price is 26.31 USD [1].',
    'The price is 26.30 [1].',
    'The price is 26.30 % [1].',
    'The price is 27 USD [1].',
    'The price is 20 USD [1].',
    'It moved by 3.25 % [2].',
    'It moved by \u22123.24 % [2].',
    'From 20 to 26.30 USD [1].',
    'RSI 14 is 61.3.',
    'RSI 15 is 61.3 [3].',
    'The volume is 1.23 M USD [4].',
    'The volume is 1.24 bn USD [4].',
    'As of 2026-11-27 [5].',
    'As of 2026 [5].',
    'There were 42 [11] trades.',
    'There were 4,2 [7] trades.',
    'There were forty trades, and the price doubled.',
    'There were \u0664\u0662 [7] trades.',
    'It is worth \u00bd of that.',
    'It is worth XII [7] or \u216b.',
    'Funding is 0.00 % [8] an hour.',
    'It costs 1INCH2 or 4h3.',
    'A gain of 100%.',
    '26.30 USD[1] and 5',
    'Up 1e3 USD [1].',
    '2 [6]',
    'It is on Base 2 [12].',
    'It is on "Base 3" [12].',
  ])
    assert.ok(!passes(sentence), sentence)
})

const units: Unit[] = [
  'usd',
  'volume',
  'price',
  'fraction',
  'hourly',
  'index',
  'ratio',
  'size',
  'count',
  'days',
]
const decimals = fc
  .tuple(fc.bigInt(-(10n ** 27n), 10n ** 27n), fc.integer({ min: 0, max: 18 }))
  .map(([value, places]) => fromUnits(value, places))

test('what is printed from a claim passes, and no other claim of another value does', () => {
  fc.assert(
    fc.property(decimals, decimals, fc.constantFrom(...units), (value, other, unit) => {
      const claim = claimOf(1, value, unit)
      const sentence = `It is ${cite(claim)}.`
      const judged = checkSentence(sentence, { claims: new Map([['c1', claim]]), terms: [] })
      assert.deepEqual(judged, { ok: true }, sentence)
      const second = claimOf(1, other, unit)
      const isNear = Math.abs(Number(other) - Number(value)) <= Math.abs(Number(other)) * 0.06
      if (isNear) return
      assert.ok(
        !checkSentence(sentence, { claims: new Map([['c1', second]]), terms: [] }).ok,
        `${sentence} for ${other}`,
      )
    }),
    { numRuns: 2_000 },
  )
})

test('no digit in a sentence passes without a mark', () => {
  const words = fc.constantFrom(
    'the',
    'price',
    'is',
    'USD',
    '%',
    'RSI 14',
    '[1]',
    '[3]',
    '26.30',
    '61.3',
    '7',
    '-',
    '.',
    ',',
  )
  fc.assert(
    fc.property(fc.array(words, { maxLength: 12 }), (parts) => {
      const sentence = parts.join(' ')
      if (!passes(sentence)) return
      const left = sentence
        .replaceAll('RSI 14', '')
        .replace(/26\.30 USD[^\d[]*\[1\]|61\.3[^\d[%U]*\[3\]/g, '')
        .replace(/\[[13]\]/g, '')
      assert.ok(!/\d/.test(left), `${sentence} leaves ${left}`)
    }),
    { numRuns: 5_000 },
  )
})

test('prose is split into sentences, and numbers are not split', () => {
  assert.deepEqual(sentencesOf('It is 26.30 USD [1]. It rises. [3] No.\nAs of now'), [
    'It is 26.30 USD [1].',
    'It rises. [3]',
    'No.',
    'As of now',
  ])
})

test('names of strangers hold no markup, link or mark', () => {
  assert.equal(plainName('Scam [1] <b>x</b> ![i](http://a.b) `c` | 5'), 'Scam 1 b x /b i http a.b c 5')
  assert.equal(plainName('\u202e\u200b'), 'unnamed')
  assert.equal(plainName('x'.repeat(100)).length, 64)
})

test('a claim has the value that its inputs give, and none where one is unknown', () => {
  const book = createClaimBook()
  const output = { rows: [{ mark: '26.3041', before: '25', 'a/b': 5 }], none: null }
  const source = book.source('perp_markets', {}, { output, fetchedAt: new Date(0) })
  const now = book.measured('price', 'price', `${source}#/rows/0/mark`)
  const before = book.measured('price a day before', 'price', `${source}#/rows/0/before`)
  const move = book.derived('change of a day', 'fraction', { formula: 'change', inputs: [now, before] })
  assert.equal(move?.value, '0.052164')
  assert.deepEqual([move?.inputs, move?.source_ids, move?.kind], [['c1', 'c2'], ['s1'], 'derived'])
  assert.equal(book.measured('escaped', 'count', `${source}#/rows/0/a~1b`)?.value, '5')
  for (const at of ['#/rows/1/mark', '#/none', '#/rows', '#/rows/0/__proto__'])
    assert.equal(book.measured('unknown', 'count', `${source}${at}`), undefined)
  assert.equal(book.derived('unknown', 'ratio', { formula: 'ratio', inputs: [now, undefined] }), undefined)
  assert.equal(book.derived('unknown', 'ratio', { formula: 'constructor', inputs: [now] }), undefined)
  const outputs = new Map([['s1', output]])
  assert.deepEqual(wrongClaims(book.claims(), outputs), [])
  const changed = new Map([['s1', { ...output, rows: [{ ...output.rows[0], mark: '26.4' }] }]])
  assert.deepEqual(
    wrongClaims(book.claims(), changed).map(({ id }) => id),
    ['c1'],
  )
  assert.deepEqual(
    book.sources().map(({ id, tool, fetched_at }) => [id, tool, fetched_at]),
    [['s1', 'perp_markets', '1970-01-01T00:00:00.000Z']],
  )
})

test('small and large values keep two digits at least', () => {
  const printed = (value: string, unit: Unit) => printedValue({ value, unit })
  assert.equal(printed('0.0000000123', 'price'), '0.00000001230 USD')
  assert.equal(printed('0.00002', 'fraction'), '0.0020 %')
  assert.equal(printed('-1500000', 'volume'), '\u22121.50 M USD')
  assert.equal(printed('999', 'volume'), '999.00 USD')
  assert.equal(printed('1', 'days'), '1 day')
  assert.equal(printed('n/a', 'usd'), undefined)
  assert.equal(printed('soon', 'time'), undefined)
  assert.equal(printed('very_low', 'word'), 'very low')
  assert.equal(printed('Up 500 %', 'word'), undefined)
  assert.equal(printed('Up 500 %', 'text'), '"Up 500"')
})
