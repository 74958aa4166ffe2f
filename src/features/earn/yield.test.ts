import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { apyOf, dayMs } from './yield.ts'

const hourMs = 3_600_000
const start = new Date('2026-01-01T00:00:00Z')
const one = 10n ** 18n
const at = (hours: number) => new Date(start.getTime() + hours * hourMs)
const priceAfter = (apy: number, hours: number) =>
  (one * BigInt(Math.round(Math.exp(Math.log1p(apy) * (hours / 8_760)) * 1e15))) / 10n ** 15n

test('a vault that compounds at a rate shows that rate within a basis point, from an hour to a month', () => {
  const apys = fc.double({ min: 0, max: 0.6, noNaN: true })
  fc.assert(
    fc.property(apys, fc.integer({ min: 1, max: 720 }), (apy, hours) => {
      const prices = [0, hours].map((each) => ({ at: at(each), price: priceAfter(apy, each) }))
      const seen = apyOf(prices, 30 * dayMs)
      assert.ok(seen !== null && Math.abs(seen - apy) < 0.0001, `${apy} over ${hours} h came out as ${seen}`)
    }),
  )
})

test('a loss is negative', () => {
  const seen = apyOf(
    [
      { at: at(0), price: one },
      { at: at(24), price: one - one / 1_000n },
    ],
    dayMs,
  )
  assert.ok(seen !== null && seen < -0.3 && seen > -0.31)
})

test('no yield is shown before an hour of prices is known', () => {
  assert.equal(apyOf([], dayMs), null)
  assert.equal(apyOf([{ at: at(0), price: one }], dayMs), null)
  assert.equal(
    apyOf(
      [
        { at: at(0), price: one },
        { at: at(0.98), price: one + 1n },
      ],
      dayMs,
    ),
    null,
  )
  assert.equal(
    apyOf(
      [
        { at: at(0), price: one },
        { at: at(1), price: one },
      ],
      dayMs,
    ),
    0,
  )
})

test('a window starts at its first price, not at the first of all', () => {
  const prices = [
    { at: at(0), price: one },
    { at: at(240), price: one * 2n },
    { at: at(264), price: one * 2n },
  ]
  assert.equal(apyOf(prices, dayMs), 0)
  assert.ok((apyOf(prices, 30 * dayMs) ?? 0) > 1)
})
