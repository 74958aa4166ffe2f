import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeFunctionData, encodeFunctionResult, pad, parseAbi, toHex } from 'viem/utils'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import type { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { RpcAnswer, RpcCall } from '#kernel/wire/json-rpc.ts'
import { readViews } from './multicall-views.ts'
import type { EvmNode } from './rpc.ts'
import { type Hex, hexQuantity } from './wire.ts'

/** A provider that answers each call of a request from another node, of which some lag. */

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calls) payable returns (Result[] returnData)',
])
const multicall = '0xcA11bde05977b3631167028862bE2a173976CA11'
const word = (value: bigint): Hex => pad(toHex(value))
const newest = 1_000n
const timeOf = (block: bigint): bigint => 50_000n + block

type Head = () => bigint
/** `callHead` and `headerHead`: the newest block of the node that answers the one and the other. */
function nodeOf({ callHead, headerHead }: { callHead: Head; headerHead: Head }) {
  const asked: string[][] = []
  const blockOf = (tag: unknown, head: bigint) => (tag === 'latest' ? head : BigInt(tag as Hex))
  const answer = ({ method, params }: RpcCall): RpcAnswer => {
    const head = method === 'eth_call' ? callHead() : headerHead()
    const [first, second] = params
    const block = blockOf(method === 'eth_call' ? second : first, head)
    if (block > head) return { error: { code: -32000, message: 'header not found' } }
    if (method === 'eth_getBlockByNumber')
      return {
        result: { number: hexQuantity(block), hash: word(block), timestamp: hexQuantity(timeOf(block)) },
      }
    const { args } = decodeFunctionData({ abi, data: (first as { data: Hex }).data })
    // The view returns the block of the state; time and number follow it.
    const seen = args[0].map((_, at) => (at === args[0].length - 2 ? timeOf(block) : block))
    const results = seen.map((value) => ({ success: true, returnData: word(value) }))
    return { result: encodeFunctionResult({ abi, functionName: 'aggregate3', result: results }) }
  }
  const node: EvmNode = {
    row: { displayName: 'Arbitrum', multicall, callsSeeBlockNumber: false } as EvmChainRow,
    async rpc(calls) {
      asked.push(calls.map(({ method }) => method))
      return calls.map(answer)
    },
    multicallCode: createCachedValue(() => Promise.reject(new Error('not asked')), {
      ttlMs: 0,
      nowMs: () => 0,
    }),
  }
  return { node, asked }
}
const view = { to: multicall, data: '0x' }
const inTurn = (...heads: bigint[]): Head => {
  let at = 0
  return () => heads[at++ % heads.length]!
}

test('calls that a provider answered at an older block than the header are repeated at its block', async () => {
  const { node, asked } = nodeOf({ callHead: inTurn(newest - 3n, newest), headerHead: () => newest })
  const { head, results } = await readViews(node, [view])
  assert.deepEqual(head, { number: newest, timestampSeconds: Number(timeOf(newest)) })
  assert.equal(BigInt(results[0]!.data), newest)
  assert.deepEqual(asked, [['eth_call', 'eth_getBlockByNumber'], ['eth_call']])
})

test('a header that lags behind its calls is read at the block of the header', async () => {
  const { node } = nodeOf({ callHead: () => newest, headerHead: () => newest - 3n })
  const { head, results } = await readViews(node, [view])
  assert.equal(head.number, newest - 3n)
  assert.equal(BigInt(results[0]!.data), newest - 3n)
})

test('views are read again while the node that runs them lacks the block', async () => {
  const callHead = inTurn(newest - 3n, newest - 2n, newest)
  const { node } = nodeOf({ callHead, headerHead: () => newest })
  const { head, results } = await readViews(node, [view])
  assert.equal(head.number, newest)
  assert.equal(BigInt(results[0]!.data), newest)
})

test('views and header that never agree are unavailable after three reads', async () => {
  const { node, asked } = nodeOf({ callHead: () => newest - 3n, headerHead: () => newest })
  await assert.rejects(readViews(node, [view]), ({ code }: Fault) => code === 'unavailable')
  assert.equal(asked.length, 6)
})
