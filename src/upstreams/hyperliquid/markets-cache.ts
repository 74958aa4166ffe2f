import { type Backoff, backoffMs } from '#kernel/async/backoff.ts'
import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { Fault } from '#kernel/contract/fault.ts'

/**
 * The venue's markets of one kind. A market that is missing or unreadable in the last reply is kept from an earlier
 * reply.
 */

type ListedMarket = {
  asset: number
  midPrice: string | null
  /**
   * True for a market that is kept from an earlier reply, because it is missing or unreadable in the last one. Only
   * exits may use such a market.
   */
  isStale?: boolean
}
export type MarketList<M> = {
  markets: M[]
  /** When the last request for the markets was sent. */
  at: number
  /** False if a record was skipped, or a market is from an earlier reply: the list may then lack a market. */
  isComplete: boolean
  /** Why the last request failed; every market is then from an earlier one. */
  failure?: Fault
}
type Options<M> = {
  /** Requests the markets, and calls back for each record of the reply that it skips. */
  ask: (onSkipped: () => void) => Promise<M[]>
  nowMs: () => number
  ttlMs: number
}

/**
 * An incomplete list is read again after these delays, which the rate budget can afford for as long as the list stays
 * incomplete.
 */
const incompleteRereads: Backoff = { firstMs: 2_000, maxMs: 10_000 }

export function createMarketsCache<M extends ListedMarket>({ ask, nowMs, ttlMs }: Options<M>) {
  let last: MarketList<M> | undefined
  let incompleteReads = 0

  /** The venue delists markets but never removes them, so a missing one is a gap in the reply. */
  const withKnown = (read: readonly M[]): M[] => {
    const shown = new Set(read.map(({ asset }) => asset))
    const missing = (last?.markets ?? []).filter(({ asset }) => !shown.has(asset))
    return [...read, ...missing.map((market) => ({ ...market, midPrice: null, isStale: true }))]
  }
  const load = async (): Promise<MarketList<M>> => {
    const at = nowMs()
    let skipped = 0
    const read = await ask(() => {
      skipped += 1
    }).catch((fault: unknown) => {
      if (fault instanceof Fault && last) return fault
      throw fault
    })
    const isFailed = read instanceof Fault
    const markets = withKnown(isFailed ? [] : read)
    const isComplete = skipped === 0 && markets.every(({ isStale }) => !isStale)
    incompleteReads = isComplete ? 0 : incompleteReads + 1
    last = { markets, at, isComplete, ...(isFailed && { failure: read }) }
    return last
  }
  const cached = createCachedValue(load, { ttlMs, nowMs })

  return (maxAgeMs = ttlMs): Promise<MarketList<M>> => {
    if (incompleteReads === 0) return cached.get({ maxAgeMs })
    return cached.get({ maxAgeMs: Math.min(maxAgeMs, backoffMs(incompleteRereads, incompleteReads - 1)) })
  }
}
