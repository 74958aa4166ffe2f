import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RelayState } from '#kernel/money/prediction-setup.ts'
import type { Effect } from '#kernel/task/task.ts'
import { outcomeOf } from './relay-outcome.ts'

const minute = 60_000
const signedAt = new Date(0)
const wallet = { kind: 'deposit_wallet', owner: '0x1', wallet: '0x2' } as const
type Case = {
  state: RelayState | undefined
  next: bigint
  validUntil: Date | null
  action?: object
  /** Whether the relayer's id of the action is known; it lists no action otherwise. */
  isNamed?: boolean
}

/**
 * What is found of an action with the nonce 7 that the relayer accepted, so long after its signature; `ran` means that
 * it has run, and that its transaction is to be searched for.
 */
const found = async (
  { state, next, validUntil, action = { wallet: '0x2', nonce: '7' }, isNamed = true }: Case,
  afterMs: number,
): Promise<string> => {
  const deps = {
    venue: {
      setup: { nonceCall: () => ({}), relayer: { state: async () => state, recent: async () => [] } },
    },
    chain: { views: async () => ({ results: [{ success: true, data: word(next) }] }) },
  } as unknown as Parameters<typeof outcomeOf>[0]
  const txAttempts = [{ raw: '{}' }]
  const effect = { intent: { action }, validUntil, at: signedAt, txAttempts } as unknown as Effect
  const task = { data: { relay_id: isNamed ? 'r1' : null, wallet } }
  const outcome = await outcomeOf(deps, task, { effect, now: new Date(afterMs) })
  return outcome.type === 'pending' && outcome.hasRun ? 'ran' : outcome.type
}
const word = (value: bigint): string => `0x${value.toString(16).padStart(64, '0')}`
const pending: RelayState = {
  relayId: 'r1',
  state: 'pending',
  venueState: 'STATE_NEW',
  txHash: null,
  error: null,
  nonce: 7n,
  signature: null,
  metadata: null,
}

test('a batch that the relayer has lost is signed again once it can no longer run', async () => {
  const validUntil = new Date(5 * minute)
  for (const state of [undefined, pending]) {
    assert.equal(await found({ state, next: 7n, validUntil }, 5 * minute), 'pending')
    assert.equal(await found({ state, next: 7n, validUntil }, 7 * minute), 'again')
    // It has run, whatever the relayer says.
    assert.equal(await found({ state, next: 8n, validUntil }, 7 * minute), 'ran')
  }
})

test('an action without a deadline is signed again after an hour, unless its nonce is used', async () => {
  const safe = { safe: '0x3', nonce: '7' }
  const creation = { type: 'create_wallet', owner: '0x1' }
  for (const action of [safe, creation]) {
    const lost = { state: undefined, next: 7n, validUntil: null, action }
    assert.equal(await found(lost, 59 * minute), 'pending')
    assert.equal(await found(lost, 61 * minute), 'again')
  }
  assert.equal(await found({ state: pending, next: 8n, validUntil: null, action: safe }, 61 * minute), 'ran')
})

test('a batch that the relayer lists no more, or calls failed, is searched for once its nonce is used', async () => {
  const unnamed = { state: undefined, validUntil: new Date(5 * minute), isNamed: false }
  assert.equal(await found({ ...unnamed, next: 8n }, 5 * minute), 'ran')
  assert.equal(await found({ ...unnamed, next: 7n }, 5 * minute), 'pending')
  assert.equal(await found({ ...unnamed, next: 7n }, 7 * minute), 'again')
  const failed = { state: { ...pending, state: 'failed' as const }, validUntil: new Date(5 * minute) }
  assert.equal(await found({ ...failed, next: 8n }, minute), 'ran')
  assert.equal(await found({ ...failed, next: 7n }, minute), 'rejected')
})
