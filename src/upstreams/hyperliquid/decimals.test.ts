import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { amountOf, plain, roundedTo, roundUsd } from './decimals.ts'

describe('numbers as the venue prints them', () => {
  test('the error of a binary float is removed, and the intended value remains', () => {
    const printed: [string, string][] = [
      ['2703997.4500000002', '2703997.45'],
      ['16.000000000000004', '16'],
      ['0.30000000000000004', '0.3'],
      ['0.0010000000000000002', '0.001'],
      ['-0.30000000000000004', '-0.3'],
      ['12.5', '12.5'],
      ['100000.0', '100000'],
      ['-0.0', '0'],
      ['1e-7', '0.0000001'],
      ['2.5E+3', '2500'],
    ]
    for (const [text, meant] of printed) assert.equal(roundUsd(text), meant, text)
  })

  test('a token keeps all of its decimals, and a rate all that are printed', () => {
    assert.equal(amountOf('0.0014985001'), '0.0014985001')
    assert.equal(plain('0.0000125'), '0.0000125')
    assert.equal(plain('1e-18'), '0.000000000000000001')
  })

  test('it rounds half up on both sides of zero, and rejects text that is no number', () => {
    assert.deepEqual(
      [roundedTo('1.25', 1), roundedTo('-1.25', 1), roundedTo('1.249', 1)],
      ['1.3', '-1.3', '1.2'],
    )
    for (const text of ['', 'NaN', '1.', '.5', '0x10', '1e999', ' 1'])
      assert.throws(() => roundedTo(text, 6), RangeError, text)
  })
})
