import { Fault } from '#kernel/contract/fault.ts'
import type { JsonRpc } from '#kernel/wire/json-rpc.ts'
import { type HistoryEntry, historyOf } from './transaction-wire.ts'
import { broken, integerOf, resultOf, slotsOf } from './wire.ts'

/** Lists the transactions that name an address. A node without long-term storage omits those it has discarded. */

export type HistoryOptions = {
  commitment: 'confirmed' | 'finalized'
  before?: string | undefined
  limit: number
  /**
   * The time or slot from which the list must be complete: the last page fails if the node keeps no blocks from
   * before this time, or not this slot.
   */
  since?: Date | bigint | undefined
}
export type ReadHistory = (address: string, options: HistoryOptions) => Promise<HistoryEntry[]>

/** Block times are in whole seconds, from clocks of others, and may be wrong by this much. */
export const blockTimeErrorMs = 60_000
/** So many first blocks are asked for a time: a chain's first months have none, except for the very first block. */
const firstBlocksMax = 5

/** Blocks are listed, because a node without any also names slot 0 as its first available one, and knows its time. */
const firstBlocks = { method: 'getBlocksWithLimit', params: [0, firstBlocksMax, { commitment: 'confirmed' }] }

const pruned = (first: string, needed: string): Fault =>
  new Fault('unavailable', `The Solana node keeps no history from before ${first}; ${needed} is needed`)

function assertStored([first]: readonly bigint[], slot: bigint): void {
  if (first === undefined) throw broken('no blocks')
  if (first > slot) throw pruned(`slot ${first}`, `slot ${slot}`)
}

function assertStoredSince(storedFrom: Date, since: Date): void {
  if (Number(storedFrom) > Number(since) - blockTimeErrorMs)
    throw pruned(storedFrom.toISOString(), since.toISOString())
}

export function createAddressHistory(rpc: JsonRpc): ReadHistory {
  /** The time of the node's first block; which block is the first changes, so it is requested with every list. */
  let timed: { slot: bigint; seconds: bigint } | undefined

  const readTime = async (slots: readonly bigint[]): Promise<bigint> => {
    const [slot] = slots
    if (slot === undefined) throw broken('no blocks')
    if (timed?.slot === slot) return timed.seconds
    const answers = await rpc(slots.map((each) => ({ method: 'getBlockTime', params: [Number(each)] })))
    // The time of a later block is later, so it proves no more than the node keeps.
    const [seconds] = answers.flatMap((answer) =>
      'result' in answer ? (integerOf(answer.result) ?? []) : [],
    )
    if (seconds === undefined) throw broken('no time of its first blocks')
    timed = { slot, seconds }
    return seconds
  }

  return async (address, { commitment, before, limit, since }) => {
    const config = { commitment, limit, ...(before !== undefined && { before }) }
    const list = { method: 'getSignaturesForAddress', params: [address, config] }
    // Both calls go out in one request, so that one node answers both.
    const [listed, blocks] = await rpc(since === undefined ? [list] : [list, firstBlocks])
    const entries = historyOf(resultOf(listed!), limit)
    if (since === undefined || entries.length === limit) return entries
    const slots = slotsOf(resultOf(blocks!), firstBlocksMax)
    if (typeof since === 'bigint') assertStored(slots, since)
    else assertStoredSince(new Date(Number(await readTime(slots)) * 1_000), since)
    return entries
  }
}
