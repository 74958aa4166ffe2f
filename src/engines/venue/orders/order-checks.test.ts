import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { assertExit, assertTick, limitPriceOf, orderSize, type Sizing } from './order-checks.ts'

/** Rounding rules of a market with whole-dollar ticks and lots of a hundredth of a coin. */
const sizing: Sizing = {
  isOnTick: (price) => !price.includes('.'),
  tickAt: () => '1',
  roundSize: (size) => size.replace(/(\.\d\d)\d+$/, '$1').replace(/^0\.00$/, '0'),
  sizeOfNotional: (usd, price) => String(Math.floor((Number(usd) / Number(price)) * 100) / 100),
  notionalMicros: (price, size) => BigInt(Math.round(Number(price) * Number(size) * 1e6)),
}
const market = { sizeDecimals: 2, priceDecimals: 0 }
const typeOf = (run: () => unknown): string | undefined => {
  try {
    run()
    return undefined
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault
    return fault.issues[0]?.type ?? fault.code
  }
}

describe('checks of an order request', () => {
  const setting = { market, price: '100', minimum: '10', notionalField: 'notional_usd' }
  const size = ({ size, notional }: { size?: string; notional?: string }) =>
    orderSize({ size, notional }, setting, sizing)

  test('a size is cut to the lot, and a result that is zero or too small is rejected', () => {
    assert.equal(size({ size: '0.129' }), '0.12')
    assert.equal(size({ notional: '25.9' }), '0.25')
    assert.equal(
      typeOf(() => size({ size: '0.009' })),
      'below_minimum',
    )
    assert.equal(
      typeOf(() => size({ size: '0.09' })),
      'below_minimum',
    )
    assert.equal(
      typeOf(() => size({ notional: '9.99' })),
      'below_minimum',
    )
    assert.equal(
      typeOf(() => size({})),
      'exactly_one_of',
    )
    assert.equal(
      typeOf(() => size({ size: '1', notional: '100' })),
      'exactly_one_of',
    )
  })

  test('a limit order has a price on the tick, and a market order has none', () => {
    const limit = (input: object) => limitPriceOf(input, market, sizing)
    assert.equal(limit({ order_type: 'limit', limit_price: '99' }), '99')
    assert.equal(limit({}), undefined)
    assert.equal(
      typeOf(() => limit({ order_type: 'limit' })),
      'missing',
    )
    assert.equal(
      typeOf(() => limit({ limit_price: '99' })),
      'extra_forbidden',
    )
    assert.equal(
      typeOf(() => limit({ order_type: 'limit', limit_price: '99.5' })),
      'tick_invalid',
    )
    assert.equal(
      typeOf(() => assertTick('1.5', market, 'tp_price', sizing)),
      'tick_invalid',
    )
  })

  test('a trigger on the wrong side of the price is rejected before it is sent', () => {
    const cases: ['tp' | 'sl', boolean, string, string | undefined][] = [
      ['tp', true, '101', undefined],
      ['tp', true, '100', 'greater_than'],
      ['sl', true, '99', undefined],
      ['sl', true, '100', 'less_than'],
      ['tp', false, '99', undefined],
      ['tp', false, '100', 'less_than'],
      ['sl', false, '101', undefined],
      ['sl', false, '99.9', 'greater_than'],
    ]
    for (const [leg, isBuy, price, wrong] of cases) {
      const exit = { leg, price, isBuy, reference: '100', field: `${leg}_price` }
      assert.equal(
        typeOf(() => assertExit(exit)),
        wrong,
        `${leg} ${isBuy} ${price}`,
      )
    }
  })
})
