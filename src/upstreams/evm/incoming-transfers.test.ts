import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { JsonRpc } from '#kernel/wire/json-rpc.ts'
import { createIncomingTransferSearch } from './incoming-transfers.ts'
import { createLogSearch } from './log-search.ts'

const token = `0x${'11'.repeat(20)}`
const dusted = `0x${'22'.repeat(20)}`
const other = `0x${'33'.repeat(20)}`

/** A node that refuses searches of more than `blocksMax` blocks, with the provider's sentence. */
function nodeOf(refusal: (owner: string, blocks: bigint) => string | undefined) {
  const searched: bigint[] = []
  const rpc: JsonRpc = async (calls) =>
    calls.map(({ method, params }) => {
      if (method === 'eth_getBlockByNumber')
        return {
          result: { number: '0xffff', hash: `0x${'00'.repeat(32)}`, timestamp: '0x1', baseFeePerGas: '0x1' },
        }
      const [{ topics, fromBlock, toBlock }] = params as [
        { topics: (string | null)[]; fromBlock: string; toBlock: string },
      ]
      const blocks = BigInt(toBlock) - BigInt(fromBlock) + 1n
      const message = refusal(String(topics[2]), blocks)
      if (message !== undefined) return { error: { code: -32_005, message } }
      searched.push(blocks)
      return { result: [] }
    })
  const row = { id: '8453', displayName: 'Base' } as EvmChainRow
  return { search: createIncomingTransferSearch(createLogSearch({ row, rpc })), searched }
}
const isDusted = (topic: string) => topic.toLowerCase().includes('22'.repeat(20))

test('many transfers to one owner do not narrow the searches of others', async () => {
  const { search, searched } = nodeOf((owner, blocks) =>
    isDusted(owner) && blocks > 10n ? 'query returned more than 10000 results' : undefined,
  )
  await search(token, dusted, { from: 1n, to: 100n })
  assert.ok(searched.every((blocks) => blocks <= 10n))
  searched.length = 0
  await search(token, other, { from: 1n, to: 1_000n })
  assert.deepEqual(searched, [1_000n])
})

test('a limit of blocks is remembered for every search', async () => {
  let refusals = 0
  const { search, searched } = nodeOf((_, blocks) => {
    if (blocks <= 250n) return undefined
    refusals += 1
    return 'block range is too wide'
  })
  await search(token, dusted, { from: 1n, to: 1_000n })
  assert.equal(refusals, 2)
  await search(token, other, { from: 1n, to: 1_000n })
  assert.equal(refusals, 2)
  assert.ok(searched.every((blocks) => blocks === 250n))
})
