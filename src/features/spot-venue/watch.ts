import type { Watcher } from '#durable/watch.ts'
import { Fault } from '#kernel/fault.ts'
import type { Log } from '#kernel/log.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { entries } from './entries.ts'
import { usdcMarkets } from './market.ts'
import { watchedMarkets } from './triggers.ts'

/** Looks at the prices of those markets in which exits are kept, as long as there are any. */

type Needs = {
  on: Queryable
  venue: Pick<Hyperliquid, 'mids' | 'spots' | 'order' | 'openOrders' | 'fillsSince'>
  watcher: Pick<Watcher, 'lease' | 'crossed'>
  evmAddressOf: (userId: string) => Promise<string>
  log: Log
  /** Prices that the venue tells by itself; undefined while there is no fresh word. */
  told?: () => ReadonlyMap<string, string> | undefined
  everyMs?: number
}

const everyMsDefault = 1_000
const idleMs = 3_000
const roundsMost = 20
/** A stop waits no longer than this for a venue that has come back. */
const troubleMsMost = 5_000

export function spotWatch({ on, venue, watcher, evmAddressOf, log, told, everyMs = everyMsDefault }: Needs) {
  const entered = entries({ on, venue, evmAddressOf })
  let settling: Promise<void> | undefined

  /** Beside the prices and never before them: no exit waits for what an entry of somebody else has become. */
  const settle = (markets: string[], priceOf: (market: string) => string | undefined): void => {
    if (markets.length === 0) return
    settling ??= entered
      .settle(markets, priceOf)
      .catch((error: unknown) => log.error({ err: error }, 'the entries of waiting exits were not settled'))
      .finally(() => {
        settling = undefined
      })
  }

  /** Answers whether there is anything to watch. */
  const look = async (): Promise<boolean> => {
    const markets = await watchedMarkets(on)
    const watches = await Promise.all(
      markets.map(async ({ market, waiting }) => ({ market, waiting, watch: await watcher.lease(market) })),
    )
    const mine = watches.filter(({ watch }) => watch !== undefined)
    if (mine.length === 0) return markets.length > 0
    const [mids, { markets: known }] = await Promise.all([told?.() ?? venue.mids(), usdcMarkets(venue)])
    const priceOf = (market: string): string | undefined => {
      const coin = known.find(({ symbol }) => market === `hl:spot:${symbol}`)?.coin
      return coin && mids.get(coin)
    }
    for (const { market, watch } of mine) {
      const price = priceOf(market)
      if (!watch || !price) continue
      // Each time it fires as many as one transaction should; a fall sets off more of them.
      for (let round = 0; round < roundsMost && (await watcher.crossed(watch, price)) > 0; ) round += 1
    }
    const waiting = mine.filter((each) => each.waiting).map(({ market }) => market)
    settle(waiting, priceOf)
    return true
  }

  let timer: NodeJS.Timeout | undefined
  let ending = false
  let looking: Promise<void> = Promise.resolve()
  let troubles = 0
  const run = async (): Promise<void> => {
    let waitMs = idleMs
    try {
      if (await look()) waitMs = everyMs
      troubles = 0
    } catch (fault) {
      troubles = Math.min(troubles + 1, 10)
      waitMs = Math.min(everyMs * 2 ** troubles, troubleMsMost)
      if (!(fault instanceof Fault) || !fault.retryable) log.error({ err: fault }, 'the spot watch stumbled')
    }
    if (!ending) plan(waitMs)
  }
  const plan = (ms: number) => {
    timer = setTimeout(() => {
      looking = run()
    }, ms).unref()
  }

  return {
    start: () => plan(everyMs),
    async [Symbol.asyncDispose]() {
      ending = true
      clearTimeout(timer)
      await looking
      await settling
    },
  }
}
