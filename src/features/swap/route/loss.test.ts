import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { assertLossBounded, isLossAccepted, type Received, refundFloorUnits } from './loss.ts'
import type { SwapTerms } from './terms.ts'

const dollars = (count: number): bigint => BigInt(Math.round(count * 1_000_000))
const destination = { token: { symbol: 'NEW' } } as SwapTerms['destination']
type Case = Partial<Received> & { inUsd: number | null; maxImpactBps?: number }

/** The loss in hundredths of a percent for which a swap is refused; undefined where it is not. */
function refusedFor({ inUsd, maxImpactBps = 2_500, outMicros = null, poolMicros = null }: Case) {
  const valueInMicros = inUsd === null ? null : dollars(inUsd)
  try {
    assertLossBounded({ valueInMicros, maxImpactBps, destination }, { outMicros, poolMicros })
  } catch (fault) {
    assert.ok(fault instanceof Fault && fault.code === 'insufficient_liquidity', String(fault))
    return fault.extras.impact_bps
  }
  return undefined
}

test('a swap keeps three quarters of its value at trusted prices, whatever its pool holds', () => {
  assert.equal(refusedFor({ inUsd: 100, outMicros: dollars(75) }), undefined)
  assert.equal(refusedFor({ inUsd: 100, outMicros: dollars(74) }), 2_600)
  assert.equal(refusedFor({ inUsd: 100, outMicros: dollars(99), poolMicros: 1n }), undefined)
})

test('a purchase without a trusted price is refused where it is large for its pool', () => {
  const pool = { poolMicros: dollars(6_000) }
  assert.equal(refusedFor({ inUsd: 2_000, ...pool }), undefined)
  assert.equal(refusedFor({ inUsd: 2_001, ...pool }), 2_500)
  assert.equal(refusedFor({ inUsd: 18_000, ...pool }), 7_500)
  assert.equal(refusedFor({ inUsd: 50, poolMicros: 0n }), 10_000)
})

test('the caller can accept a larger loss, and what is not known refuses nothing', () => {
  const pool = { poolMicros: dollars(6_000) }
  assert.equal(refusedFor({ inUsd: 18_000, ...pool, maxImpactBps: 7_500 }), undefined)
  assert.equal(refusedFor({ inUsd: 18_000 }), undefined)
  assert.equal(refusedFor({ inUsd: null, poolMicros: 0n }), undefined)
})

test('fees may take five dollars of a swap, and no more than half of it', () => {
  assert.equal(refusedFor({ inUsd: 19, outMicros: dollars(14) }), undefined)
  assert.equal(refusedFor({ inUsd: 19, outMicros: dollars(13.99) }), 2_636)
  assert.equal(refusedFor({ inUsd: 4.9, outMicros: dollars(2.45) }), undefined)
  assert.equal(refusedFor({ inUsd: 4.9, outMicros: dollars(2.44) }), 5_020)
  assert.equal(refusedFor({ inUsd: 4.9, outMicros: 1n }), 9_999)
})

test('a tenth of the value is left, whatever loss is accepted', () => {
  const accepted = { inUsd: 1_000, maxImpactBps: 10_000 }
  assert.equal(refusedFor({ ...accepted, outMicros: dollars(100) }), undefined)
  assert.equal(refusedFor({ ...accepted, outMicros: dollars(99) }), 9_010)
  assert.equal(refusedFor({ inUsd: 1, maxImpactBps: 10_000, outMicros: dollars(0.09) }), 9_100)
})

test('a refund is what a swap may leave of the deposit, and dust is none', () => {
  assert.equal(refundFloorUnits({ amount_in: '1000', usd_micros: '1000000000' }), 750n)
  assert.equal(refundFloorUnits({ amount_in: '1000', usd_micros: '10000000' }), 500n)
  assert.equal(isLossAccepted(dollars(75), dollars(100)), true)
  assert.equal(isLossAccepted(dollars(74), dollars(100)), false)
})
