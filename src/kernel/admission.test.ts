import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Attempt, createAdmission } from './admission.ts'
import { Fault } from './fault.ts'
import type { PlannedAction } from './signer.ts'
import { externalAccount, type Tx } from './task.ts'

const action = { userId: 'u', operation: 'move', chainId: '1', tokens: [], recipients: [] }
const planned: PlannedAction = { ...action, usdMicros: 5n, exit: false }
const shortage = new Fault('insufficient_balance', 'The balance is short')
const denial = new Fault('policy_denied', 'The policy denies this')
const tx = {} as Tx
const grant = {
  version: 0,
  countedMicros: 5n,
  perDayMicros: 9n,
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
    async reserve() {
      calls.push('reserve')
    },
  }
  const account = { owner: 'u', asset: 'usdc', subAccount: 'wallet' }
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
    start: () => ({
      first: 'begin' as const,
      data: { amount: '5' },
      hold: {
        keyOf: (taskId: string) => `${taskId}:cash`,
        account,
        amountUnits: 5n,
        reason: 'move',
        token: { symbol: 'USDC', decimals: 6, address: '0x1' },
      },
      async writes() {
        calls.push('writes')
      },
    }),
  }
  return { calls, parts, account, admit: createAdmission(parts) }
}
const input = { amount: '5' }
const caller = { userId: 'u' }

test('a denial of the policy wins over a shortage, however early the policy is asked', async () => {
  for (const asksPolicy of ['first', 'on_shortage'] as const) {
    const { admit } = recorded({ isDenied: true, isShort: true, asksPolicy })
    await assert.rejects(admit(input, caller), denial)
  }
})

test('without a shortage only the accepting transaction asks the policy, before the rows of the feature', async () => {
  const { admit, calls } = recorded({ isDenied: true })
  const admission = await admit(input, caller)
  assert.deepEqual(calls, ['check', 'fund'])
  await admission.spend?.reserve(tx, 't')
  await admission.writes?.(tx, 't')
  assert.deepEqual(calls, ['check', 'fund', 'reserve', 'writes'])
})

test('a policy that is asked first is asked once, before the balance is read', async () => {
  const { admit, calls } = recorded({ isShort: true, asksPolicy: 'first' })
  await assert.rejects(admit(input, caller), shortage)
  assert.deepEqual(calls, ['check', 'policy', 'fund'])
})

test('a hold is credited to the external account under the key of its task', async () => {
  const { admit, account } = recorded({})
  const [move] = (await admit(input, caller)).moves?.('t') ?? []
  assert.ok(move?.move === 'hold')
  assert.deepEqual([move.key, move.debit, move.credit], ['t:cash', account, externalAccount('usdc')])
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
