import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type Assessment,
  assessmentOf,
  riskLevels,
  type SecurityReason,
  taxBps,
  worstOf,
} from './token-security.ts'

const token = { chainId: '8453', address: '0x1' }
const checkedAt = new Date(0)
const units = fc.bigInt({ min: 0n, max: 10n ** 40n })

test('a tax is the missing part of the quote, rounded up to a hundredth of a percent', () => {
  assert.equal(taxBps(10_000n, 10_000n), 0)
  assert.equal(taxBps(10_000n, 9_700n), 300)
  assert.equal(taxBps(10_000n, 0n), 10_000)
  assert.equal(taxBps(3n, 2n), 3_334)
  assert.equal(taxBps(10n ** 30n, 10n ** 30n - 1n), 1)
  assert.equal(taxBps(0n, 0n), null)
})

test('no tax looks smaller than it is, or larger by a hundredth of a percent', () => {
  fc.assert(
    fc.property(units, units, (quoted, got) => {
      const bps = taxBps(quoted, got)
      if (quoted === 0n) return assert.equal(bps, null)
      assert.ok(bps !== null && bps >= 0 && bps <= 10_000)
      const missing = quoted > got ? (quoted - got) * 10_000n : 0n
      assert.ok(BigInt(bps) * quoted >= missing)
      assert.ok(bps === 0 || (BigInt(bps) - 1n) * quoted < missing)
    }),
  )
})

const reason = fc.record({
  code: fc.constantFrom('a', 'b'),
  level: fc.constantFrom(...riskLevels),
  message: fc.constant('why'),
}) as fc.Arbitrary<SecurityReason>
const assessment = fc
  .tuple(fc.constantFrom('x', 'y'), fc.array(reason, { maxLength: 4 }), fc.option(fc.nat(10_000)))
  .map(([source, reasons, sellTaxBps]) => assessmentOf(source, reasons, { sellTaxBps }))
const ownOf = (own: Assessment) => ({ ...own, poolMicros: null, block: 7n })

test('a token is allowed only where our own check proves it safe and no source calls it risky', () => {
  fc.assert(
    fc.property(assessment, fc.array(assessment, { maxLength: 3 }), (own, others) => {
      const verdict = worstOf(token, { own: ownOf(own), others, checkedAt })
      const isRisky = [own, ...others].some((each) => each.verdict === 'risky')
      assert.equal(verdict.allowed, own.verdict === 'safe' && !isRisky)
      assert.equal(verdict.allowed, verdict.status === 'passed')
      assert.equal(verdict.verdict === 'risky', isRisky)
      if (own.verdict === 'unknown' && !isRisky) assert.equal(verdict.status, 'api_unavailable')
    }),
  )
})

test('a further source never improves a verdict', () => {
  const rank = { safe: 0, unknown: 1, risky: 2 }
  fc.assert(
    fc.property(assessment, fc.array(assessment, { maxLength: 2 }), assessment, (own, others, further) => {
      const before = worstOf(token, { own: ownOf(own), others, checkedAt })
      const after = worstOf(token, { own: ownOf(own), others: [...others, further], checkedAt })
      assert.ok(rank[after.verdict] >= rank[before.verdict])
      assert.ok((after.sellTaxBps ?? 0) >= (before.sellTaxBps ?? 0))
    }),
  )
})

test('the order of the sources does not matter', () => {
  fc.assert(
    fc.property(assessment, fc.array(assessment, { maxLength: 3 }), (own, others) => {
      const shown = (list: Assessment[]) => {
        const { verdict, riskLevel, sellTaxBps } = worstOf(token, {
          own: ownOf(own),
          others: list,
          checkedAt,
        })
        return { verdict, riskLevel, sellTaxBps }
      }
      assert.deepEqual(shown(others), shown(others.toReversed()))
    }),
  )
})

test('a service that is silent changes nothing, and one that disagrees makes the token risky', () => {
  const own = ownOf(assessmentOf('simulation', [], { isHoneypot: false }))
  const silent = assessmentOf('service', [{ code: 'provider_unavailable', level: 'unknown', message: '503' }])
  const alarmed = assessmentOf('service', [{ code: 'honeypot', level: 'honeypot', message: 'it is' }], {
    isHoneypot: true,
  })
  assert.equal(worstOf(token, { own, others: [silent], checkedAt }).status, 'passed')
  const flagged = worstOf(token, { own, others: [silent, alarmed], checkedAt })
  assert.deepEqual([flagged.status, flagged.riskLevel, flagged.isHoneypot], ['flagged', 'honeypot', true])
})

test('a service that calls a token safe does not replace our own simulation', () => {
  const own = ownOf(assessmentOf('simulation', [{ code: 'no_pool', level: 'unknown', message: 'none' }]))
  const safe = assessmentOf('service', [], { isHoneypot: false })
  const verdict = worstOf(token, { own, others: [safe], checkedAt })
  assert.deepEqual(
    [verdict.status, verdict.riskLevel, verdict.isHoneypot],
    ['api_unavailable', 'unknown', null],
  )
})
