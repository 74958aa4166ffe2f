import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertIntent, assertReceipt } from '#engines/custody/evm-rules.ts'
import { nativeSentinel } from '#kernel/money/chains.ts'
import { type EvmIntent, intentHash, type PolicyReceipt } from '#kernel/task/signer.ts'
import { readCall } from '#upstreams/evm/token-calls.ts'

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

const [wallet, delegate, friend, stranger] = ['a', 'b', 'c', 'd'].map((digit) => `0x${digit.repeat(40)}`) as [
  string,
  string,
  string,
  string,
]
const chain = { chainId: '8453', delegate, contracts: [], maxUnits: { [nativeSentinel.toLowerCase()]: 10n } }
const call = { to: friend, value: 5n, data: '0x' }
const transferOf = (change: object = {}, calls = [call]) =>
  ({
    type: 'evm_batch',
    userId: 'user',
    taskId: 'task',
    operation: 'wallets_transfer',
    chainId: '8453',
    tokens: [nativeSentinel],
    recipients: [friend],
    usdMicros: 1n,
    exit: false,
    spends: [{ token: nativeSentinel, amountUnits: 5n, spender: friend }],
    batch: {
      chainId: '8453',
      account: wallet,
      delegate,
      calls,
      nonce: 1n,
      deadlineSeconds: now.getTime() / 1_000 + 60,
    },
    delegation: null,
    ...change,
  }) as EvmIntent

test('native coins leave alone, by a transfer, as its spend and to its recipient, within the cap', () => {
  const ruleOf = (sent: EvmIntent, on: object = chain) => {
    try {
      assertIntent({ intent: sent, own: wallet, chain: on as typeof chain, now, readCall })
      return null
    } catch (error) {
      return (error as { extras: { rule: string } }).extras.rule
    }
  }
  const spendOf = (amountUnits: bigint, spender = friend) => ({
    spends: [{ token: nativeSentinel, amountUnits, spender }],
  })
  assert.equal(ruleOf(transferOf()), null)
  assert.equal(ruleOf(transferOf({ operation: 'swap' })), 'signer_send')
  assert.equal(ruleOf(transferOf({}, [call, call])), 'signer_send')
  assert.equal(ruleOf(transferOf({ recipients: [stranger] })), 'signer_recipient')
  assert.equal(ruleOf(transferOf(spendOf(4n))), 'signer_spend')
  assert.equal(ruleOf(transferOf(spendOf(5n, stranger))), 'signer_spend')
  assert.equal(ruleOf(transferOf(spendOf(11n), [{ ...call, value: 11n }])), 'signer_cap')
  assert.equal(ruleOf(transferOf(), { ...chain, maxUnits: {} }), 'signer_token')
  assert.equal(ruleOf(transferOf({}, [{ ...call, value: 0n }])), 'signer_selector')
})
