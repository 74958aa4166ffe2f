import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fromFixedPoint, toFixedPoint } from '#kernel/money/money.ts'
import { agreedPrice, unitsWorth } from './native-amount.ts'

test('two prices agree within one percent of the lower one, and the higher one counts', () => {
  assert.equal(agreedPrice('3500', '3500'), '3500')
  assert.equal(agreedPrice('3500', '3535'), '3535')
  assert.equal(agreedPrice('3535', '3500'), '3535')
  assert.equal(agreedPrice('3500', '3535.000000000000000001'), undefined)
  assert.equal(agreedPrice('0.25', '0.253'), undefined)
  assert.equal(agreedPrice('0', '0'), undefined)
  assert.equal(agreedPrice('0', '1'), undefined)
})

test('an amount is rounded up to a unit', () => {
  assert.equal(unitsWorth('10', '2500', 18), 4_000_000_000_000_000n)
  assert.equal(unitsWorth('5', '3500', 18), 1_428_571_428_571_429n)
  assert.equal(unitsWorth('5', '0.25', 18), 20n * 10n ** 18n)
})

test('an amount is worth the price of the pack, and a unit less is not', () => {
  const price = fc.bigInt({ min: 1n, max: 10n ** 24n })
  const usd = fc.constantFrom('5', '10', '20')
  fc.assert(
    fc.property(price, usd, fc.constantFrom(9, 18), (priceFixed, dollars, decimals) => {
      const units = unitsWorth(dollars, fromFixedPoint(priceFixed), decimals)
      const wanted = toFixedPoint(dollars) * 10n ** BigInt(decimals)
      assert.ok(units * priceFixed >= wanted)
      assert.ok((units - 1n) * priceFixed < wanted)
    }),
  )
})
