import { Fault } from '#kernel/contract/fault.ts'
import type { HistoryEntry, HistoryOptions, Solana } from './solana.ts'

/**
 * Reads the history of an address in pages, newest first. With `since`, the last page fails if the node does not keep
 * the history from that moment on.
 */

export const pageMax = 1_000

type HistoryRange = Pick<HistoryOptions, 'commitment' | 'since'>

/**
 * A node that does not know the signature from which to continue answers as if nothing preceded it. Each page
 * therefore begins with the last entry of the page before, which is left out.
 */
export async function* historyPages(
  { history }: Pick<Solana, 'history'>,
  address: string,
  range: HistoryRange,
): AsyncGenerator<HistoryEntry[]> {
  let page = await history(address, { ...range, limit: pageMax })
  yield page
  while (page.length === pageMax) {
    const last = page.at(-1)?.signature
    page = await history(address, { ...range, before: page.at(-2)?.signature, limit: pageMax })
    if (page[0]?.signature !== last) throw new Fault('unavailable', 'The node does not know the page before')
    yield page.slice(1)
  }
}
