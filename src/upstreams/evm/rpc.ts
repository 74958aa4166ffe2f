import type { LearnedLimit } from '#kernel/async/learned-limit.ts'
import { type CachedValue, createCachedValue } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import {
  createBatchLimit,
  createJsonRpc,
  type JsonRpc,
  type RpcAnswer,
  type RpcCall,
} from '#kernel/wire/json-rpc.ts'
import { repeatRateLimited } from '#kernel/wire/json-rpc-retry.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { resultOf } from './simulation.ts'
import { type Hex, hexQuantity, parseHex } from './wire.ts'

/** The JSON-RPC node of one chain; all calls of one function go out as one batch. */

export type BlockTag = bigint | 'latest' | 'pending'
export type EvmNode = {
  row: EvmChainRow
  rpc: JsonRpc
  multicallCode: CachedValue<Hex>
}

export const tagOf = (at: BlockTag) => (typeof at === 'bigint' ? hexQuantity(at) : at)

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

type Waiting = {
  calls: readonly RpcCall[]
  resolve: (answers: RpcAnswer[]) => void
  reject: (error: unknown) => void
}

const isBroadcast = ({ calls }: Waiting): boolean =>
  calls.some(({ method }) => method === 'eth_sendRawTransaction')

/**
 * Calls that are made in one turn of the event loop are sent as one request, without a timer. Broadcasts are sent
 * separately, because a node that accepts no transactions may refuse the whole request, including the reads of other
 * callers.
 */
export function coalesceCalls(rpc: JsonRpc, batchLimit: Pick<LearnedLimit, 'value'>): JsonRpc {
  let waiting: Waiting[] = []

  const send = async (group: readonly Waiting[]) => {
    try {
      const answers = await rpc(group.flatMap(({ calls }) => calls))
      let at = 0
      for (const { calls, resolve } of group) {
        resolve(answers.slice(at, at + calls.length))
        at += calls.length
      }
    } catch (error) {
      for (const { reject } of group) reject(error)
    }
  }

  const sendInGroups = (all: readonly Waiting[]) => {
    const callsMax = batchLimit.value()
    let group: Waiting[] = []
    let count = 0
    for (const each of all) {
      if (count + each.calls.length > callsMax && group.length > 0) {
        void send(group)
        group = []
        count = 0
      }
      group.push(each)
      count += each.calls.length
    }
    if (group.length > 0) void send(group)
  }

  const flush = () => {
    const all = waiting
    waiting = []
    sendInGroups(all.filter(isBroadcast))
    sendInGroups(all.filter((each) => !isBroadcast(each)))
  }

  return (calls, signal) => {
    // Calls that one caller may abort go out as a request of their own, so that no other calls are aborted.
    if (signal) return rpc(calls, signal)
    return new Promise((resolve, reject) => {
      if (waiting.push({ calls, resolve, reject }) === 1) setImmediate(flush)
    })
  }
}

type NodeOptions = { row: EvmChainRow; net: Net; timeoutMs: number }

export function createNode({ row, net, timeoutMs }: NodeOptions): EvmNode {
  const batchLimit = createBatchLimit()
  const single = createJsonRpc({ url: row.rpcUrl, net, name: row.displayName, timeoutMs, batchLimit })
  const rpc = repeatRateLimited(coalesceCalls(single, batchLimit), { timeoutMs })
  const readMulticallCode = async () => {
    const code = parseHex(await callOne(node, 'eth_getCode', [row.multicall, 'latest']))
    // A lagging node of the provider may show no code; a failure is not cached, so the code is read again.
    if (code === '0x')
      throw new Fault('unavailable', `The ${row.displayName} node shows no code of the multicall contract`)
    return code
  }
  const multicallCode = createCachedValue(readMulticallCode, {
    ttlMs: Number.POSITIVE_INFINITY,
    nowMs: monotonicMs,
  })
  const node: EvmNode = { row, rpc, multicallCode }
  return node
}
