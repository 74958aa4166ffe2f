import type { AcceptedCall, CallJournal, JournalEntry } from './call-journal.ts'
import { findPending } from './mined-blocks.ts'
import type { Rpc } from './rpc.ts'

/** Which journal entries a saved state contains, and which of them its successor has to repeat. */

type Hex = `0x${string}`

/** An unused address whose storage records, within the state, which journal entries the state contains. */
export const journalMarkerAddress = '0x10ca100000000000000000000000000000000001'
export const markerSlots = { file: 0, set: 1 } as const
export const word = (value: number) => `0x${value.toString(16).padStart(64, '0')}`

export const hashOf = async (call: AcceptedCall): Promise<Hex | undefined> => {
  if ('hash' in call) return call.hash
  if (!('raw' in call)) return undefined
  const { keccak256 } = await import('viem')
  return keccak256(call.raw)
}

/**
 * Entries that the save in progress may not contain: transactions in the node's pool, and those that the node had not
 * answered when the save began. Repeating one that is in a block does nothing.
 */
const carryOver = async (
  journal: CallJournal,
  rpc: Rpc,
  entries: readonly JournalEntry[],
): Promise<Set<number>> => {
  const unanswered = new Set(entries.filter(({ n }) => journal.isUnanswered(n)))
  const open: { entry: JournalEntry; hash: Hex }[] = []
  for (const entry of entries) {
    const hash = entry.mined ? undefined : await hashOf(entry.call)
    if (hash) open.push({ entry, hash })
  }
  const pending = await findPending(
    rpc,
    open.map(({ hash }) => hash),
  )
  const carried = new Set<number>()
  for (const { entry, hash } of open) {
    const isRejected = !journal.has(entry.n)
    if (isRejected || (!pending.has(hash) && !unanswered.has(entry))) continue
    journal.carryOver(entry)
    carried.add(entry.n)
  }
  return carried
}

/**
 * Begins a new journal file for a state that is about to be saved; returns the function that removes the earlier files.
 */
export const rotateJournal = async (journal: CallJournal, rpc: Rpc): Promise<() => void> => {
  const entries = journal.entries()
  const file = journal.startFile()
  const carried = await carryOver(journal, rpc, entries)
  await rpc.call('anvil_setStorageAt', [journalMarkerAddress, word(markerSlots.file), word(file)])
  return () => journal.removeBefore(file, carried)
}
