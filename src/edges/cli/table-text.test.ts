import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Column, cut, tableText, widthOf, wrapped } from './table-text.ts'

const id = '01a22d6d-eee9-7f16-a2cb-23b23f13113a'
const text = (header: string, ...cells: string[]): Column => ({
  header,
  cells,
  isNumber: false,
  mayBeCut: true,
})
const number = (header: string, ...cells: string[]): Column => ({
  ...text(header, ...cells),
  isNumber: true,
  mayBeCut: false,
})
const identity = (...cells: string[]): Column => ({
  ...text('ID', ...cells),
  mayBeCut: false,
  isIdentity: true,
})

test('a table that fits is one line for each row, with numbers at the right', () => {
  assert.deepEqual(tableText([text('COIN', 'ETH', 'cbBTC'), number('WORTH', '5', '1,000')], 80).lines, [
    'COIN   WORTH',
    'ETH        5',
    'cbBTC  1,000',
  ])
})

test('headers are broken before anything is cut', () => {
  const { lines, leftOut } = tableText([text('MARKET', 'BTC'), number('UNREALIZED PNL', '$0.26')], 19)
  assert.deepEqual(lines, ['        UNREALIZED', 'MARKET         PNL', 'BTC          $0.26'])
  assert.deepEqual(leftOut, [])
})

test('the id of a row stands below it, whole, where the line has no room for it', () => {
  const columns = [identity(id), text('KIND', 'earn_deposit'), number('MOVED', '-5 USDC')]
  assert.equal(tableText(columns, 80).lines.length, 2)
  assert.deepEqual(tableText(columns, 50).lines, [
    'KIND            MOVED',
    'earn_deposit  -5 USDC',
    `  ${id}`,
  ])
})

test('columns without room are left out from the right, and named', () => {
  const columns = [text('A', 'x'.repeat(20)), number('B', '1'.repeat(12)), number('C', '2'.repeat(12))]
  const { lines, leftOut } = tableText(columns, 30)
  assert.deepEqual(leftOut, ['C'])
  assert.equal(lines[1], `${'x'.repeat(15)}…  ${'1'.repeat(12)}`)
})

test('wide letters count twice', () => {
  assert.equal(widthOf('日本'), 4)
  assert.equal(cut('日本語', 5), '日本…')
})

const word = fc
  .string({ unit: 'grapheme-composite', maxLength: 30 })
  .map((each) => each.replace(/\p{C}|\s/gu, 'x'))
const sentence = fc.array(word, { maxLength: 12 }).map((words) => words.join(' '))

test('no line is longer than the screen, whatever the table', () => {
  const column = fc.record({
    header: fc.constantFrom('A', 'LIMIT PRICE', 'UNREALIZED YIELD USDC'),
    cells: fc.array(sentence, { minLength: 3, maxLength: 3 }),
    isNumber: fc.boolean(),
    mayBeCut: fc.boolean(),
    isIdentity: fc.boolean(),
  })
  fc.assert(
    fc.property(
      fc.array(column, { minLength: 1, maxLength: 7 }),
      fc.integer({ min: 20, max: 130 }),
      (columns, width) => {
        for (const line of tableText(columns, width).lines) assert.ok(widthOf(line) <= width, line)
      },
    ),
  )
})

test('a broken text has all its words, and no line is longer than the screen', () => {
  fc.assert(
    fc.property(sentence, fc.integer({ min: 20, max: 130 }), (given, width) => {
      const lines = wrapped(given, width)
      for (const line of lines) assert.ok(widthOf(line) <= width, line)
      assert.equal(lines.join('').replaceAll(' ', ''), given.replaceAll(' ', ''))
    }),
  )
})
