import { Fault } from '#kernel/contract/fault.ts'
import type { JsonRpc } from '#kernel/wire/json-rpc.ts'
import { type HistoryEntry, historyOf } from './transaction-replies.ts'
import { broken, integerOf, resultOf, slotsOf } from './wire.ts'

/** Lists the transactions that name an address. A node without long-term storage omits those it has discarded. */

export type HistoryOptions = {
  commitment: 'confirmed' | 'finalized'
  before?: string | undefined
  limit: number
  /**
   * The time or slot from which the list must be complete. The last page fails if the node keeps no block from before
   * this time, or does not keep this slot.
   */
  since?: Date | bigint | undefined
}
export type ReadHistory = (address: string, options: HistoryOptions) => Promise<HistoryEntry[]>

/** Block times are whole seconds and come from the clocks of validators, so a block time may be wrong by this much. */
export const blockTimeErrorMs = 60_000
/**
 * The time of this many first blocks is requested, because a block may have none: the blocks of a chain's first months
 * have no time, except the very first block.
 */
const firstBlocksMax = 5

/**
 * The first blocks are listed by `getBlocksWithLimit`. A node without any old block would still report slot 0 as its
 * first available block, and knows the time of slot 0.
 */
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
  /**
   * The time of the first block that the node keeps. The node deletes old blocks, so its first block is requested with
   * every list.
   */
  let timed: { slot: bigint; seconds: bigint } | undefined

  const readTime = async (slots: readonly bigint[]): Promise<bigint> => {
    const [slot] = slots
    if (slot === undefined) throw broken('no blocks')
    if (timed?.slot === slot) return timed.seconds
    const answers = await rpc(slots.map((each) => ({ method: 'getBlockTime', params: [Number(each)] })))
    // If the first block has no time, the time of a later block is used. That time is later, so it never overstates
    // what the node keeps.
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
