import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { amountOf, baseUnitsOf, dateOf, priceOf, requiredUnits, tickOf, unitsOf } from './decimals.ts'

test('figures become units, whether they are text or floats', () => {
  assert.equal(unitsOf('10.25'), 10_250_000n)
  assert.equal(unitsOf(0.1 + 0.2), 300_000n)
  assert.equal(unitsOf(0.5499999999999999), 550_000n)
  assert.equal(unitsOf(1e-7), 0n)
  assert.equal(unitsOf(5e-7), 1n)
  assert.equal(unitsOf(1.5e21), 1_500_000_000_000_000_000_000_000_000n)
  assert.equal(unitsOf('1.2345678901234567e-7'), 0n)
  assert.equal(unitsOf('-7.2345678901234567e-7'), -1n)
  assert.equal(unitsOf('-3.5'), -3_500_000n)
  assert.equal(unitsOf('.5'), undefined)
  assert.equal(unitsOf(`0.${'3'.repeat(30)}`), 333_333n)
})

test('a figure that is missing or no number has no units', () => {
  for (const value of ['', null, undefined, 'NaN', Number.NaN, 'abc', '1,5', '0x10'])
    assert.equal(unitsOf(value), undefined)
  assert.throws(
    () => requiredUnits('', 'price'),
    (error) => error instanceof Fault && error.code === 'upstream_changed',
  )
  assert.equal(requiredUnits('1', 'price'), 1_000_000n)
})

test('prices, amounts and ticks have bounds', () => {
  assert.deepEqual(['0', '0.5', 1].map(priceOf), [0n, 500_000n, 1_000_000n])
  for (const value of ['-0.1', '1.000001', 1e9, 1e300, 'Infinity', 'NaN', '1e999', {} as string])
    assert.equal(priceOf(value), undefined, String(value))
  assert.equal(amountOf('1000000000000'), 10n ** 18n)
  for (const value of ['-1', '1000000000000.1', 1e30, Number.POSITIVE_INFINITY, '9'.repeat(60)])
    assert.equal(amountOf(value), undefined, String(value))
  assert.deepEqual([0.1, '0.01', 0.005, 0.0025, '0.001', 0.0001].map(tickOf), [
    100_000n,
    10_000n,
    5_000n,
    2_500n,
    1_000n,
    100n,
  ])
  for (const value of [0, '-0.01', 1, 2, 0.3, '0.0000001', 1e20])
    assert.equal(tickOf(value), undefined, String(value))
})

test('base units are whole', () => {
  assert.equal(baseUnitsOf('12345678901234567890'), 12_345_678_901_234_567_890n)
  for (const text of ['1.5', '', '-1', '0x1', 'x']) assert.throws(() => baseUnitsOf(text), Fault)
})

test('times have the form of seconds, milliseconds or ISO 8601', () => {
  const at = new Date('2026-11-28T10:00:00Z')
  for (const value of [at.getTime() / 1_000, String(at.getTime() / 1_000), at.getTime(), at.toISOString()])
    assert.deepEqual(dateOf(value), at)
  for (const value of ['', null, undefined, 'soon', '+012026-01-01T00:00:00Z', 1e300, -1e12, '9'.repeat(40)])
    assert.equal(dateOf(value), null)
})
