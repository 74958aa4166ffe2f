import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertReceipt } from '#features/wallets/signing-rules.ts'
import type { EvmIntent, PolicyReceipt } from '#kernel/signer.ts'
import { intentHash } from '#kernel/signer.ts'

const now = new Date('2026-01-01T00:00:00Z')
const intent = { userId: 'user', taskId: 'task', usdMicros: 1n } as unknown as EvmIntent
const receiptWith = (change: Partial<Record<keyof PolicyReceipt, unknown>>) =>
  ({
    id: 'receipt',
    userId: 'user',
    taskId: 'task',
    intentHash: intentHash(intent),
    expiresAt: new Date('2026-01-01T00:01:00Z'),
    ...change,
  }) as unknown as PolicyReceipt
const checkReceipt = (change: Partial<Record<keyof PolicyReceipt, unknown>>, isAuthentic = true) =>
  assertReceipt({ intent, receipt: receiptWith(change), now, isAuthentic })

test('a receipt signs its own intent, for its own user and task, until it expires', () => {
  checkReceipt({})
  const refusals: [Partial<Record<keyof PolicyReceipt, unknown>>, string][] = [
    [{ userId: 'other' }, 'signer_receipt_owner'],
    [{ taskId: 'other' }, 'signer_receipt_owner'],
    [{ intentHash: intentHash({ ...intent, usdMicros: 2n }) }, 'signer_receipt_intent'],
    [{ expiresAt: now }, 'signer_receipt_expired'],
  ]
  for (const [change, rule] of refusals)
    assert.throws(
      () => checkReceipt(change),
      ({ extras }: { extras: { rule: string } }) => extras.rule === rule,
      rule,
    )
  assert.throws(
    () => checkReceipt({}, false),
    ({ extras }: { extras: { rule: string } }) => extras.rule === 'signer_receipt',
  )
})
