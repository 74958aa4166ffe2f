import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { takerFeeUnits } from './taker-fee.ts'

const shares = (count: number) => BigInt(count) * 1_000_000n

test('a fee follows the curve of its exponent, rounded down', () => {
  // 100 * 0.04 * 0.25, and the square and the root of the last factor.
  assert.equal(takerFeeUnits({ rate: '0.04', exponent: '1' }, 500_000n, shares(100)), 1_000_000n)
  assert.equal(takerFeeUnits({ rate: '0.04', exponent: '2' }, 500_000n, shares(100)), 250_000n)
  assert.equal(takerFeeUnits({ rate: '0.04', exponent: '0.5' }, 500_000n, shares(100)), 2_000_000n)
  assert.equal(takerFeeUnits({ rate: '0.04', exponent: '0' }, 500_000n, shares(100)), 4_000_000n)
  // 33.333 * 0.07 * 0.2356 = 0.549727836
  assert.equal(takerFeeUnits({ rate: '0.07', exponent: '1' }, 620_000n, 33_333_000n), 549_727n)
  assert.equal(takerFeeUnits({ rate: '0.07', exponent: '1' }, 380_000n, 33_333_000n), 549_727n)
})

test('a market without a fee costs nothing', () => {
  assert.equal(takerFeeUnits(null, 500_000n, shares(100)), 0n)
  assert.equal(takerFeeUnits({ rate: '0', exponent: '1' }, 500_000n, shares(100)), 0n)
})

test('a fee of an unknown form is no fee of zero', () => {
  for (const fee of [
    { rate: 'much', exponent: '1' },
    { rate: '-0.1', exponent: '1' },
    { rate: '', exponent: '1' },
    { rate: '1.0001', exponent: '1' },
    { rate: '900000000000000000000', exponent: '1' },
    { rate: '0.1', exponent: '0.25' },
    { rate: '0.1', exponent: '-1' },
    { rate: '0.1', exponent: '50' },
  ])
    assert.throws(() => takerFeeUnits(fee, 500_000n, shares(1)), Fault, JSON.stringify(fee))
})
