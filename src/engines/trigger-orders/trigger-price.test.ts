import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { decimalPlaces, fixedPointOne, fromFixedPoint, fromUnits, toFixedPoint } from '#kernel/money/money.ts'
import {
  bandAround,
  fractionOf,
  placesOf,
  profitPrice,
  sizeClass,
  stopPrice,
  unitPrice,
} from './trigger-price.ts'

const price = fc
  .tuple(fc.bigInt(1n, 10n ** 14n), fc.integer({ min: 0, max: 14 }))
  .map(([units, decimals]) => fromUnits(units, decimals))
const stopFraction = fc.bigInt(1n, fixedPointOne - 1n).map(fromFixedPoint)
const profitFraction = fc.bigInt(1n, 10n * fixedPointOne).map(fromFixedPoint)

describe('trigger prices', () => {
  test('a percentage of a price is exact in its displayed places', () => {
    assert.equal(stopPrice('18', '0.05'), '17.1')
    assert.equal(profitPrice('18', '0.1'), '19.8')
    assert.equal(stopPrice('0.00002', '0.1'), '0.000018')
    assert.equal(profitPrice('3500.25', '10'), '38502.75')
    assert.equal(stopPrice('3', '0.3333333333'), '2.0000001')
  })

  test('a stop is never below its exact price, and by less than one displayed unit above it', () =>
    fc.assert(
      fc.property(price, stopFraction, (reference, fraction) => {
        const exact = toFixedPoint(reference) * (fixedPointOne - toFixedPoint(fraction))
        const given = toFixedPoint(stopPrice(reference, fraction)) * fixedPointOne
        const unit = 10n ** BigInt(18 - placesOf(reference)) * fixedPointOne
        assert.ok(given >= exact && given - exact < unit)
      }),
    ))

  test('a profit is never below its exact price, and above its reference', () =>
    fc.assert(
      fc.property(price, profitFraction, (reference, fraction) => {
        const exact = toFixedPoint(reference) * (fixedPointOne + toFixedPoint(fraction))
        const given = profitPrice(reference, fraction)
        assert.ok(toFixedPoint(given) * fixedPointOne >= exact)
        assert.ok(compareDecimals(given, reference) > 0)
        assert.ok(decimalPlaces(given) <= placesOf(reference))
      }),
    ))

  test('a trailing stop never falls while its highest price rises', () =>
    fc.assert(
      fc.property(fc.array(price, { minLength: 2, maxLength: 20 }), stopFraction, (prices, trail) => {
        let highest = prices[0]!
        let stop = stopPrice(highest, trail)
        for (const each of prices.slice(1)) {
          if (compareDecimals(each, highest) <= 0) continue
          const next = stopPrice(each, trail)
          // A displayed unit shrinks with the price: a stop may round up further at the lower price.
          const unit = fromUnits(1n, placesOf(highest))
          assert.ok(toFixedPoint(next) + toFixedPoint(unit) > toFixedPoint(stop))
          ;[highest, stop] = [each, next]
        }
      }),
    ))
})

describe('sizes', () => {
  test('a leg sells no more than its part of the balance, and all of it at 1', () =>
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 30n), stopFraction, (units, fraction) => {
        assert.ok(fractionOf(units, fraction) * fixedPointOne <= units * toFixedPoint(fraction))
        assert.equal(fractionOf(units, '1'), units)
      }),
    ))

  test('a class holds amounts that differ by less than a quarter of it', () =>
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 30n), (units) => {
        const smallest = sizeClass(units)
        assert.ok(smallest > 0n && smallest <= units)
        assert.ok((units - smallest) * 4n < smallest + 4n)
        assert.equal(sizeClass(smallest), smallest)
      }),
    ))
})

describe('executable prices', () => {
  test('are dollars per whole token', () => {
    const link = { units: 2n * 10n ** 18n, decimals: 18 }
    assert.equal(unitPrice(link, { units: 36_500_000n, decimals: 6, price: '1' }), '18.25')
    const ether = { units: 10n ** 16n, decimals: 18, price: '3500' }
    assert.equal(unitPrice(link, ether), '17.5')
  })

  test('a band has the price between its ends', () => {
    assert.deepEqual(bandAround('100', 200n), { low: '98', high: '102' })
  })
})
