import type { PriceTriggers } from '#engines/trigger-orders/price-triggers.ts'
import { backoffMs } from '#kernel/async/backoff.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { createPendingEntries } from './pending-entries.ts'
import { usdcMarkets } from './spot-markets.ts'
import { marketsWithTriggers } from './trigger-store.ts'

/** This module polls the prices of markets with open triggers and fires the triggers. */

type PriceLoopDeps = {
  db: Queryable
  venue: Pick<Hyperliquid, 'mids' | 'spots' | 'order' | 'openOrders' | 'fillsSince'>
  watcher: Pick<PriceTriggers, 'lease' | 'fireTriggers'>
  evmAddressOf: (userId: string) => Promise<string>
  log: Log
  /** Returns the mid prices of the venue's stream, or undefined while they are stale. */
  streamedMids?: () => ReadonlyMap<string, string> | undefined
  everyMs?: number | undefined
  /** Whether this instance is on duty; without open triggers, only that instance looks for new ones often. */
  isOnDuty: () => boolean
}

const defaultEveryMs = 1_000
const idleMs = 3_000
const restMs = 15_000
const roundsMax = 20
/** The maximum delay between retries after an outage of the venue, and so of a stop-loss. */
const retryMaxMs = 5_000

export function createPriceLoop({
  db,
  venue,
  watcher,
  evmAddressOf,
  log,
  streamedMids,
  everyMs = defaultEveryMs,
  isOnDuty,
}: PriceLoopDeps) {
  const pendingEntries = createPendingEntries({ db, venue, evmAddressOf })
  let resolving: Promise<void> | undefined

  /** Resolves pending entries in the background, so that their look-ups never delay a stop-loss. */
  const resolveEntries = (markets: string[], priceOf: (market: string) => string | undefined): void => {
    if (markets.length === 0) return
    resolving ??= pendingEntries
      .resolve(markets, priceOf)
      .catch((error: unknown) => log.error({ error }, 'pending entries not resolved: the next round retries'))
      .finally(() => {
        resolving = undefined
      })
  }

  const checkPrices = async (): Promise<boolean> => {
    const markets = await marketsWithTriggers(db)
    const leases = new Map(
      (await watcher.lease(markets.map(({ market }) => market))).map((lease) => [lease.market, lease]),
    )
    const mine = markets.flatMap(({ market, waiting }) => {
      const lease = leases.get(market)
      return lease ? [{ market, waiting, lease }] : []
    })
    if (mine.length === 0) return markets.length > 0
    const [mids, { markets: known }] = await Promise.all([
      streamedMids?.() ?? venue.mids(),
      usdcMarkets(venue),
    ])
    const priceOf = (market: string): string | undefined => {
      const coin = known.find(({ symbol }) => market === `hl:spot:${symbol}`)?.coin
      return coin && mids.get(coin)
    }
    for (const { market, lease } of mine) {
      const price = priceOf(market)
      if (!price) continue
      // One call fires a bounded batch of triggers, and a fall of the price may need several calls.
      for (let round = 0; round < roundsMax && (await watcher.fireTriggers(lease, price)) > 0; ) round += 1
    }
    const waiting = mine.filter((each) => each.waiting).map(({ market }) => market)
    resolveEntries(waiting, priceOf)
    return true
  }

  let timer: NodeJS.Timeout | undefined
  let ending = false
  let running: Promise<void> = Promise.resolve()
  let failures = 0
  const run = async (): Promise<void> => {
    let waitMs = isOnDuty() ? idleMs : restMs
    try {
      if (await checkPrices()) waitMs = everyMs
      failures = 0
    } catch (fault) {
      failures += 1
      waitMs = backoffMs({ firstMs: everyMs, maxMs: retryMaxMs }, failures)
      if (!(fault instanceof Fault) || !fault.retryable)
        log.error({ error: fault }, 'spot price loop failed: will retry')
    }
    if (!ending) plan(waitMs)
  }
  const plan = (ms: number) => {
    timer = setTimeout(() => {
      running = run()
    }, ms).unref()
  }

  const loop = {
    start(): AsyncDisposable {
      plan(everyMs)
      return loop
    },
    async [Symbol.asyncDispose]() {
      ending = true
      clearTimeout(timer)
      await running
      await resolving
    },
  }
  return loop
}
