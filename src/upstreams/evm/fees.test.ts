import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isValidReplacement, planEmptyReplacement, planReplacement, quoteFees, raiseFees } from './fees.ts'

const wei = fc.bigInt({ min: 1n, max: 10n ** 13n })
const fees = fc.record({ maxFeeWei: wei, priorityWei: wei })
const feeRule = fc.record({ priorityFloorWei: wei, priorityCapWei: wei, capWei: wei })
const percent = (value: bigint, tenths: bigint) => (value * (1_000n + tenths)) / 1_000n

test('a replacement is at least an eighth above both fees, and the smallest such', () => {
  fc.assert(
    fc.property(fees, (old) => {
      const next = raiseFees(old)
      assert.ok(next.maxFeeWei * 8n >= old.maxFeeWei * 9n)
      assert.ok((next.maxFeeWei - 1n) * 8n < old.maxFeeWei * 9n)
      assert.ok(isValidReplacement(old, next))
      assert.ok(!isValidReplacement(old, { ...next, priorityWei: next.priorityWei - 1n }))
      assert.ok(!isValidReplacement(old, { ...next, maxFeeWei: next.maxFeeWei - 1n }))
    }),
  )
})

test('five and ten percent more do not replace, although the development node accepts them', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 1_000n, max: 10n ** 13n }), (old) => {
      for (const tenths of [50n, 100n]) {
        const weak = { maxFeeWei: percent(old, tenths), priorityWei: percent(old, tenths) }
        assert.ok(!isValidReplacement({ maxFeeWei: old, priorityWei: old }, weak))
      }
    }),
  )
  const old = { maxFeeWei: 8_000n, priorityWei: 800n }
  assert.ok(isValidReplacement(old, { maxFeeWei: 9_000n, priorityWei: 900n }))
})

test('a quoted fee never exceeds the cap, nor its priority fee the quoted fee', () => {
  fc.assert(
    fc.property(wei, wei, feeRule, (base, suggested, limits) => {
      const offered = quoteFees(base, suggested, limits)
      const { capWei } = limits
      if (base >= capWei) assert.equal(offered, undefined)
      else {
        assert.ok(offered && offered.maxFeeWei <= capWei && offered.priorityWei <= offered.maxFeeWei)
        assert.ok(offered.maxFeeWei >= base + offered.priorityWei || offered.maxFeeWei === capWei)
      }
    }),
  )
})

test('a suggested tip counts up to its cap, whatever the cap of the whole fee', () => {
  const tipRule = { priorityFloorWei: 10n, priorityCapWei: 100n, capWei: 10_000n }
  const tipOf = (suggestedWei: bigint, baseFeeWei = 5n) =>
    quoteFees(baseFeeWei, suggestedWei, tipRule)?.priorityWei
  assert.deepEqual(
    [1n, 50n, 101n, 9_000n].map((suggested) => tipOf(suggested)),
    [10n, 50n, 100n, 100n],
  )
  assert.deepEqual(quoteFees(5n, 9_000n, tipRule), { maxFeeWei: 110n, priorityWei: 100n })
  assert.equal(tipOf(9_000n, 9_990n), 10n)
})

test('at the cap the nonce is cancelled once, and then left alone', () => {
  const old = { maxFeeWei: 950n, priorityWei: 10n }
  const market = { maxFeeWei: 400n, priorityWei: 20n }
  assert.deepEqual(planReplacement({ maxFeeWei: 100n, priorityWei: 10n }, market, 1_000n), {
    kind: 'raise',
    fees: { maxFeeWei: 400n, priorityWei: 20n },
  })
  const cancel = planReplacement(old, market, 1_000n)
  assert.equal(cancel?.kind, 'cancel')
  assert.ok(isValidReplacement(old, cancel!.fees))
  assert.equal(planReplacement(cancel!.fees, market, 1_000n), undefined)
})

const rule = { priorityFloorWei: 10n, priorityCapWei: 1_000n, capWei: 1_000n }

test('a transaction that nobody needs is replaced where it pays less than the chain asks', () => {
  const old = { maxFeeWei: 109n, priorityWei: 10n }
  const plan = (baseFeeWei: bigint, { isOverdue } = { isOverdue: false }) =>
    planEmptyReplacement({ fees: old, isOverdue }, { baseFeeWei, suggestedWei: 5n }, rule)
  assert.equal(plan(99n), undefined)
  assert.deepEqual(plan(100n), { maxFeeWei: 210n, priorityWei: 12n })
  assert.deepEqual(plan(20n, { isOverdue: true }), { maxFeeWei: 123n, priorityWei: 12n })
  assert.equal(plan(1_000n, { isOverdue: true }), undefined)
})

test('an empty replacement raises both fees by an eighth, pays what the chain asks, and stays within the cap', () => {
  fc.assert(
    fc.property(
      fees,
      fc.record({ baseFeeWei: wei, suggestedWei: wei }),
      wei,
      fc.boolean(),
      (old, present, capWei, isOverdue) => {
        const { baseFeeWei, suggestedWei } = present
        const capped = { priorityFloorWei: 1n, priorityCapWei: capWei, capWei }
        const next = planEmptyReplacement({ fees: old, isOverdue }, present, capped)
        if (!next) return
        const market = quoteFees(baseFeeWei, suggestedWei, capped)!
        assert.ok(isValidReplacement(old, next))
        assert.ok(next.maxFeeWei >= market.maxFeeWei && next.priorityWei >= market.priorityWei)
        assert.ok(next.maxFeeWei <= capWei)
      },
    ),
  )
})
