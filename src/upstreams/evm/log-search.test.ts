import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import { createLogSearch } from './log-search.ts'

const row = { id: '8453', displayName: 'Base' } as EvmChainRow
const filter = { address: '0x00', topics: [] }
const head = { number: '0xf4240', hash: '0xab', timestamp: '0x1', baseFeePerGas: '0x1' }

/** A node with the head 1,000,000 that refuses a search with this sentence. */
function createSearch(refusalOf: (from: bigint, to: bigint) => string | undefined) {
  const widths: number[] = []
  let refused = 0
  let ms = 0
  const search = createLogSearch({
    row,
    nowMs: () => ms,
    rpc: async (calls) =>
      calls.map(({ method, params }) => {
        if (method === 'eth_getBlockByNumber') return { result: head }
        const { fromBlock, toBlock } = params[0] as { fromBlock: string; toBlock: string }
        const [from, to] = [BigInt(fromBlock), BigInt(toBlock)]
        const message = refusalOf(from, to)
        if (message !== undefined) {
          refused += 1
          return { error: { code: -32602, message } }
        }
        widths.push(Number(to - from) + 1)
        return { result: [] }
      }),
  })
  return {
    search: (from: bigint, to: bigint) => search(filter, { from, to }),
    widths,
    refused: () => refused,
    passMs: (more: number) => {
      ms += more
    },
  }
}

for (const message of [
  'block range extends beyond current head block',
  'query exceeds max results 20000, retry with the range 1-2',
])
  test(`"${message}" narrows one search and no later one`, async () => {
    let refusals = 9
    const { search, widths } = createSearch(() => (refusals-- > 0 ? message : undefined))
    const { searchedTo } = await search(1n, 900n)
    assert.equal(searchedTo, 900n)
    assert.ok(widths.length < 20, 'the window grows again')
    widths.length = 0
    await search(1_000n, 2_999n)
    assert.deepEqual(widths, [1_000, 1_000])
  })

test('a search ends before the blocks that the node which searches does not have', async () => {
  const node = createSearch((_, to) =>
    to > 990n ? 'block range extends beyond current head block' : undefined,
  )
  assert.equal((await node.search(900n, 995n)).searchedTo, 990n)
  await assert.rejects(node.search(991n, 995n), { code: 'unavailable' })
})

test('a limit of blocks is tried again with twice as many after a minute', async () => {
  let blocksMax = 100n
  const node = createSearch((from, to) =>
    to - from + 1n > blocksMax ? 'block range is too wide' : undefined,
  )
  await node.search(1n, 1_000n)
  const { length } = node.widths
  const refused = node.refused()
  await node.search(1n, 1_000n)
  assert.equal(node.refused(), refused)
  assert.ok(node.widths.slice(length).every((width) => width <= 100))
  blocksMax = 10_000n
  for (let minute = 0; minute < 4; minute += 1) {
    node.passMs(60_000)
    node.widths.length = 0
    await node.search(1n, 1_000n)
  }
  assert.ok(node.widths.length <= 2, node.widths.join())
})
