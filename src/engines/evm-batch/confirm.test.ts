import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Effect, TaskView, Tx } from '#kernel/task.ts'
import type { Evm, Head } from '#upstreams/evm/evm.ts'
import type { ReceiptWatcher } from '#upstreams/evm/receipt-watcher.ts'
import type { Sponsor } from '#upstreams/evm/sponsor.ts'
import { type ConfirmDeps, confirmBatch } from './confirm.ts'

const now = new Date(1_700_000_000_000)
const nowSeconds = now.getTime() / 1_000
const nonceSequence = { kind: 'evm', chain: '8453', signer: '0x51' }
const head: Head = { number: 100n, hash: '0x64', timestampSeconds: nowSeconds, baseFeeWei: 1n }
const batch = { account: '0xacc', calls: [], deadlineSeconds: nowSeconds + 600 }

const effect: Effect = {
  id: 'e',
  step: 'prepare',
  kind: 'evm_batch',
  externalId: '0xba',
  intent: { chainId: nonceSequence.chain, batch },
  signed: {},
  status: 'sent',
  validUntil: null,
  at: now,
  txAttempts: [{ n: 0, externalId: '0xc0', raw: '0xraw', nonceSequence, nonce: 7n, status: 'sent', at: now }],
}
const task: TaskView = {
  id: 't',
  userId: 'u',
  kind: 'earn_deposit',
  data: {},
  input: {},
  attempt: 1,
  effects: [effect],
  createdAt: now,
  deadline: new Date(now.getTime() + 600_000),
}

/** A chain that reports the nonce of the attempt as used, and has no receipt of it. */
function createConfirmStep({ mined, times = 0n }: { mined: bigint; times?: bigint }) {
  const sent: string[] = []
  const chain: Partial<Evm> = {
    row: {
      id: nonceSequence.chain,
      displayName: 'Base',
      confirmations: 1,
      explorerUrl: '',
      stuckAfterMs: 30_000,
    } as Evm['row'],
    receipts: async () => ({ head, receipts: [undefined] }),
    sendRaw: async (raw) => {
      sent.push(raw)
      return { verdict: 'nonce_used' }
    },
    headAt: async () => head,
    transactionCount: async () => mined,
    executed: async () => ({ times, timestampSeconds: nowSeconds }),
  }
  const sponsor: Partial<Sponsor> = {
    fees: async () => ({ maxFeeWei: 2n, priorityWei: 1n }),
    reassignNonce: async (raw, _signer, { nonce }) => ({ externalId: `${raw}:${nonce}`, raw, nonce }),
  }
  const watcher: ReceiptWatcher = {
    watch: () => ({
      next: async () => ({ head, receipts: [undefined] }),
      [Symbol.dispose]: () => undefined,
    }),
    wakeOnNews: () => true,
    forget: () => undefined,
    close: () => undefined,
  }
  const deps: ConfirmDeps = {
    portOf: () => ({ chain: chain as Evm, sponsor: sponsor as Sponsor, watcher }),
    nonces: { take: async (_tx, _sequence, minNonce) => minNonce },
    gasBudget: { settle: async () => undefined },
    onNonceUsed: () => undefined,
  }
  const settling = { task, prove: () => undefined, settle: () => Promise.reject(new Error('not proven')) }
  return { run: () => confirmBatch(deps, settling, { now, signal: new AbortController().signal }), sent }
}

test('a batch whose nonce was used by another transaction is sent under the next nonce at once', async () => {
  const { run, sent } = createConfirmStep({ mined: 9n })
  const result = await run()
  assert.ok('replace' in result, JSON.stringify(result))
  assert.deepEqual(sent, ['0xraw'], 'the stored bytes were sent first')
  const txAttempt = await result.replace.build({} as Tx)
  assert.deepEqual([result.replace.effectId, txAttempt.nonce, txAttempt.raw], ['e', 9n, '0xraw'])
})

test('a batch keeps its nonce where the nonce is unused or the account executed the batch', async () => {
  for (const facts of [{ mined: 7n }, { mined: 9n, times: 1n }]) {
    const result = await createConfirmStep(facts).run()
    assert.ok('park' in result, JSON.stringify(result))
  }
})
