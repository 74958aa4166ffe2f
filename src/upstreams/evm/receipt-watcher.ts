import { createReadingWatcher, type ReadingWatcher, type Waiter } from '#kernel/async/reading-watcher.ts'
import { monotonicMs } from '#kernel/clock.ts'
import type { Log } from '#kernel/log.ts'
import type { Evm } from './evm.ts'
import type { Head, Receipt } from './wire.ts'

/**
 * Follows the head of one chain for all transactions that this instance waits for. One request per poll asks for
 * the head, and all receipts are requested together, once per block.
 */

/** The newest block, and the receipts in the same reply; undefined if a transaction is in no block. */
export type ReceiptReading = { head: Head; receipts: (Receipt | undefined)[] }
/**
 * A step names the hashes of all transactions whose receipts it waits for. A reading with `isFresh` does not wait for a
 * new block.
 */
export type ReceiptWatcher = ReadingWatcher<readonly string[], ReceiptReading>

type Hashes = Waiter<readonly string[], ReceiptReading>
type ReceiptWatcherDeps = {
  chain: Pick<Evm, 'row' | 'head' | 'receipts'>
  wake: (taskIds: readonly string[]) => Promise<string[]>
  log: Log
}

/** At most this many hashes per request; the head is one more call. */
const hashesMax = 48
/** A node that reports a new block may show its receipts only after this time. */
const askAgainMs = 1_000

export function createReceiptWatcher({ chain, wake, log }: ReceiptWatcherDeps): ReceiptWatcher {
  let newestHash: string | undefined

  /**
   * Marks the waiters that this poll did not read as due: at a new block, or if a receipt may have appeared since their
   * last read.
   */
  const noteHead = (head: Head, asked: readonly Hashes[], waiters: ReadonlySet<Hashes>): void => {
    const isNew = head.hash !== newestHash
    newestHash = head.hash
    for (const waiter of waiters)
      if (!asked.includes(waiter) && (isNew || monotonicMs() - waiter.readMs > askAgainMs))
        waiter.isDue = true
  }

  return createReadingWatcher({
    pollMs: chain.row.blockPollMs,
    wake,
    log,
    choose(waiters) {
      const asked: Hashes[] = []
      let count = 0
      for (const waiter of waiters) {
        if (!waiter.isDue) continue
        if (asked.length > 0 && count + waiter.subject.length > hashesMax) break
        asked.push(waiter)
        count += waiter.subject.length
      }
      return asked
    },
    async read(asked, waiters) {
      const { head, receipts } =
        asked.length > 0
          ? await chain.receipts(asked.flatMap(({ subject }) => subject))
          : { head: await chain.head(), receipts: [] }
      noteHead(head, asked, waiters)
      let end = 0
      return asked.map(({ subject: { length } }) => {
        end += length
        return { head, receipts: receipts.slice(end - length, end) }
      })
    },
    isPressed: (waiters) => [...waiters].some(({ isDue }) => isDue),
  })
}
