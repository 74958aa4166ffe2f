import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { abandonedAttempts, planNonceRepair, startNonce } from './nonce-repair-plan.ts'

const attempt = (nonce: bigint, raw = `0x${nonce}`) => ({
  nonce,
  raw,
  effectId: `effect ${nonce}`,
  n: 0,
  isFinal: false,
  storedAt: new Date(0),
})

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

test('nonces that were mined above the counter are reported: nothing that was stored took them', () => {
  const unknown = { from: 4n, to: 9n }
  assert.deepEqual(planNonceRepair(9n, 4n, [attempt(3n)]), { next: 9n, resend: [], gaps: [], unknown })
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

const now = new Date(3_600_000)
const live = { isFinal: false }
const aged = (nonce: bigint, ageMs: number, { isFinal } = { isFinal: true }) => ({
  ...attempt(nonce),
  isFinal,
  storedAt: new Date(now.getTime() - ageMs),
})
const abandoned = (resend: ReturnType<typeof aged>[], mined = 4n) =>
  abandonedAttempts({ mined, resend }, { now, stuckAfterMs: 60_000 }).map(({ nonce, isOverdue }) => [
    nonce,
    isOverdue,
  ])

test('the transactions of ended tasks are replaced up to the first one of a live task', () => {
  const old = 120_000
  assert.deepEqual(abandoned([aged(4n, old), aged(5n, old), aged(6n, old, live), aged(7n, old)]), [
    [4n, false],
    [5n, false],
  ])
  assert.deepEqual(abandoned([aged(4n, old, live), aged(5n, old)]), [])
})

test('bytes that were just stored get the time to be mined', () => {
  assert.deepEqual(abandoned([aged(4n, 59_999), aged(5n, 60_000)]), [[5n, false]])
})

test('only the oldest unmined nonce is overdue: the others wait for it', () => {
  assert.deepEqual(abandoned([aged(4n, 600_000), aged(5n, 600_000)]), [
    [4n, true],
    [5n, false],
  ])
  assert.deepEqual(abandoned([aged(5n, 600_000)]), [[5n, false]])
})

test('a round signs a bounded number of replacements, the oldest nonces first', () => {
  const many = Array.from({ length: 291 }, (_, index) => aged(BigInt(index + 4), 120_000))
  const found = abandoned(many)
  assert.equal(found.length, 100)
  assert.equal(found[0]![0], 4n)
})
