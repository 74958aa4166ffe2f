import type { EvmChainRow } from '#kernel/chains.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import type { Net } from '#kernel/net.ts'
import { type CachedValue, createCachedValue } from '#kernel/ttl-cache.ts'
import { resultOf } from './simulation.ts'
import { answersOf, type Hex, hexOf, hexQuantity, type RpcAnswer, type RpcCall, requestOf } from './wire.ts'

/** The JSON-RPC node of one chain; all calls of one function go out as one batch. */

export type BlockTag = bigint | 'latest' | 'pending'
export type EvmNode = {
  row: EvmChainRow
  net: Net
  timeoutMs: number
  /** The code of the chain's multicall contract, read once. */
  multicallCode: CachedValue<Hex>
}

const maxBytes = 4 * 1024 * 1024

export const tagOf = (at: BlockTag) => (typeof at === 'bigint' ? hexQuantity(at) : at)

export async function rpc(
  { row, net, timeoutMs }: EvmNode,
  calls: readonly RpcCall[],
  signal?: AbortSignal,
): Promise<RpcAnswer[]> {
  const { status, body } = await net.fetch({
    url: row.rpcUrl,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: requestOf(calls),
    timeoutMs,
    maxBytes,
    ...(signal && { signal }),
  })
  // An error page of a proxy is no reply to the call, with any status.
  if (status === 429 || status >= 500 || (status >= 400 && !body.includes('jsonrpc')))
    throw new Fault('unavailable', `The ${row.displayName} node answered with status ${status}`)
  return answersOf(body, calls.length)
}

/** The results of the calls; throws the first error among them. */
export const callAll = async (
  node: EvmNode,
  calls: readonly RpcCall[],
  signal?: AbortSignal,
): Promise<unknown[]> => (await rpc(node, calls, signal)).map((answer) => resultOf(node.row, answer))

export const callOne = async (
  node: EvmNode,
  method: string,
  params: unknown[],
  signal?: AbortSignal,
): Promise<unknown> => (await callAll(node, [{ method, params }], signal))[0]

export function createNode({ row, net, timeoutMs }: Pick<EvmNode, 'row' | 'net' | 'timeoutMs'>): EvmNode {
  const readMulticallCode = async () => hexOf(await callOne(node, 'eth_getCode', [row.multicall, 'latest']))
  const multicallCode = createCachedValue(readMulticallCode, {
    ttlMs: Number.POSITIVE_INFINITY,
    nowMs: monotonicMs,
  })
  const node: EvmNode = { row, net, timeoutMs, multicallCode }
  return node
}
