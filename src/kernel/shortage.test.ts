import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insufficientBalance } from './shortage.ts'

test('a shortage says its figures as decimals, in the sentence and beside it', () => {
  const { message, extras } = insufficientBalance({
    symbol: 'USDC',
    decimals: 6,
    token: '0xabc',
    requiredUnits: 20_000_000_000n,
    availableUnits: 9_900_500_000n,
  })
  assert.equal(message, '20000 USDC are needed, and 9900.5 are free')
  assert.deepEqual(extras, {
    symbol: 'USDC',
    token: '0xabc',
    decimals: 6,
    required: '20000',
    available: '9900.5',
  })
})
