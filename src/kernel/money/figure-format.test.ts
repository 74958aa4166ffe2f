import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ageText, computed, printed, rounded } from './figure-format.ts'
import { fromUnits, toUnits } from './money.ts'

test('figures are rounded half away from zero and have their unit', () => {
  assert.equal(printed('3420.456', 'usd'), '3,420.46 USD')
  assert.equal(printed('-0.005', 'usd'), '\u22120.01 USD')
  assert.equal(printed('0.000011273', 'price'), '0.00001127 USD')
  assert.equal(printed('104500', 'price'), '104,500.00 USD')
  assert.equal(printed('0.0525', 'fraction'), '5.25 %')
  assert.equal(printed('0.0000125', 'hourly'), '0.0013 % an hour')
  assert.equal(printed(35, 'bps'), '0.35 %')
  assert.equal(printed('1234567.5', 'size'), '1,234,567.5')
  assert.equal(printed('24.924968937257461942', 'amount'), '24.9249')
  assert.equal(printed('0.014242395009019272', 'amount'), '0.0142423')
  assert.equal(printed('10075.129999', 'amount'), '10,075.12')
  assert.equal(printed('150', 'amount'), '150')
  assert.equal(printed('-0.000000000000000001', 'amount'), '\u22120.000000000000000001')
  assert.equal(printed(0.0000001, 'size'), '0.0000001')
})

test('what is unknown is not printed as a number', () => {
  for (const value of [null, undefined, 'n/a', {}, Number.NaN, Number.POSITIVE_INFINITY])
    assert.equal(printed(value, 'usd'), undefined)
  assert.equal(computed('change', '1', '0'), undefined)
  assert.equal(computed('change', '1', null), undefined)
})

test('names that strangers write lose their control and direction marks', () => {
  assert.equal(printed('SA\u202eFE\u200b\n', 'text'), 'SAFE')
  assert.equal(printed('x'.repeat(500), 'text')?.length, 200)
})

test('rounding differs from the value by half a step at most', () => {
  fc.assert(
    fc.property(fc.bigInt(-(10n ** 24n), 10n ** 24n), fc.integer({ min: 0, max: 9 }), (units, places) => {
      const difference = toUnits(rounded(fromUnits(units, 18), places), 18) - units
      const step = 10n ** BigInt(18 - places)
      assert.ok((difference < 0n ? -difference : difference) * 2n <= step)
    }),
  )
})

test('an age is printed in its largest fitting unit', () => {
  assert.deepEqual([40_000, 600_000, 10_800_000].map(ageText), ['40 s', '10 min', '3 h'])
})
