import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/fault.ts'
import { assertLossBounded, type Received } from './loss.ts'
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

test('the caller can accept a larger loss, a small one always passes, and what is not known refuses nothing', () => {
  const pool = { poolMicros: dollars(6_000) }
  assert.equal(refusedFor({ inUsd: 18_000, ...pool, maxImpactBps: 7_500 }), undefined)
  assert.equal(refusedFor({ inUsd: 5, poolMicros: 0n }), undefined)
  assert.equal(refusedFor({ inUsd: 18_000 }), undefined)
  assert.equal(refusedFor({ inUsd: null, poolMicros: 0n }), undefined)
})
