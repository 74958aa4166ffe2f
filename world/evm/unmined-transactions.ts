import type { CallJournal } from './call-journal.ts'
import { findKnown, findMined } from './mined-blocks.ts'
import type { Rpc } from './rpc.ts'

type Hex = `0x${string}`
type Options = { journal: CallJournal; rpc: () => Rpc | undefined }

const pollMs = 25
const pollMsMax = 5_000
/** A node that moves a transaction from its pool into a block shows it in neither for a moment. */
const unknownLooksMax = 10

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms).unref())

/**
 * Transactions whose block is not in the journal yet, by hash, with the numbers of their entries: two clients may send
 * the same bytes. A transaction is added before it is sent, because a read can show its block before the node has answered
 * the client that sent it.
 */
export const unminedTransactions = ({ journal, rpc: currentRpc }: Options) => {
  let entries = new Map<Hex, Set<number>>()
  let isPolling = false
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  const look = async (rpc: Rpc): Promise<void> => {
    if (entries.size === 0) return
    const asked = new Map(entries)
    for (const [hash, mined] of await findMined(rpc, [...asked.keys()])) {
      const numbers = asked.get(hash)
      // Its block may have been removed meanwhile, and then it was sent again as another entry.
      if (!numbers || entries.get(hash) !== numbers) continue
      entries.delete(hash)
      for (const n of numbers) journal.markMined(n, mined)
    }
  }

  /** Writes the blocks of those that are mined by now into the journal. Calls during one look share the next one. */
  const record = (rpc: Rpc): Promise<void> => {
    if (!next) {
      next = running.then(() => {
        next = undefined
        return look(rpc)
      })
      running = next.catch(() => {})
    }
    return next
  }

  /** Rejects those that no client waits for and that the node has shown neither in its pool nor in a block for long. */
  const forgetLost = async (rpc: Rpc, looks: Map<Hex, number>): Promise<void> => {
    const isAnswered = (numbers: ReadonlySet<number>) => ![...numbers].some(journal.isUnanswered)
    const answered = [...entries].filter(([, numbers]) => isAnswered(numbers))
    const known = await findKnown(
      rpc,
      answered.map(([hash]) => hash),
    )
    for (const [hash, numbers] of answered) {
      const count = known.has(hash) ? 0 : (looks.get(hash) ?? 0) + 1
      looks.set(hash, count)
      if (count < unknownLooksMax || entries.get(hash) !== numbers || !isAnswered(numbers)) continue
      entries.delete(hash)
      for (const n of numbers) journal.markRejected(n)
    }
  }

  return {
    add: (hash: Hex, n: number): void => {
      const numbers = entries.get(hash)
      if (numbers) numbers.add(n)
      else entries.set(hash, new Set([n]))
    },
    /** For a transaction whose block was removed: what is being read about the earlier block counts no more. */
    replace: (hash: Hex, n: number): void => void entries.set(hash, new Set([n])),
    has: (hash: Hex): boolean => entries.has(hash),
    /**
     * Rejects the entries of transactions for which the node answered with an error, except those that it has all the
     * same, from another client or because only the wait for the receipt failed.
     */
    forgetUnknown: async (sent: readonly { hash: Hex; n: number }[]): Promise<void> => {
      const rpc = currentRpc()
      if (sent.length === 0 || !rpc) return
      const known = await findKnown(
        rpc,
        sent.map(({ hash }) => hash),
      )
      for (const { hash, n } of sent) {
        if (known.has(hash)) continue
        journal.markRejected(n)
        const numbers = entries.get(hash)
        numbers?.delete(n)
        if (numbers?.size === 0) entries.delete(hash)
      }
    },
    isEmpty: (): boolean => entries.size === 0,
    record,
    poll: async (): Promise<void> => {
      if (isPolling) return
      isPolling = true
      let pauseMs = pollMs
      const looks = new Map<Hex, number>()
      while (entries.size > 0) {
        await pause(pauseMs)
        const rpc = currentRpc()
        if (!rpc) entries = new Map()
        else
          await record(rpc)
            .then(() => forgetLost(rpc, looks))
            .catch(() => {})
        for (const [hash, numbers] of entries) if (![...numbers].some(journal.has)) entries.delete(hash)
        pauseMs = Math.min(pollMsMax, pauseMs * 1.5)
      }
      isPolling = false
    },
  }
}
