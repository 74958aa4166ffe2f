import assert from 'node:assert/strict'
import { test } from 'node:test'
import { citationsOf, createKnownFigures, markUnknown, numbersIn } from './known-figures.ts'

const fetchedAt = new Date('2026-11-26T12:00:00Z')
function known(output: object) {
  const figures = createKnownFigures()
  figures.addOutput(output as never, { tool: 'read', fetchedAt })
  return figures
}

test('a value is known as it is, rounded, cut, in thousands, and a fraction as a percentage', () => {
  const figures = known({ price: '3421.567', rate: '0.0123', volume: 1_234_567_890, tiny: 1e-7 })
  for (const text of [
    '3421.567',
    '3,421.57',
    '3,421.56',
    '3422',
    '1.23 %',
    '1.2%',
    '1.23B',
    '1,234.6 million',
    '0.0000001',
  ])
    assert.deepEqual(figures.unknownIn(text), [], text)
  for (const text of ['3421.58', '3,420', '1.3 %', '12.3 %', '1.24B', '0.0000002'])
    assert.equal(figures.unknownIn(text).length, 1, text)
})

test('addresses, ids, times, spans and marks of lists are no numbers', () => {
  const text =
    '1. 0x4ed4E862860beD51a9570b96d89aF5E1B0Efefed at 2026-11-26T12:00:00Z within 24h or 7 days [3] 01a21819-8577-7dbc-8fe2-4bb716f44097'
  assert.deepEqual(numbersIn(text), [])
  assert.deepEqual(
    numbersIn('5x of 10USDC and ETH2').map(({ text: printed }) => printed),
    ['5', '10'],
  )
})

test('lengths of lists and words of the user are known', () => {
  const figures = known({ items: [{}, {}, {}] })
  figures.addSaid('swap 20 usdc, or $1.5k')
  assert.deepEqual(figures.unknownIn('3 items, 20 USDC, 1,500 dollars, 1.5k'), [])
  assert.equal(figures.hasExactly('1500'), true)
  assert.equal(figures.hasExactly('1501'), false)
})

test('an unknown number is marked once, behind its unit', () => {
  const figures = known({ price: '10' })
  const marked = 'It is 10 USD, not 12 USD (unverified) or 13 % (unverified).'
  assert.equal(markUnknown('It is 10 USD, not 12 USD or 13 %.', figures), marked)
  assert.equal(markUnknown(marked, figures), marked)
})

test('a citation names the exact value before a rounded one', () => {
  const figures = known({ a: '4.6', b: '5', c: '5.2' })
  assert.deepEqual(
    citationsOf('5 and 5 and 4.6', figures).map(({ n, tool, pointer }) => [n, tool, pointer]),
    [
      [1, 'read', '/b'],
      [2, 'read', '/a'],
    ],
  )
})

test('thousands of numbers beside thousands of values take no second', () => {
  const figures = known(Array.from({ length: 20_000 }, (_, at) => String(at * 7 + 0.5)))
  const text = Array.from({ length: 20_000 }, (_, at) => `${at * 3}.25`).join(' and ')
  const before = process.cpuUsage()
  figures.unknownIn(text)
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 2_000_000, `${user + system} us`)
})
