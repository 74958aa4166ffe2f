import type { EvmChainRow } from '#kernel/chains.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { createJsonRpc, type JsonRpc, type RpcCall } from '#kernel/json-rpc.ts'
import type { Net } from '#kernel/net.ts'
import { type CachedValue, createCachedValue } from '#kernel/ttl-cache.ts'
import { resultOf } from './simulation.ts'
import { type Hex, hexOf, hexQuantity } from './wire.ts'

/** The JSON-RPC node of one chain; all calls of one function go out as one batch. */

export type BlockTag = bigint | 'latest' | 'pending'
export type EvmNode = {
  row: EvmChainRow
  rpc: JsonRpc
  /** The code of the chain's multicall contract, read once. */
  multicallCode: CachedValue<Hex>
}

export const tagOf = (at: BlockTag) => (typeof at === 'bigint' ? hexQuantity(at) : at)

/** The results of the calls; throws the first error among them. */
export const callAll = async (
  node: EvmNode,
  calls: readonly RpcCall[],
  signal?: AbortSignal,
): Promise<unknown[]> => (await node.rpc(calls, signal)).map((answer) => resultOf(node.row, answer))

export const callOne = async (
  node: EvmNode,
  method: string,
  params: unknown[],
  signal?: AbortSignal,
): Promise<unknown> => (await callAll(node, [{ method, params }], signal))[0]

type NodeOptions = { row: EvmChainRow; net: Net; timeoutMs: number }

export function createNode({ row, net, timeoutMs }: NodeOptions): EvmNode {
  const rpc = createJsonRpc({ url: row.rpcUrl, net, name: row.displayName, timeoutMs })
  const readMulticallCode = async () => hexOf(await callOne(node, 'eth_getCode', [row.multicall, 'latest']))
  const multicallCode = createCachedValue(readMulticallCode, {
    ttlMs: Number.POSITIVE_INFINITY,
    nowMs: monotonicMs,
  })
  const node: EvmNode = { row, rpc, multicallCode }
  return node
}
