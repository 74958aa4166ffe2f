import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { externalOf, sharesToHold } from './share-division.ts'

const units = fc.bigInt({ min: 0n, max: 10n ** 24n })

test('a hold covers the need with a thousandth to spare and never exceeds the position', () => {
  fc.assert(
    fc.property(units, units, (needed, available) => {
      const held = sharesToHold(needed, available)
      assert.ok(held <= available)
      if (needed < available) assert.ok(held > needed)
    }),
  )
})

test('external changes add up to the difference, and no position loses more than it has', () => {
  fc.assert(
    fc.property(fc.array(units, { minLength: 1, maxLength: 6 }), units, (booked, onChain) => {
      const sum = (list: readonly bigint[]) => list.reduce((total, each) => total + each, 0n)
      const external = externalOf(booked, onChain)
      assert.equal(sum(booked) + sum(external), onChain)
      for (const [index, each] of external.entries()) assert.ok(booked[index]! + each >= 0n)
    }),
  )
  assert.deepEqual(externalOf([5n, 5n], 7n), [0n, -3n])
  assert.deepEqual(externalOf([5n, 5n], 12n), [2n, 0n])
  assert.deepEqual(externalOf([], 12n), [])
})
