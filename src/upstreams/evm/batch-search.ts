import { pad, toEventSelector } from 'viem/utils'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmCall } from '#kernel/task/signer.ts'
import type { RpcCall } from '#kernel/wire/json-rpc.ts'
import { executedBatchIn, sequenceData } from './batch.ts'
import { findUnreached, firstReached } from './block-search.ts'
import type { createLogSearch } from './log-search.ts'
import { readBlockTransactions } from './native-transfers.ts'
import { type BlockTag, callOne, type EvmNode, tagOf } from './rpc.ts'
import { type Hex, headOf, parseReceipt } from './wire.ts'

/** Finds the transaction that ran a batch of an account by the nonce of the batch. */

/** A transaction that ran a batch. `nonce` is that of the transaction's sender, not that of the batch. */
export type FoundBatch = { txHash: string; from: string; nonce: bigint; block: bigint; calls: EvmCall[] }
type SearchDeps = { node: EvmNode; searchLogs: ReturnType<typeof createLogSearch> }
type Wanted = { account: string; nonce: bigint }

/** The account's contract logs nothing about a batch, but tokens that the batch moves log their transfers. */
const transferTopic = toEventSelector('Transfer(address,address,uint256)')
const windowBlocks = 10_000n
const windowsMax = 10

export const sequenceCall = (account: string, key: bigint, at: BlockTag): RpcCall => ({
  method: 'eth_call',
  params: [{ to: account, data: sequenceData(key) }, tagOf(at)],
})

/** Reads the reply to `sequenceCall`: an account without code returns nothing, so it has run no batch. */
export const sequenceIn = (returned: unknown): bigint =>
  typeof returned === 'string' && returned.length > 2 ? BigInt(returned) : 0n

export function createBatchSearch({ node, searchLogs }: SearchDeps) {
  return async (account: string, nonce: bigint, known?: string): Promise<FoundBatch | undefined> => {
    const wanted = { account, nonce }
    const found = known === undefined ? undefined : await byHash(node, wanted, known)
    if (found) return found
    const { number: head } = headOf(await callOne(node, 'eth_getBlockByNumber', ['latest', false]))
    return (
      // The account's state is searched first, because nodes limit searches of logs. Logs are the fallback for a node
      // without old state.
      (await byState(node, wanted, head).catch(ignoreFault)) ??
      (await byTransfers({ node, searchLogs }, wanted, head))
    )
  }
}

async function byHash(node: EvmNode, wanted: Wanted, hash: string): Promise<FoundBatch | undefined> {
  const receipt = parseReceipt(await callOne(node, 'eth_getTransactionReceipt', [hash]))
  return receipt && inBlock(node, wanted, receipt.block)
}

function ignoreFault(error: unknown): undefined {
  if (error instanceof Fault) return undefined
  throw error
}

async function byTransfers(
  { node, searchLogs }: SearchDeps,
  wanted: Wanted,
  head: bigint,
): Promise<FoundBatch | undefined> {
  const topics = [transferTopic, pad(wanted.account.toLowerCase() as Hex, { size: 32 })]
  for (let windows = 0, to = head; windows < windowsMax && to >= 0n; windows += 1, to -= windowBlocks) {
    const from = to >= windowBlocks ? to - windowBlocks + 1n : 0n
    const { logs, searchedTo } = await searchLogs({ topics }, { from, to })
    for (const block of new Set(logs.map((log) => log.block).reverse())) {
      const found = await inBlock(node, wanted, block)
      if (found) return found
    }
    if (searchedTo < to)
      throw new Fault('unavailable', 'The node limits the search of logs: the batch may be in others')
  }
  return undefined
}

async function byState(node: EvmNode, wanted: Wanted, head: bigint): Promise<FoundBatch | undefined> {
  const sequence = BigInt.asUintN(64, wanted.nonce)
  const hasRun = async (at: bigint): Promise<boolean> => {
    const { method, params } = sequenceCall(wanted.account, wanted.nonce >> 64n, at)
    return sequenceIn(await callOne(node, method, params as unknown[])) > sequence
  }
  if (!(await hasRun(head))) return undefined
  const below = await findUnreached(hasRun, head)
  return inBlock(node, wanted, await firstReached(hasRun, { below, upTo: head }))
}

async function inBlock(
  node: EvmNode,
  { account, nonce }: Wanted,
  block: bigint,
): Promise<FoundBatch | undefined> {
  for (const { hash, from, nonce: sentNonce, to, input } of await readBlockTransactions(node, block)) {
    const batch = to === account.toLowerCase() ? executedBatchIn(input) : undefined
    if (batch?.nonce !== nonce) continue
    // A second transaction with the same batch can be mined too, but fails, so only a successful one is returned.
    const receipt = parseReceipt(await callOne(node, 'eth_getTransactionReceipt', [hash]))
    if (receipt?.success) return { txHash: hash, from, nonce: sentNonce, block, calls: batch.calls }
  }
  return undefined
}
