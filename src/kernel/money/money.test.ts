import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  addDecimals,
  fixedPointOne,
  fromUnits,
  mulDiv,
  rescale,
  subtractDecimals,
  toFixedPoint,
  toMicros,
  toUnits,
  valueMicros,
} from './money.ts'

const whole = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n })
const divisor = fc.bigInt({ min: 1n, max: 10n ** 18n })
const sizeOf = (value: bigint) => (value < 0n ? -value : value)

test('units and text are the same amount, in both directions and with any sign', () => {
  fc.assert(
    fc.property(whole, fc.integer({ min: 0, max: 18 }), (units, decimals) => {
      assert.equal(toUnits(fromUnits(units, decimals), decimals), units)
    }),
  )
  assert.deepEqual(
    [fromUnits(5n, 6), fromUnits(-5n, 6), fromUnits(0n, 6), fromUnits(12n, 0)],
    ['0.000005', '-0.000005', '0', '12'],
  )
})

test('an amount with more decimals than the token is an error and never rounded', () => {
  assert.equal(toUnits('1.5', 1), 15n)
  assert.throws(() => toUnits('1.55', 1), RangeError)
  assert.equal(toUnits('1.50', 1), 15n)
  for (const text of ['', '1e3', 'x', '1.', '--1']) assert.throws(() => toUnits(text, 18), RangeError)
})

test('a division rounds towards zero or away from it, by less than one', () => {
  fc.assert(
    fc.property(whole, whole, divisor, (a, b, c) => {
      const [down, up] = [mulDiv(a, b, c), mulDiv(a, b, c, 'up')]
      const exact = a * b
      assert.ok(sizeOf(down * c) <= sizeOf(exact) && sizeOf(exact) <= sizeOf(up * c))
      assert.equal(sizeOf(up - down), exact % c === 0n ? 0n : 1n)
      assert.equal(mulDiv(-a, b, c, 'up'), -up)
    }),
  )
  assert.deepEqual(
    [mulDiv(7n, 1n, 2n), mulDiv(7n, 1n, 2n, 'up'), mulDiv(-7n, 1n, 2n), mulDiv(-7n, 1n, 2n, 'up')],
    [3n, 4n, -3n, -4n],
  )
})

test('a change of scale is exact upwards and cut in the named direction downwards', () => {
  assert.equal(rescale(5n, 6, 18), 5n * 10n ** 12n)
  assert.deepEqual(
    [rescale(1_999n, 3, 0), rescale(1_001n, 3, 0, 'up'), rescale(2_000n, 3, 0, 'up')],
    [1n, 2n, 2n],
  )
})

test('a value in micro-dollars includes the decimals of amount and price', () => {
  assert.equal(valueMicros(1_500_000n, 6, '2.5'), 3_750_000n)
  assert.equal(valueMicros(10n ** 18n, 18, '3141.592653'), 3_141_592_653n)
  assert.deepEqual([valueMicros(1n, 18, '1'), valueMicros(1n, 18, '1', 'up')], [0n, 1n])
})

test('decimal texts add and subtract exactly, with any number of decimals', () => {
  assert.equal(addDecimals('0.1', '0.2'), '0.3')
  assert.equal(subtractDecimals('1', '0.000000000000000001'), '0.999999999999999999')
  assert.equal(subtractDecimals('1.5', '2'), '-0.5')
  assert.equal(toFixedPoint('1'), fixedPointOne)
})

test('dollars become micro-dollars without the digits below them', () => {
  assert.deepEqual(['1.2345678', '-1.2345678', '0.0000009'].map(toMicros), [1_234_567n, -1_234_567n, 0n])
})
