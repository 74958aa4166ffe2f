import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { costOf, externalOf, heldFor, wholeOf } from './shares.ts'

const units = fc.bigInt({ min: 0n, max: 10n ** 24n })

test('the cost of a lot is what was paid, less the part that left with its shares', () => {
  const bought = { assetsUnits: 1_000n, sharesUnits: 100n }
  assert.equal(costOf([]), 0n)
  assert.equal(costOf([bought]), 1_000n)
  assert.equal(costOf([bought, { assetsUnits: -600n, sharesUnits: -50n }]), 500n)
  assert.equal(costOf([bought, { assetsUnits: -1_200n, sharesUnits: -100n }]), 0n)
  assert.equal(costOf([bought, { assetsUnits: -1_200n, sharesUnits: -100n }, bought]), 1_000n)
})

test('a cost is never negative and never more than was paid', () => {
  const change = fc.record({ assetsUnits: units, sharesUnits: units, out: fc.boolean() })
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (raw) => {
      let shares = 0n
      const changes = raw.map(({ assetsUnits, sharesUnits, out }) => {
        const moved = out ? -(sharesUnits < shares ? sharesUnits : shares) : sharesUnits
        shares += moved
        return { assetsUnits: out ? -assetsUnits : assetsUnits, sharesUnits: moved }
      })
      const paid = changes.reduce((sum, each) => (each.assetsUnits > 0n ? sum + each.assetsUnits : sum), 0n)
      const cost = costOf(changes)
      assert.ok(cost >= 0n && cost <= paid)
      if (shares === 0n && changes.at(-1) && changes.at(-1)!.sharesUnits < 0n) assert.equal(cost, 0n)
    }),
  )
})

test('a whole withdrawal takes its own shares, and the last one everything', () => {
  assert.equal(wholeOf({ own: 10n, others: 5n, onChain: 15n }), 10n)
  assert.equal(wholeOf({ own: 10n, others: 5n, onChain: 20n }), 10n)
  assert.equal(wholeOf({ own: 10n, others: 5n, onChain: 12n }), 7n)
  assert.equal(wholeOf({ own: 10n, others: 5n, onChain: 3n }), 0n)
  assert.equal(wholeOf({ own: 10n, others: 0n, onChain: 13n }), 13n)
  assert.equal(wholeOf({ own: 10n, others: 0n, onChain: 4n }), 4n)
})

test('a hold covers the need with a thousandth to spare and never exceeds the position', () => {
  fc.assert(
    fc.property(units, units, (needed, available) => {
      const held = heldFor(needed, available)
      assert.ok(held <= available)
      if (needed < available) assert.ok(held > needed)
    }),
  )
})

test('external changes add up to the difference, and no position loses more than it has', () => {
  fc.assert(
    fc.property(fc.array(units, { minLength: 1, maxLength: 6 }), units, (books, onChain) => {
      const sum = (list: readonly bigint[]) => list.reduce((total, each) => total + each, 0n)
      const external = externalOf(books, onChain)
      assert.equal(sum(books) + sum(external), onChain)
      for (const [index, each] of external.entries()) assert.ok(books[index]! + each >= 0n)
    }),
  )
  assert.deepEqual(externalOf([5n, 5n], 7n), [0n, -3n])
  assert.deepEqual(externalOf([5n, 5n], 12n), [2n, 0n])
  assert.deepEqual(externalOf([], 12n), [])
})
