import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { planNonceRepair, startNonce } from './nonce-repair-plan.ts'

const attempt = (nonce: bigint, raw = `0x${nonce}`) => ({ nonce, raw })

test('a new sequence begins after every transaction that the node knows, mined or pending', async () => {
  const counts = { pending: 9n, latest: 7n }
  const chain = { transactionCount: async (_signer: string, at: 'latest' | 'pending') => counts[at] }
  assert.equal(await startNonce(chain, '0x1'), 9n)
})

test('a sequence that agrees with its chain needs no repair', () => {
  assert.deepEqual(planNonceRepair(7n, 7n, []), { next: 7n, resend: [], gaps: [] })
})

test('a counter far above the chain is set back to the end of the stored transactions', () => {
  const sent = Array.from({ length: 291 }, (_, index) => attempt(BigInt(index)))
  const plan = planNonceRepair(0n, 633n, sent)
  assert.equal(plan.next, 291n)
  assert.equal(plan.resend.length, 291)
  assert.deepEqual(plan.gaps, [])
})

test('a counter behind the chain is raised', () => {
  assert.deepEqual(planNonceRepair(9n, 4n, [attempt(3n)]), { next: 9n, resend: [], gaps: [] })
})

test('of several transactions under one nonce the last one is sent', () => {
  const plan = planNonceRepair(2n, 4n, [attempt(2n, '0xold'), attempt(3n), attempt(2n, '0xnew')])
  assert.deepEqual(plan.resend, [attempt(2n, '0xnew'), attempt(3n)])
})

test('after a plan is executed every nonce up to the counter is used exactly once', () => {
  const nonces = fc.uniqueArray(fc.bigInt({ min: 0n, max: 40n }), { maxLength: 30 })
  fc.assert(
    fc.property(
      nonces,
      fc.bigInt({ min: 0n, max: 40n }),
      fc.bigInt({ min: 0n, max: 60n }),
      (stored, mined, counter) => {
        const plan = planNonceRepair(
          mined,
          counter,
          stored.map((nonce) => attempt(nonce)),
        )
        const filled = [...plan.resend.map((each) => each.nonce), ...plan.gaps].sort((a, b) =>
          a < b ? -1 : 1,
        )
        const wanted = Array.from({ length: Number(plan.next - mined) }, (_, index) => mined + BigInt(index))
        assert.deepEqual(filled, wanted)
      },
    ),
  )
})
