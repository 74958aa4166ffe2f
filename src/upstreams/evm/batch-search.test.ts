import assert from 'node:assert/strict'
import { test } from 'node:test'
import { executeData, nonceOf } from './batch.ts'
import { createBatchSearch } from './batch-search.ts'
import type { createLogSearch } from './log-search.ts'
import type { EvmNode } from './rpc.ts'

/** The transaction of a batch, at a node that shows what its options say. */

const account = `0x${'aa'.repeat(20)}`
const sponsor = `0x${'5b'.repeat(20)}`
const executionId = '0191b6f0-1234-7abc-8def-0123456789ab'
const calls = [{ to: `0x${'c5'.repeat(20)}`, value: 1n, data: '0x' }]
const runs = (sequence: number) =>
  executeData(
    {
      chainId: '1',
      account,
      delegate: sponsor,
      calls,
      deadlineSeconds: 9,
      nonce: nonceOf(executionId, sequence),
    },
    `0x${'11'.repeat(65)}`,
  )
type Block = { hash: string; input: string; to?: string; failed?: boolean }[]

function nodeOf({ head, blocks, logged = [], since = head + 1, isLimited = false }: NodeOptions) {
  const reads: string[] = []
  const all = Object.values(blocks).flat()
  const answer = (method: string, params: unknown[]): unknown => {
    reads.push(method)
    if (method === 'eth_call') return `0x${(Number(params[1]) >= since ? 1n : 0n).toString(16)}`
    if (method === 'eth_getTransactionReceipt') {
      const { failed = false } = all.find(({ hash }) => hash === params[0])!
      return {
        transactionHash: params[0],
        blockNumber: '0x1',
        blockHash: '0x1',
        status: failed ? '0x0' : '0x1',
        gasUsed: '0x1',
        effectiveGasPrice: '0x1',
        from: sponsor,
        logs: [],
      }
    }
    const number = params[0] === 'latest' ? head : Number(params[0])
    const transactions = (blocks[number] ?? []).map(({ hash, input, to = account }) => ({
      hash,
      input,
      to,
      from: sponsor,
      nonce: '0x7',
      value: '0x0',
    }))
    return { number: `0x${number.toString(16)}`, timestamp: '0x1', hash: '0x1', transactions }
  }
  const rpc = async (asked: { method: string; params: unknown[] }[]) =>
    asked.map(({ method, params }) => ({ result: answer(method, params) }))
  const searchLogs = async (_filter: object, { from, to }: { from: bigint; to: bigint }) => ({
    logs: logged
      .filter((block) => BigInt(block) >= from && BigInt(block) <= to)
      .map((block) => ({ block: BigInt(block) })),
    searchedTo: isLimited ? from : to,
  })
  const node = { row: { displayName: 'Test' }, rpc } as unknown as EvmNode
  return {
    reads,
    find: createBatchSearch({
      node,
      searchLogs: searchLogs as unknown as ReturnType<typeof createLogSearch>,
    }),
  }
}
type NodeOptions = {
  head: number
  blocks: Record<number, Block>
  logged?: number[]
  since?: number
  isLimited?: boolean
}

const wanted = nonceOf(executionId, 0)

test('a batch is found by a transfer of its account, among those of other executions and attempts that failed', async () => {
  const { find } = nodeOf({
    head: 30_000,
    logged: [10, 20, 29_000],
    blocks: {
      29000: [{ hash: '0x29', input: runs(1) }],
      20: [
        { hash: '0x20', input: runs(0), failed: true },
        { hash: '0x21', input: runs(0), to: sponsor },
      ],
      10: [{ hash: '0x10', input: runs(0) }],
    },
  })
  const found = await find(account, wanted)
  assert.deepEqual(found && { ...found, calls: found.calls.length }, {
    txHash: '0x10',
    from: sponsor,
    nonce: 7n,
    block: 10n,
    calls: 1,
  })
})

test('a batch without a transfer is found by the state of its account', async () => {
  const { find, reads } = nodeOf({
    head: 5_000,
    since: 4_321,
    blocks: { 4321: [{ hash: '0x43', input: runs(0) }] },
  })
  assert.equal((await find(account, wanted))?.txHash, '0x43')
  assert.ok(reads.filter((method) => method === 'eth_call').length < 40)
})

test('nothing is found where the account has run no such batch', async () => {
  const { find } = nodeOf({ head: 5_000, logged: [7], blocks: { 7: [{ hash: '0x7', input: runs(1) }] } })
  assert.equal(await find(account, wanted), undefined)
})

test('a node that limits searches of logs does not prove that there is no batch', async () => {
  const { find } = nodeOf({ head: 5_000, blocks: {}, isLimited: true })
  await assert.rejects(find(account, wanted), /limits the search of logs/)
})

test('a transaction that is said to have run the batch is read alone, and searched where it has not', async () => {
  const blocks = { 1: [{ hash: '0x1', input: runs(0) }], 2: [{ hash: '0x2', input: runs(1) }] }
  const { find, reads } = nodeOf({ head: 2, blocks })
  assert.equal((await find(account, wanted, '0x1'))?.txHash, '0x1')
  assert.ok(!reads.includes('eth_call'))
  assert.equal(await find(account, nonceOf(executionId, 1), '0x1'), undefined)
  assert.ok(reads.includes('eth_call'))
})
