import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deriveCloid, effectKind } from '#engines/venue/orders/action-outcome.ts'
import type { Step, TaskView } from '#kernel/task/task.ts'
import type { IncomingTransfer } from '#upstreams/evm/evm.ts'
import type { LedgerUpdate } from '#upstreams/hyperliquid/hyperliquid.ts'
import { type WithdrawDeps, withdrawSteps } from './withdraw.ts'

const { signal } = new AbortController()
const now = new Date(1_700_000_000_000)
const payout: IncomingTransfer = {
  txHash: '0xaa',
  index: 0,
  block: 60n,
  amountUnits: 9_000_000n,
  token: '0xusdc',
  from: '0xbridge',
  to: '0xacc',
}

type Late = {
  /** Searches that a node answers with the head of another one, and with no logs of the blocks that it lacks. */
  blindSearches?: number
  /** Reads of the list before it contains the payout. */
  emptyReads?: number
}

function createArrival({ blindSearches = 0, emptyReads = 0 }: Late) {
  const counts = { searches: 0, ledgerReads: 0 }
  const deps = {
    db: { query: async () => ({ rows: [] }) },
    chain: {
      row: { confirmations: 2 },
      head: async () => ({ number: 100n }),
      async incomingTransfers(_token: string, _owner: string, { from, to }: { from: bigint; to: bigint }) {
        counts.searches += 1
        const isBlind = counts.searches <= blindSearches
        return { transfers: isBlind || from > payout.block ? [] : [payout], searchedTo: to }
      },
    },
    venue: {
      async ledgerSince() {
        counts.ledgerReads += 1
        return counts.ledgerReads <= emptyReads
          ? []
          : [{ type: 'withdraw', nonce: 7, amountUsd: '9' } as LedgerUpdate]
      },
    },
    route: { chainId: '42161', token: '0xusdc', symbol: 'USDC' },
    limits: { withdrawFeeUsd: '1' },
    changed: () => {},
  }
  const { arrive } = withdrawSteps(deps as object as Parameters<typeof withdrawSteps>[0] & WithdrawDeps)
  return { arrive: arrive as Step<object, string>, counts }
}

/** Polls until the withdrawal has ended. */
async function pollsToEnd({ arrive }: ReturnType<typeof createArrival>): Promise<number> {
  const first = { account: '0xacc', amount_usd: '10', since_ms: 0, first_block: '50', from_block: '50' }
  let data: object = first
  const effect = { kind: effectKind, externalId: deriveCloid('t', 'withdraw'), txAttempts: [{ nonce: 7n }] }
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
      return round
    }
    data = { ...data, ...result.data }
  }
  assert.fail(`the payout was never found: ${JSON.stringify(data)}`)
}

test('a payout that one node hid is found by a search from the first block, with few reads of the list', async () => {
  const arrival = createArrival({ blindSearches: 1 })
  await pollsToEnd(arrival)
  assert.equal(arrival.counts.ledgerReads, 1)
})

test('a list that follows the chain by a moment is read again with the next poll, and then rarely', async () => {
  assert.equal(await pollsToEnd(createArrival({ emptyReads: 1 })), 1)
  assert.equal(await pollsToEnd(createArrival({ emptyReads: 2 })), 7)
})
