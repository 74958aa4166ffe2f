import assert from 'node:assert/strict'
import { test } from 'node:test'
import { effectKind } from '#engines/venue/orders/action-outcome.ts'
import { cloidOf } from '#engines/venue/orders/signed-action.ts'
import type { Step, TaskView } from '#kernel/task.ts'
import type { IncomingTransfer } from '#upstreams/evm/evm.ts'
import type { LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type WithdrawDeps, withdrawSteps } from './withdraw.ts'

const { signal } = new AbortController()
const now = new Date(1_700_000_000_000)
const arrival: IncomingTransfer = {
  txHash: '0xaa',
  index: 0,
  block: 60n,
  amountUnits: 9_000_000n,
  token: '0xusdc',
  from: '0xbridge',
  to: '0xacc',
}

/** A provider whose nodes answer the calls of one batch: the head of one, no logs of another that lacks the blocks. */
function createArrival() {
  const counts = { searches: 0, ledgerReads: 0 }
  const deps = {
    db: { query: async () => ({ rows: [] }) },
    chain: {
      row: { confirmations: 2 },
      head: async () => ({ number: 100n }),
      async incomingTransfers(_token: string, _owner: string, { from, to }: { from: bigint; to: bigint }) {
        counts.searches += 1
        const isBlind = counts.searches === 1
        return { transfers: isBlind || from > arrival.block ? [] : [arrival], searchedTo: to }
      },
    },
    venue: {
      async ledgerSince() {
        counts.ledgerReads += 1
        return [{ type: 'withdraw', nonce: 7, amountUsd: '9' } as LedgerUpdate]
      },
    },
    route: { chainId: '42161', token: '0xusdc', symbol: 'USDC' },
    limits: { withdrawFeeUsd: '1' },
    changed: () => {},
  }
  const { arrive } = withdrawSteps(deps as object as Parameters<typeof withdrawSteps>[0] & WithdrawDeps)
  return { arrive: arrive as Step<object, string>, counts }
}

test('a payout that one node hid is found by a search from the first block, with few reads of the list', async () => {
  const { arrive, counts } = createArrival()
  const first = { account: '0xacc', amount_usd: '10', since_ms: 0, first_block: '50', from_block: '50' }
  let data: object = first
  const effect = { kind: effectKind, externalId: cloidOf('t', 'withdraw'), txAttempts: [{ nonce: 7n }] }
  for (let round = 0; round < 60; round += 1) {
    const task = {
      id: 't',
      executionId: 't',
      userId: 'u',
      data,
      effects: [effect],
      createdAt: now,
    } as object as TaskView<object>
    const result = await arrive(task, { now, signal, stopping: signal })
    if ('end' in result) {
      assert.equal(result.outcome, 'executed')
      assert.equal(counts.ledgerReads, 1)
      return
    }
    data = { ...data, ...result.data }
  }
  assert.fail(`the payout was never found: ${JSON.stringify(data)}`)
})
