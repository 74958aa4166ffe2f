import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromUnits } from '#kernel/money/money.ts'
import { type Quantity, quantityText, readQuantity, shifted } from './quantity.ts'

const read = (text: string): string => {
  const found = readQuantity(text, 0)
  if (!found) return 'none'
  return 'quantity' in found ? `${found.quantity.unit} ${quantityText(found.quantity)}` : 'unclear'
}

test('amounts keep every digit that was written', () => {
  const said: Record<string, string> = {
    '0.25': 'number 0.25',
    '.5': 'number 0.5',
    '1,000': 'number 1000',
    '1,000.50': 'number 1000.5',
    '$1.5k': 'usd 1500 usd',
    '$0.000000000000000001': 'usd 0.000000000000000001 usd',
    '200usd': 'usd 200 usd',
    '40$': 'usd 40 usd',
    '2.5k': 'number 2500',
    '2mil': 'number 2000000',
    '15%': 'percent 15%',
    '50bps': 'bps 50 bps',
    '-12%': 'percent -12%',
    '5x': 'times 5x',
    '1/3': 'share 1/3',
    '4h': 'span 4h',
    '15min': 'span 15m',
    '7d': 'span 7d',
    '9am': 'clock 09:00',
    '9:30 pm': 'clock 21:30',
    '12am': 'clock 00:00',
    '17:45': 'clock 17:45',
    '2026-12-24': 'date 2026-12-24',
    '4123456789': 'id 4123456789',
  }
  for (const [text, expected] of Object.entries(said)) assert.equal(read(text), expected, text)
})

test('a number that may mean two things is unclear', () => {
  for (const text of ['1.000,5', '1,00', '1,2,3', '1.2.3', '$5q', '9'.repeat(40)])
    assert.equal(read(text), 'unclear', text)
  for (const text of ['2nd', 'x5', '$', '-', '']) assert.equal(read(text), 'none', text)
  assert.deepEqual(readQuantity('5m', 0), {
    quantity: { unit: 'span', value: '5', span: 'm', isUnclear: true },
    end: 2,
  })
})

test('a shift by places equals the multiplication of units', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 24n), fc.integer({ min: 0, max: 6 }), (units, places) => {
      assert.equal(shifted(fromUnits(units, 9), places), fromUnits(units * 10n ** BigInt(places), 9))
    }),
  )
})

test('the form of a quantity in slots is read again as the same quantity', () => {
  const quantities: Quantity[] = [
    { unit: 'percent', value: '2.5' },
    { unit: 'times', value: '3' },
    { unit: 'span', value: '4', span: 'h' },
    { unit: 'share', value: '2/3' },
  ]
  for (const quantity of quantities) {
    const found = readQuantity(quantityText(quantity), 0)
    assert.deepEqual(found && 'quantity' in found && found.quantity, quantity)
  }
})
