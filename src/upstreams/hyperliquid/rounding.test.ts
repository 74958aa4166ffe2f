import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { canonicalDecimal, decimalPlaces, fromUnits, toUnits } from '#kernel/money/money.ts'
import {
  boundPrice,
  type Grid,
  isOnTick,
  minPrice,
  notionalMicros,
  roundPrice,
  roundSize,
  sizeOfNotional,
  tickAt,
} from './rounding.ts'

const grids = fc
  .record({ sizeDecimals: fc.integer({ min: 0, max: 6 }) })
  .map(({ sizeDecimals }): Grid => ({ sizeDecimals, priceDecimals: Math.max(0, 6 - sizeDecimals) }))
const decimals = fc
  .tuple(fc.bigInt({ min: 1n, max: 10n ** 26n }), fc.integer({ min: 0, max: 18 }))
  .map(([units, places]) => fromUnits(units, places))

/** Possible values of requests and markets, so that the quotient still fits our decimals. */
const amounts = fc
  .tuple(fc.bigInt({ min: 1n, max: 10n ** 18n }), fc.integer({ min: 6, max: 12 }))
  .map(([units, places]) => fromUnits(units, places))

const figuresOf = (text: string): number => text.replace('.', '').replace(/^0+/, '').replace(/0+$/, '').length

describe('tick and lot of the venue', () => {
  test('a price has at most five figures and the decimals of its market, a size the decimals of its lot', () => {
    assert.equal(roundPrice('97123.456789', { sizeDecimals: 5, priceDecimals: 1 }, 'down'), '97123')
    assert.equal(roundPrice('97123.456789', { sizeDecimals: 5, priceDecimals: 1 }, 'up'), '97124')
    assert.equal(roundSize('1.23456789', { sizeDecimals: 5 }), '1.23456')
    assert.equal(roundPrice('0.0112749', { sizeDecimals: 0, priceDecimals: 6 }, 'down'), '0.011274')
    assert.equal(roundPrice('123456', { sizeDecimals: 0, priceDecimals: 6 }, 'down'), '123456')
    assert.equal(roundPrice('9999.96', { sizeDecimals: 0, priceDecimals: 6 }, 'up'), '10000')
    assert.equal(tickAt('104500', { sizeDecimals: 5, priceDecimals: 1 }), '1')
    assert.equal(tickAt('3420', { sizeDecimals: 4, priceDecimals: 2 }), '0.1')
    assert.equal(isOnTick('3420.5', { sizeDecimals: 4, priceDecimals: 2 }), true)
    assert.equal(isOnTick('3420.55', { sizeDecimals: 4, priceDecimals: 2 }), false)
  })

  test('a rounded price is on the tick, in the requested direction, and nearer than one tick', () => {
    fc.assert(
      fc.property(
        decimals,
        grids,
        fc.constantFrom('down' as const, 'up' as const),
        (price, grid, direction) => {
          const rounded = roundPrice(price, grid, direction)
          const order = compareDecimals(rounded, price)
          assert.ok(direction === 'down' ? order <= 0 : order >= 0)
          assert.ok(isOnTick(rounded, grid) || rounded === '0', rounded)
          assert.equal(canonicalDecimal(rounded), rounded)
          const whole = decimalPlaces(rounded) === 0
          assert.ok(
            whole || (figuresOf(rounded) <= 5 && decimalPlaces(rounded) <= grid.priceDecimals),
            rounded,
          )
        },
      ),
    )
  })

  test('a size is cut and never grows, and dust becomes 0', () => {
    fc.assert(
      fc.property(decimals, grids, (size, grid) => {
        const cut = roundSize(size, grid)
        assert.ok(compareDecimals(cut, size) <= 0)
        assert.ok(decimalPlaces(cut) <= grid.sizeDecimals)
        assert.equal(roundSize(cut, grid), cut)
        assert.equal(cut === '0', compareDecimals(size, fromUnits(1n, grid.sizeDecimals)) < 0)
      }),
    )
  })

  test('a size in dollars never costs more than those dollars', () => {
    fc.assert(
      fc.property(amounts, amounts, grids, (usd, price, grid) => {
        const size = sizeOfNotional(usd, price, grid)
        assert.ok(notionalMicros(price, size) <= notionalMicros(usd, '1', 'up'))
      }),
    )
  })

  test('the lowest price for a value is on the tick, reaches it, and one tick less does not', () => {
    const sizes = fc.integer({ min: 1, max: 10_000_000 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), sizes, grids, (dollars, lots, grid) => {
        const usd = String(dollars)
        const size = fromUnits(BigInt(lots), grid.sizeDecimals)
        const least = minPrice(usd, size, grid)
        assert.ok(isOnTick(least, grid))
        assert.ok(notionalMicros(least, size, 'up') >= notionalMicros(usd, '1'))
        const lower = fromUnits(toUnits(least, 18) - toUnits(tickAt(least, grid), 18), 18)
        assert.ok(notionalMicros(lower, size) < notionalMicros(usd, '1'), `${least} ${lower} ${size}`)
      }),
    )
  })

  test('a notional is price times size in micro-dollars, rounded as requested', () => {
    assert.equal(notionalMicros('2.5', '4'), 10_000_000n)
    assert.deepEqual([notionalMicros('0.0000001', '1'), notionalMicros('0.0000001', '1', 'up')], [0n, 1n])
  })

  test('a purchase is bounded above the price and a sale below it', () => {
    const grid = { sizeDecimals: 2, priceDecimals: 4 }
    assert.equal(boundPrice('100', { percent: '8', isBuy: true, grid }), '108')
    assert.equal(boundPrice('100', { percent: '8', isBuy: false, grid }), '92')
  })

  test('the bound of a market order is never beyond the accepted slippage', () => {
    const percents = fc.integer({ min: 1, max: 1_000 }).map((n) => fromUnits(BigInt(n), 2))
    const prices = fc.integer({ min: 10_000, max: 99_999_999 }).map((n) => fromUnits(BigInt(n), 4))
    fc.assert(
      fc.property(prices, percents, fc.boolean(), grids, (price, percent, isBuy, grid) => {
        const bound = boundPrice(price, { percent, isBuy, grid })
        const hundredfold = notionalMicros(bound, '100')
        const [low, high] = [notionalMicros(price, '100'), notionalMicros(price, percent, 'up')]
        if (isBuy) assert.ok(hundredfold <= low + high)
        else assert.ok(hundredfold >= low - high)
        assert.ok(isOnTick(bound, grid))
      }),
    )
  })
})
