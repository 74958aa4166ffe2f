import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dustUnits } from './dust-payment.ts'

test('dust is a hundred-thousandth of a coin, a cent of USDC, or a millionth of another token', () => {
  assert.equal(dustUnits({ decimals: 18 }, { isNative: true }), 10n ** 13n)
  assert.equal(dustUnits({ decimals: 9 }, { isNative: true }), 10_000n)
  assert.equal(dustUnits({ decimals: 6 }, { isNative: false }), 10_000n)
  assert.equal(dustUnits({ decimals: 8 }, { isNative: false }), 100n)
  assert.equal(dustUnits({ decimals: 0 }, { isNative: false }), 1n)
})
