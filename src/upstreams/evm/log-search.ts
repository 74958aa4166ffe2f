import { createLearnedLimit } from '#kernel/async/learned-limit.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { JsonRpc } from '#kernel/wire/json-rpc.ts'
import { resultOf } from './simulation.ts'
import { type FoundLog, foundLogsOf, headOf, hexQuantity } from './wire.ts'

export type LogFilter = { address?: string | readonly string[]; topics: unknown[] }
export type BlockRange = { from: bigint; to: bigint }
/** `searchedTo` is the last block whose logs were read, which may lie before the requested one. */
export type LogSearch = { logs: FoundLog[]; searchedTo: bigint }

type LogSearchDeps = {
  row: EvmChainRow
  rpc: JsonRpc
  nowMs?: () => number
}

const requestsMax = 40
const blocksMax = 1_000
/** Recognises the error of a node that lacks blocks of the head that another node behind the same URL reported. */
const isBehind = ({ message }: { message: string }): boolean =>
  /(beyond|after|greater than) (the )?(current |latest )?(head|block)/i.test(message)
/** Providers limit the results of one search or its blocks, each with its own error text. */
const hasTooManyResults = ({ message }: { message: string }): boolean =>
  /more than \d+ results|too many results|max(imum)? results|response size/i.test(message)
const isRangeTooLarge = ({ message }: { message: string }): boolean => /range/i.test(message)

const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)

export function createLogSearch({ row, rpc, nowMs = monotonicMs }: LogSearchDeps) {
  /** The most blocks of one search, as learned from the provider's errors. */
  const blocksAtOnce = createLearnedLimit({ max: blocksMax, growAfterMs: 60_000, nowMs })

  return async (filter: LogFilter, { from, to }: BlockRange): Promise<LogSearch> => {
    const logs: FoundLog[] = []
    const windowMax = () => BigInt(blocksAtOnce.value())
    let window = windowMax()
    let next = from
    let last = to
    for (let requests = 0; next <= last && requests < requestsMax; requests += 1) {
      const end = min(last, next + window - 1n)
      const range = { fromBlock: hexQuantity(next), toBlock: hexQuantity(end) }
      // A lagging node returns no logs for blocks that it lacks, so its head is read in the same request as the logs.
      const [block, found] = await rpc([
        { method: 'eth_getBlockByNumber', params: ['latest', false] },
        { method: 'eth_getLogs', params: [{ ...filter, ...range }] },
      ])
      const head = headOf(resultOf(row, block!)).number
      last = min(last, head)
      if (last < next || ('error' in found! && head < end)) continue
      if ('error' in found! && isBehind(found.error) && end === next) break
      if ('error' in found! && end > next) {
        const half = (end - next + 1n) / 2n
        // Too many results are caused by this filter, and a lag by one node, so only this search gets a smaller window.
        if (isBehind(found.error) || hasTooManyResults(found.error)) {
          window = half
          continue
        }
        if (isRangeTooLarge(found.error)) {
          blocksAtOnce.lower(Number(half))
          window = half
          continue
        }
      }
      logs.push(...foundLogsOf(resultOf(row, found!)))
      next = min(end, head) + 1n
      window = min(window * 2n, windowMax())
    }
    if (next === from)
      throw new Fault('unavailable', `The ${row.displayName} node shows no logs of these blocks yet`)
    return { logs, searchedTo: next - 1n }
  }
}
