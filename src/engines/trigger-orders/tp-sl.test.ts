import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Fault } from '#kernel/contract/fault.ts'
import { assertSide, type CheckedTpSl, checkTpSl, trailingTpSl, triggerOf, type WantedTpSl } from './tp-sl.ts'

const wanted = (type: WantedTpSl['type'], leg: WantedTpSl['leg']): WantedTpSl => ({ leg, field: 'leg', type })
const fieldOf = (run: () => unknown): string => {
  try {
    run()
  } catch (fault) {
    return (fault as Fault).issues.map(({ path }) => path.join('.')).join(' ')
  }
  return 'accepted'
}

describe('legs', () => {
  test('a percentage counts from the reference, and a trailing stop from the market', () => {
    const at = { reference: '20', mark: '30' }
    const stop = checkTpSl(wanted('stop_loss', { price_percentage: '0.1' }))
    const profit = checkTpSl(wanted('take_profit', { price_percentage: '0.1' }))
    assert.deepEqual(triggerOf(stop, at), { direction: 'lte', triggerPrice: '18', referencePrice: '20' })
    assert.deepEqual(triggerOf(profit, at), { direction: 'gte', triggerPrice: '22', referencePrice: '20' })
    assert.equal(triggerOf(trailingTpSl('0.1', 'leg'), at).triggerPrice, '27')
    const given = checkTpSl(wanted('stop_loss', { price_usd: '7.5' }))
    assert.deepEqual(triggerOf(given, at), { direction: 'lte', triggerPrice: '7.5', referencePrice: null })
  })

  test('fractions have bounds, and each names its field', () => {
    const check = (type: WantedTpSl['type'], leg: WantedTpSl['leg']) =>
      fieldOf(() => checkTpSl(wanted(type, leg)))
    assert.equal(check('stop_loss', { price_percentage: '0.999' }), 'accepted')
    assert.equal(check('stop_loss', { price_percentage: '1' }), 'leg.price_percentage')
    assert.equal(check('take_profit', { price_percentage: '10' }), 'accepted')
    assert.equal(check('take_profit', { price_percentage: '10.01' }), 'leg.price_percentage')
    assert.equal(check('take_profit', { price_percentage: '0' }), 'leg.price_percentage')
    assert.equal(check('stop_loss', { price_usd: '1', sell_percentage: '1' }), 'accepted')
    assert.equal(check('stop_loss', { price_usd: '1', sell_percentage: '1.01' }), 'leg.sell_percentage')
    assert.notEqual(check('stop_loss', { price_usd: '1', price_percentage: '0.1' }), 'accepted')
    assert.notEqual(check('stop_loss', {}), 'accepted')
    assert.equal(
      fieldOf(() => trailingTpSl('1', 'trail')),
      'trail',
    )
  })

  test('a price on the wrong side of the market is refused, and the price of the market itself', () => {
    const leg = (type: CheckedTpSl['type'], price: string) => ({
      ...trailingTpSl('0.1', 'leg'),
      type,
      fraction: null,
      price,
    })
    const check = (type: CheckedTpSl['type'], price: string) =>
      fieldOf(() => assertSide(leg(type, price), '10'))
    assert.equal(check('stop_loss', '9.99'), 'accepted')
    assert.equal(check('stop_loss', '10'), 'leg.price_usd')
    assert.equal(check('take_profit', '10.01'), 'accepted')
    assert.equal(check('take_profit', '10'), 'leg.price_usd')
  })
})
