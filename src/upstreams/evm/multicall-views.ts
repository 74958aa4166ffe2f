import { Fault } from '#kernel/contract/fault.ts'
import type { RpcCall } from '#kernel/wire/json-rpc.ts'
import { nonceKeyOf, sequenceData } from './batch.ts'
import {
  blockNumberData,
  blockTimeData,
  nativeBalanceData,
  resultsOf,
  type View,
  type ViewResult,
  viewsData,
} from './multicall-abi.ts'
import { type BlockTag, callAll, type EvmNode, tagOf } from './rpc.ts'
import { wordOf } from './simulation.ts'
import { balanceData } from './token-calls.ts'
import { headOf, parseHex } from './wire.ts'

/** The block that the calls themselves report, which exposes a node that lags behind its siblings. */
export type StateHead = { number: bigint; timestampSeconds: number }
export type Balances = { head: StateHead; nativeUnits: bigint; tokens: (bigint | undefined)[] }

type Viewed = { head: StateHead; results: ViewResult[] }
type ViewOptions = { at?: bigint; signal?: AbortSignal }

const readsMax = 3
const otherBlock = ({ row }: EvmNode) =>
  new Fault('unavailable', `The ${row.displayName} node answered from another block`)

/** Reads views at one block, and again if a provider's nodes at different blocks answered parts of one request. */
export async function readViews(
  node: EvmNode,
  asked: readonly View[],
  options: ViewOptions = {},
): Promise<Viewed> {
  for (let read = 1; ; read += 1) {
    const seen = node.row.callsSeeBlockNumber
      ? await readSelfNumbered(node, asked, options)
      : await readNumberedByHeader(node, asked, options)
    if (seen) return seen
    if (read === readsMax || options.signal?.aborted) throw otherBlock(node)
  }
}

/** Reads views and the number of their block; undefined if the node ran them at another block than requested. */
async function readSelfNumbered(
  node: EvmNode,
  asked: readonly View[],
  { at, signal }: ViewOptions,
): Promise<Viewed | undefined> {
  const [returned] = await callAll(node, [viewsCall(node, asked, at ?? 'latest')], signal)
  const { results, timestampSeconds, number } = viewedOf(asked, returned)
  if (number === undefined || timestampSeconds === undefined || (at !== undefined && number !== at))
    return undefined
  return { head: { number, timestampSeconds }, results }
}

/**
 * Reads views on a chain whose contracts see the block number of another chain; the header in the same reply supplies
 * the number.
 */
async function readNumberedByHeader(
  node: EvmNode,
  asked: readonly View[],
  { at, signal }: ViewOptions,
): Promise<Viewed | undefined> {
  const tag = at ?? 'latest'
  const headerCall = { method: 'eth_getBlockByNumber', params: [tagOf(tag), false] }
  const [returned, named] = await callAll(node, [viewsCall(node, asked, tag), headerCall], signal)
  const { number, timestampSeconds } = headOf(named)
  if (at !== undefined && number !== at) return undefined
  const head = { number, timestampSeconds }
  const first = viewedOf(asked, returned)
  if (first.timestampSeconds === timestampSeconds) return { head, results: first.results }
  // The views ran at another block than the header's, so they are read once more, at the header's block.
  const [repeated] = await node.rpc([viewsCall(node, asked, number)], signal)
  // A lagging node answers with an error, because it does not have the header's block yet.
  if (!repeated || !('result' in repeated)) return undefined
  const again = viewedOf(asked, repeated.result)
  return again.timestampSeconds === timestampSeconds ? { head, results: again.results } : undefined
}

function viewsCall({ row }: EvmNode, asked: readonly View[], at: BlockTag): RpcCall {
  const own = [
    { to: row.multicall, data: blockTimeData },
    { to: row.multicall, data: blockNumberData },
  ]
  return {
    method: 'eth_call',
    params: [{ to: row.multicall, data: viewsData([...asked, ...own]) }, tagOf(at)],
  }
}

function viewedOf(asked: readonly View[], returned: unknown) {
  const results = resultsOf(parseHex(returned))
  const [time, number] = results.slice(asked.length).map(wordOf)
  return {
    results: results.slice(0, asked.length),
    timestampSeconds: time === undefined ? undefined : Number(time),
    number,
  }
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
  executionId: string,
  at: bigint,
): Promise<{ times: bigint; timestampSeconds: number }> {
  const view = { to: account, data: sequenceData(nonceKeyOf(executionId)) }
  const { head, results } = await readViews(node, [view], { at })
  const [found] = results
  // An account without code returns no word, so it has executed nothing.
  const times = (found && wordOf(found)) ?? 0n
  if (found && !found.success)
    throw new Fault(
      'unavailable',
      `The ${node.row.displayName} node did not return the nonce of the account's batches; try again`,
    )
  return { times, timestampSeconds: head.timestampSeconds }
}
