import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '#kernel/contract/fault.ts'
import type { Effect, TaskView, Tx } from '#kernel/task/task.ts'
import type { Evm, Head, Receipt } from '#upstreams/evm/evm.ts'
import type { ReceiptWatcher } from '#upstreams/evm/receipt-watcher.ts'
import type { Sponsor } from '#upstreams/evm/sponsor.ts'
import { createBroadcasts } from './broadcasts.ts'
import { type ConfirmDeps, confirmBatch } from './confirm.ts'

const now = new Date(1_700_000_000_000)
const nowSeconds = now.getTime() / 1_000
const nonceSequence = { kind: 'evm', chain: '8453', signer: '0x51' }
const head: Head = { number: 100n, hash: '0x64', timestampSeconds: nowSeconds, baseFeeWei: 1n }
const batch = { account: '0xacc', calls: [], nonce: '0', deadlineSeconds: nowSeconds + 600 }

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
  executionId: 't',
  userId: 'u',
  kind: 'earn_deposit',
  data: {},
  input: {},
  attempt: 1,
  version: 1,
  effects: [effect],
  createdAt: now,
  deadline: new Date(now.getTime() + 600_000),
}

const reverted: Receipt = {
  txHash: '0xc0',
  block: 10n,
  blockHash: head.hash,
  success: false,
  gasUsed: 1n,
  feeWei: 1n,
  from: nonceSequence.signer,
  logs: [],
}

type Seen = {
  /** Batches of the task before this one. */
  sequence?: number
  mined: bigint
  times?: bigint
  receipt?: Receipt
  /** The node has the state of no older block. */
  oldestState?: bigint
  /** The node refuses the gas limit of what is sent. */
  isInvalid?: boolean
  /** The node takes no transactions. */
  isDown?: boolean
  /** Duration of each reading of receipts. */
  readingMs?: number
  /** The node does not answer. */
  isSilent?: boolean
  /** When the bytes were stored. */
  storedAt?: Date
  stopping?: AbortSignal
}

/** A chain that reports the nonce of the attempt as used; by default it has no receipt of it. */
function createConfirmStep({
  mined,
  times = 0n,
  receipt,
  oldestState = 0n,
  sequence = 0,
  isInvalid,
  isDown,
  isSilent,
  readingMs = 0,
  storedAt = now,
  stopping = new AbortController().signal,
}: Seen) {
  let elapsedMs = 0
  const own = {
    ...effect,
    at: storedAt,
    txAttempts: effect.txAttempts.map((attempt) => ({ ...attempt, at: storedAt })),
    intent: { chainId: nonceSequence.chain, batch: { ...batch, nonce: String(sequence) } },
  }
  const sent: string[] = []
  const chain: Partial<Evm> = {
    row: {
      id: nonceSequence.chain,
      displayName: 'Base',
      confirmations: 1,
      explorerUrl: '',
      stuckAfterMs: 30_000,
    } as Evm['row'],
    receipts: async () => ({ head, receipts: [receipt] }),
    sendRaw: async (raw) => {
      sent.push(raw)
      if (isDown) throw new Fault('unavailable', 'The node takes no transactions')
      return isInvalid ? { verdict: 'invalid', reason: 'exceeds block gas limit' } : { verdict: 'nonce_used' }
    },
    headAt: async () => head,
    transactionCount: async () => mined,
    async executed(_account, _taskId, at) {
      if (at < oldestState) throw new Fault('unavailable', 'The node refused: missing trie node')
      return { times, timestampSeconds: nowSeconds }
    },
    simulate: async () => ({ ok: false, block: head.number, failedCall: 0, reason: 'paused' }),
  }
  const sponsor: Partial<Sponsor> = {
    fees: async () => ({ maxFeeWei: 2n, priorityWei: 1n }),
    reassignNonce: async (raw, _signer, { nonce }) => ({ externalId: `${raw}:${nonce}`, raw, nonce }),
    isEmpty: () => false,
    replacementOf: async () => ({ kind: 'raise', fees: { maxFeeWei: 3n, priorityWei: 2n } }),
    cancellationOf: async () => ({ kind: 'cancel', fees: { maxFeeWei: 3n, priorityWei: 2n } }),
    replace: async (_raw, _signer, { kind }) => ({ externalId: '0xc1', raw: kind, nonce: 7n }),
  }
  const watcher: ReceiptWatcher = {
    watch: () => ({
      async next({ timeoutMs }) {
        if (isSilent) throw new Fault('unavailable', 'The node does not answer')
        if (timeoutMs === 0) return undefined
        elapsedMs += readingMs
        return { head, receipts: [receipt] }
      },
      [Symbol.dispose]: () => undefined,
    }),
    wakeOnNews: () => true,
    forget: () => undefined,
    close: () => undefined,
  }
  const deps: ConfirmDeps = {
    portOf: () => ({
      chain: chain as Evm,
      sponsor: sponsor as Sponsor,
      watcher,
      broadcasts: createBroadcasts(chain as Evm),
    }),
    nonces: { take: async (_tx, _sequence, minNonce) => minNonce },
    gasBudget: { settle: async () => undefined },
    onNonceUsed: () => undefined,
    ...(readingMs > 0 && { nowMs: () => elapsedMs }),
  }
  const settling = {
    task: { ...task, effects: [own] },
    prove: () => undefined,
    settle: () => Promise.reject(new Error('not proven')),
  }
  return {
    run: () =>
      confirmBatch(deps, settling, {
        now,
        signal: new AbortController().signal,
        stopping,
        steps: { sign: 'sign', confirm: 'confirm' },
      }),
    sent,
  }
}

test('a batch whose nonce was used by another transaction is sent under the next nonce at once', async () => {
  const { run, sent } = createConfirmStep({ mined: 9n })
  const result = await run()
  assert.ok('replace' in result, JSON.stringify(result))
  assert.deepEqual(sent, ['0xraw'], 'the stored bytes were sent first')
  const txAttempt = await result.replace.build({} as Tx)
  assert.deepEqual([result.replace.effectId, txAttempt.nonce, txAttempt.raw], ['e', 9n, '0xraw'])
})

test('the second batch of a task is judged by its own executions', async () => {
  const mine = await createConfirmStep({ mined: 9n, times: 1n, sequence: 1 }).run()
  assert.ok('replace' in mine, 'only the first one was executed')
  const both = await createConfirmStep({ mined: 9n, times: 2n, sequence: 1 }).run()
  assert.ok('park' in both, JSON.stringify(both))
})

test('a batch keeps its nonce where the nonce is unused or the account executed the batch', async () => {
  for (const facts of [{ mined: 7n }, { mined: 9n, times: 1n }]) {
    const result = await createConfirmStep(facts).run()
    assert.ok('park' in result, JSON.stringify(result))
  }
})

test('a batch that reverted long ago ends at a node that has the state of the last blocks only', async () => {
  const { run } = createConfirmStep({ mined: 8n, receipt: reverted, oldestState: 90n })
  const result = await run()
  assert.ok('end' in result && result.end === 'failed', JSON.stringify(result))
  assert.equal(result.outcome, 'not_executed')
  assert.match(result.error.message, /paused/)
})

test('bytes whose gas limit the node refuses are replaced at once, unless another node has them mined', async () => {
  const refused = await createConfirmStep({ mined: 5n, isInvalid: true }).run()
  assert.ok('replace' in refused, JSON.stringify(refused))
  const { raw, nonce } = await refused.replace.build({} as Tx)
  assert.deepEqual([raw, nonce], ['cancel', 7n])
  const mined = await createConfirmStep({ mined: 8n, isInvalid: true, receipt: reverted }).run()
  assert.ok('end' in mined, JSON.stringify(mined))
})

test('bytes are sent again after a slow reading too, and a node that does not take them gets no higher fee', async () => {
  const slow = { mined: 7n, readingMs: 2_500, storedAt: new Date(now.getTime() - 60_000) }
  const down = createConfirmStep({ ...slow, isDown: true })
  const result = await down.run()
  assert.deepEqual(down.sent, ['0xraw'])
  assert.ok('park' in result && result.state === 'reconciling', JSON.stringify(result))
  assert.equal(result.outcome, 'unknown')
  const up = createConfirmStep(slow)
  assert.ok('replace' in (await up.run()), 'a node that answers gets the higher fee')
  assert.deepEqual(up.sent, ['0xraw'])
})

test('a batch whose node is silent is for an operator after an hour, and the look-ups go on', async () => {
  const runAged = (ms: number) =>
    createConfirmStep({ mined: 7n, isSilent: true, storedAt: new Date(now.getTime() - ms) }).run()
  const states = await Promise.all([runAged(3_500_000), runAged(3_700_000)])
  assert.deepEqual(
    states.map((each) => 'park' in each && [each.state, each.outcome, each.park.next]),
    [
      ['reconciling', 'unknown', 'confirm'],
      ['review', 'unknown', 'confirm'],
    ],
  )
})

test('an instance that ends waits for nothing more, and says what it has seen', async () => {
  const { run, sent } = createConfirmStep({ mined: 7n, isDown: true, stopping: AbortSignal.abort() })
  const result = await run()
  assert.ok('park' in result && result.state === 'submitted', JSON.stringify(result))
  assert.deepEqual(sent, [])
})
