import { Fault } from '#kernel/fault.ts'
import type { RpcCall } from '#kernel/json-rpc.ts'
import {
  blockNumberData,
  blockTimeData,
  nativeBalanceData,
  nonceKeyOf,
  resultsOf,
  sequenceData,
  type View,
  type ViewResult,
  viewsData,
} from './batch.ts'
import { balanceData } from './erc20.ts'
import { callAll, type EvmNode, tagOf } from './rpc.ts'
import { wordOf } from './simulation.ts'
import { headOf, hexOf } from './wire.ts'

/** Contract views, read together at one block. */

/** The block that the calls themselves report, which exposes a node that lags behind its siblings. */
export type StateHead = { number: bigint; timestampSeconds: number }
export type Balances = { head: StateHead; nativeUnits: bigint; tokens: (bigint | undefined)[] }

export async function readViews(
  node: EvmNode,
  asked: readonly View[],
  { at, signal }: { at?: bigint; signal?: AbortSignal } = {},
): Promise<{ head: StateHead; results: ViewResult[] }> {
  const { row } = node
  const own = [
    { to: row.multicall, data: blockTimeData },
    { to: row.multicall, data: blockNumberData },
  ]
  const data = { to: row.multicall, data: viewsData([...asked, ...own]) }
  const tag = tagOf(at ?? 'latest')
  const calls: RpcCall[] = [{ method: 'eth_call', params: [data, tag] }]
  if (!row.callsSeeBlockNumber) calls.push({ method: 'eth_getBlockByNumber', params: [tag, false] })
  const [returned, named] = await callAll(node, calls, signal)
  const results = resultsOf(hexOf(returned))
  const [time, seen] = results.slice(asked.length).map(wordOf)
  const block = row.callsSeeBlockNumber ? undefined : headOf(named)
  const number = block?.number ?? seen
  const isOther = block !== undefined && Number(time) !== block.timestampSeconds
  if (time === undefined || number === undefined || isOther || (at !== undefined && number !== at))
    throw new Fault('unavailable', `The ${row.displayName} node answered from another block`)
  return { head: { number, timestampSeconds: Number(time) }, results: results.slice(0, asked.length) }
}

export async function readBalances(
  node: EvmNode,
  owner: string,
  tokens: readonly string[],
  signal?: AbortSignal,
): Promise<Balances> {
  const { row } = node
  const { head, results } = await readViews(
    node,
    [
      { to: row.multicall, data: nativeBalanceData(owner) },
      ...tokens.map((to) => ({ to, data: balanceData(owner) })),
    ],
    signal && { signal },
  )
  const [native, ...units] = results.map(wordOf)
  if (native === undefined)
    throw new Fault('upstream_rejected', `The ${row.displayName} node returned no balance`)
  return { head, nativeUnits: native, tokens: units }
}

export async function readExecuted(
  node: EvmNode,
  account: string,
  taskId: string,
  at: bigint,
): Promise<{ times: bigint; timestampSeconds: number }> {
  const view = { to: account, data: sequenceData(nonceKeyOf(taskId)) }
  const { head, results } = await readViews(node, [view], { at })
  const [found] = results
  // An account without code returns no word: it executed nothing.
  const times = (found && wordOf(found)) ?? 0n
  if (found && !found.success)
    throw new Fault('unavailable', `The ${node.row.displayName} node returned no sequence`)
  return { times, timestampSeconds: head.timestampSeconds }
}
