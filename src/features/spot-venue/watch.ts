import type { Watcher } from '#durable/watch.ts'
import { isEnding } from '#features/venue/bracket.ts'
import { compareDecimals } from '#kernel/decimal-fields.ts'
import { Fault } from '#kernel/fault.ts'
import type { Log } from '#kernel/log.ts'
import { fromUnits, toUnits } from '#kernel/money.ts'
import type { Queryable } from '#store/query.ts'
import type { Hyperliquid } from '#upstreams/hyperliquid/hyperliquid.ts'
import { usdcMarkets } from './market.ts'
import { type KeptTrigger, settleWaiting, waitingIn, watchedMarkets } from './triggers.ts'

/** Looks at the prices of those markets in which exits are kept, as long as there are any. */

type Needs = {
  on: Queryable
  venue: Pick<Hyperliquid, 'mids' | 'spots' | 'order'>
  watcher: Pick<Watcher, 'lease' | 'crossed'>
  evmAddressOf: (userId: string) => Promise<string>
  log: Log
  /** Prices that the venue tells by itself; undefined while there is no fresh word. */
  told?: () => ReadonlyMap<string, string> | undefined
  everyMs?: number
}

const everyMsDefault = 1_000
const idleMs = 3_000
const troubleMsMost = 30_000
const scale = 18

export function spotWatch({ on, venue, watcher, evmAddressOf, log, told, everyMs = everyMsDefault }: Needs) {
  /** What the order has filled, once it has ended; undefined while it rests or nobody can say. */
  const filledOf = async ({ user_id, parent }: KeptTrigger): Promise<string | null | undefined> => {
    const found = await venue.order(await evmAddressOf(user_id), parent ?? '')
    if (!found) return undefined
    const { order, status } = found
    const filled = fromUnits(toUnits(order.origSize, scale) - toUnits(order.size, scale), scale)
    if (status === 'filled') return order.origSize
    if (!isEnding(status)) return undefined
    return compareDecimals(filled, '0') > 0 ? filled : null
  }

  const settle = async (market: string): Promise<void> => {
    const seen = new Set<string>()
    for (const row of await waitingIn(on, market)) {
      const { parent } = row
      if (parent === null || seen.has(parent)) continue
      seen.add(parent)
      const filled = await filledOf(row)
      if (filled !== undefined) await settleWaiting(on, parent, filled)
    }
  }

  /** Answers whether there is anything to watch. */
  const look = async (): Promise<boolean> => {
    const markets = await watchedMarkets(on)
    const watches = await Promise.all(
      markets.map(async ({ market, waiting }) => ({ market, waiting, watch: await watcher.lease(market) })),
    )
    const mine = watches.filter(({ watch }) => watch !== undefined)
    if (mine.length === 0) return markets.length > 0
    for (const { market } of mine.filter(({ waiting }) => waiting)) await settle(market)
    const [mids, { markets: known }] = await Promise.all([told?.() ?? venue.mids(), usdcMarkets(venue)])
    for (const { market, watch } of mine) {
      const coin = known.find(({ symbol }) => market === `hl:spot:${symbol}`)?.coin
      const price = coin && mids.get(coin)
      if (watch && price) await watcher.crossed(watch, price)
    }
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
      troubles += 1
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
    },
  }
}
