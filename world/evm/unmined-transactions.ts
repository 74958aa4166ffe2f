import type { CallJournal } from './call-journal.ts'
import { hashOf } from './journal-rotation.ts'
import { findMined } from './mined-blocks.ts'
import type { Rpc } from './rpc.ts'

type Hex = `0x${string}`
type Options = { journal: CallJournal; rpc: () => Rpc | undefined }

const pollMs = 25
const pollMsMax = 5_000

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms).unref())

/** Transactions whose block is not in the journal yet, by hash, with the number of their entry. */
export const unminedTransactions = ({ journal, rpc: currentRpc }: Options) => {
  let entries = new Map<Hex, number>()
  let isPolling = false

  /** Writes the blocks of those that are mined by now into the journal. */
  const record = async (rpc: Rpc): Promise<void> => {
    if (entries.size === 0) return
    const asked = new Map(entries)
    for (const [hash, mined] of await findMined(rpc, [...asked.keys()])) {
      const n = asked.get(hash)
      // Its block may have been removed meanwhile, and then it was sent again as another entry.
      if (n === undefined || entries.get(hash) !== n) continue
      entries.delete(hash)
      journal.markMined(n, mined)
    }
  }

  return {
    add: (hash: Hex, n: number): void => void entries.set(hash, n),
    /**
     * Adds a transaction that is about to be sent, and returns the number of its entry: a read can show its block before
     * the node has answered the client that sent it.
     */
    expect: async (raw: Hex, n: number): Promise<number> => {
      const hash = await hashOf({ raw })
      if (hash && !entries.has(hash)) entries.set(hash, n)
      return n
    },
    has: (hash: Hex): boolean => entries.has(hash),
    /** Forgets the transaction of an entry that the node has rejected. */
    forget: (n: number): void => {
      for (const [hash, known] of entries) if (known === n) entries.delete(hash)
    },
    isEmpty: (): boolean => entries.size === 0,
    record,
    poll: async (): Promise<void> => {
      if (isPolling) return
      isPolling = true
      let pauseMs = pollMs
      while (entries.size > 0) {
        await pause(pauseMs)
        const rpc = currentRpc()
        if (!rpc) entries = new Map()
        else await record(rpc).catch(() => {})
        for (const [hash, n] of entries) if (!journal.has(n)) entries.delete(hash)
        pauseMs = Math.min(pollMsMax, pauseMs * 1.5)
      }
      isPolling = false
    },
  }
}
