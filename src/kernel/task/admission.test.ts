import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import { type Attempt, createAdmission } from './admission.ts'
import type { PlannedAction } from './signer.ts'

const action = { userId: 'u', operation: 'move', chainId: '1', tokens: [], recipients: [] }
const planned: PlannedAction = { ...action, usdMicros: 5n, exit: false }
const shortage = new Fault('insufficient_balance', 'The balance is short')
const denial = new Fault('policy_denied', 'The policy denies this')
const grant = {
  version: 0,
  countedMicros: 5n,
  perDayMicros: 9n,
  chatPerDayMicros: 0n,
  chainId: '1',
  exit: false,
  exempt: false,
}

/** Admissions that note the order of their parts. */
function recorded({
  isDenied = false,
  isShort = false,
  asksPolicy = 'on_shortage' as 'first' | 'on_shortage',
}) {
  const calls: string[] = []
  const policy = {
    async check() {
      calls.push('policy')
      if (isDenied) throw denial
      return grant
    },
  }
  const parts = {
    policy,
    asksPolicy,
    async check(_input: { amount: string }, { userId }: Attempt) {
      calls.push('check')
      return { action: { ...planned, userId } }
    },
    async fund() {
      calls.push('fund')
      if (isShort) throw shortage
      return { freeUnits: 7n }
    },
    start: () => ({ first: 'begin' as const, data: { amount: '5' } }),
  }
  return { calls, parts, admit: createAdmission(parts) }
}
const input = { amount: '5' }
const caller = { userId: 'u', principal: 'agent' as const }

test('a denial of the policy wins over a shortage, however early the policy is asked', async () => {
  for (const asksPolicy of ['first', 'on_shortage'] as const) {
    const { admit } = recorded({ isDenied: true, isShort: true, asksPolicy })
    await assert.rejects(admit(input, caller), denial)
  }
})

test('without a shortage only the acceptance asks the policy', async () => {
  const { admit, calls } = recorded({ isDenied: true })
  const admission = await admit(input, caller)
  assert.deepEqual(calls, ['check', 'fund'])
  await assert.rejects(admission.spend!.check(), denial)
})

test('a policy that is asked first is asked once, before the balance is read', async () => {
  const { admit, calls } = recorded({ isShort: true, asksPolicy: 'first' })
  await assert.rejects(admit(input, caller), shortage)
  assert.deepEqual(calls, ['check', 'policy', 'fund'])
})

test('an admission with stale reads is repeated from its check, and only the last attempt counts pending spends', async () => {
  const { parts, calls } = recorded({})
  const attempts: boolean[] = []
  const admit = createAdmission({
    ...parts,
    async fund(_request, { isLast }: Attempt) {
      attempts.push(isLast)
      if (!isLast) throw shortage
      return { freeUnits: 0n }
    },
    reread: async (_userId, once) => once({ isLast: false }).catch(() => once({ isLast: true })),
  })
  await admit(input, caller)
  assert.deepEqual(attempts, [false, true])
  assert.deepEqual(calls, ['check', 'policy', 'check'])
})
