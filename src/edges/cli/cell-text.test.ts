import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isDecimal, toFixedPoint } from '#kernel/money/money.ts'
import { decimalText, listText, percentText, plainText, timeText, usdText } from './cell-text.ts'

const chains = new Map([['8453', 'Base']])

test('decimals have about six digits, with their thousands apart', () => {
  for (const [value, text] of [
    ['0', '0'],
    ['10000', '10,000'],
    ['24.924968937257461942', '24.9249'],
    ['104381.5', '104,381.5'],
    ['1234567.891', '1,234,567.89'],
    ['0.000012345', '0.00001234'],
    ['-0.5', '-0.5'],
    ['0.0000000000001', '<0.000000000001'],
    ['no number', 'no number'],
  ])
    assert.equal(decimalText(value), text)
  assert.equal(decimalText(1.25e-5), '0.0000125')
})

test('dollars have cents below a million, and are never shown as nothing', () => {
  for (const [value, text] of [
    ['0', '$0.00'],
    ['5', '$5.00'],
    ['-0.089713', '-$0.08'],
    ['0.004', '<$0.01'],
    ['999999.999', '$999,999.99'],
    ['36916289.12', '$36,916,289'],
  ])
    assert.equal(usdText(value), text)
})

test('fractions are printed in percent', () => {
  for (const [value, text] of [
    ['0.0512', '5.12%'],
    ['-0.0361', '-3.61%'],
    ['0.0000125', '0.0012%'],
    ['1', '100%'],
    ['0', '0%'],
  ])
    assert.equal(percentText(value), text)
})

test('a shortened amount is never larger than the amount', () => {
  const decimals = fc
    .tuple(fc.bigInt({ min: 0n, max: 10n ** 15n }), fc.bigInt({ min: 0n, max: 10n ** 18n - 1n }))
    .map(([whole, fraction]) => `${whole}.${String(fraction).padStart(18, '0')}`)
  fc.assert(
    fc.property(decimals, (value) => {
      assert.ok(isDecimal(value))
      for (const text of [decimalText(value), usdText(value)]) {
        if (text.includes('<')) continue
        assert.ok(toFixedPoint(text.replace(/[$,]/g, '')) <= toFixedPoint(value), `${value} as ${text}`)
      }
    }),
  )
})

test('smallest units become whole ones by the decimals beside them, and are not shown without', () => {
  const whole = { amount: '-20000000', decimals: 6, symbol: 'USDC' }
  const change = { value: whole.amount, name: 'amount', kind: 'change', chains } as const
  assert.equal(plainText({ ...change, row: whole }), '-20')
  assert.equal(plainText({ ...change, value: '5697137177097091', row: { decimals: 18 } }), '+0.005697')
  assert.equal(plainText({ ...change, kind: 'units', row: {} }), undefined)
  const quote = { amount_out: '5697137177097091', decimals_in: 6, decimals_out: 18, symbol_out: 'ETH' }
  assert.equal(
    plainText({ value: quote.amount_out, name: 'amount_out', kind: 'units', row: quote, chains }),
    '0.005697 ETH',
  )
})

test('a list of changes is one phrase, and so is a list of fills', () => {
  const view = { columns: ['amount', 'symbol'], kinds: { amount: 'change' } } as const
  const changes = [
    { amount: '-20000000', decimals: 6, symbol: 'USDC' },
    { amount: '5697137177097091', decimals: 18, symbol: 'ETH' },
  ]
  assert.equal(listText(changes, view, { row: {}, chains }), '-20 USDC, +0.005697 ETH')
  const fills = { columns: ['side', 'size', 'price'], kinds: { size: 'decimal', price: 'decimal' } } as const
  const fill = { side: 'buy', size: '0.00191', price: '104381' }
  assert.equal(listText([fill], fills, { row: {}, chains }), 'buy 0.00191 at 104,381')
})

test('chains have their names, and no text controls the terminal', () => {
  assert.equal(plainText({ value: '8453', kind: 'chain', row: {}, chains }), 'Base')
  assert.equal(plainText({ value: 'a\u001b[2Jb\n', row: {}, chains }), 'a [2Jb ')
})

test('times are those of this machine, with the year where it is another half of a year', () => {
  const at = new Date(2026, 4, 7, 9, 5)
  assert.equal(timeText(at.toISOString(), at.getTime()), 'May  7 09:05')
  assert.equal(timeText(at.toISOString(), at.getTime() + 300 * 86_400_000), 'May  7  2026')
})
