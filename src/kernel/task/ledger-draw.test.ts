import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { postDraw } from './ledger-draw.ts'

const part = fc.record({ key: fc.uuid(), amountUnits: fc.bigInt({ min: 1n, max: 1_000n }) })

test('what was spent is posted from the first accounts, to the unit', () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), fc.bigInt({ min: 0n, max: 4_000n }), (parts, units) => {
      const drawn = parts.reduce((sum, { amountUnits }) => sum + amountUnits, 0n)
      if (units > drawn) return assert.throws(() => postDraw(parts, units))
      const posted = postDraw(parts, units)
      assert.equal(
        posted.reduce((sum, { amountUnits }) => sum + amountUnits, 0n),
        units,
      )
      // Only the last one is posted in part.
      for (const [at, { amountUnits }] of posted.slice(0, -1).entries())
        assert.equal(amountUnits, parts[at]!.amountUnits)
    }),
  )
})
