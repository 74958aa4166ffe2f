import { createLru } from '#kernel/async/create-lru.ts'
import { type PacedJob, startPacedJob } from '#kernel/async/paced-job.ts'
import { shareWaitMs } from '#kernel/async/quote-rate-shares.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { compareDecimals } from '#kernel/contract/decimal-fields.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Log } from '#kernel/log.ts'
import { type Queryable, settleAll } from '#store/query.ts'
import { createQuoteOwners } from './choose-quote-owner.ts'
import type { MarketLease, PriceTriggers } from './price-triggers.ts'
import { tokenMarketPrefix } from './quote-key.ts'
import { createQuoteTurns, keyOf } from './quote-turns.ts'
import { createNearQuotes } from './quotes-near-triggers.ts'
import { marketsWithOrders, type NearQuote, nearOrdersMax, notePriced, quotesNear } from './store.ts'
import { raiseAllTrails } from './trailing.ts'
import { bandAround, placesOf } from './trigger-price.ts'

/**
 * Watches the prices of tokens with armed orders, in two stages. Displayed prices only choose which quotes to ask
 * for. Executable quotes at the size of the orders decide: two quotes that agree fire the orders.
 */

export type DisplayPrice = { price: string; at: Date }
export type PriceWatchDeps = {
  db: Queryable
  clock: Clock
  log: Log
  priceTriggers: PriceTriggers
  /** Returns prices by market. Markets without a recent trusted price are missing. */
  displayPrices(markets: readonly string[]): Promise<ReadonlyMap<string, DisplayPrice>>
  /**
   * Returns the price in dollars per token at the trade's size. The quote is charged to the user's share of the quote
   * budget. Throws if there is no quote.
   */
  quotePrice(quoteKey: string, userId: string): Promise<string>
  quotesPerMinute: number
  everyMs?: number | undefined
  /** Returns the monotonic time. */
  nowMs?: (() => number) | undefined
  /**
   * Whether this instance is the one that polls often for due work. While no orders are open, the other instances look
   * for orders rarely.
   */
  isOnDuty: () => boolean
}

const defaultEveryMs = 2_000
const idleMs = 3_000
const restMs = 15_000
const retryMs = 5_000
const bandBps = 200n
/** The longest time between two quotes that confirm each other. */
const agreeMsMax = 30_000
/** How long a quote that fired nothing is not asked for again. */
const coolMs = 10_000
const quotesAtOnce = 4
/** How long a round starts new quotes; the next round then asks for second quotes while the first are recent. */
const askMsMax = 10_000
const batchesMax = 20
const rememberedMax = 10_000
/** The most markets in a round; if more have orders, the rounds take turns. */
const marketsPerRound = 5_000
const pricesMax = 50_000
/** How long a round raises trailing stops, beside its quotes, so that it does not delay later rounds for long. */
const raiseMsMax = 1_000

type Remembered = { price: string; atMs: number; coolUntilMs: number }
/** A quote that is due; `user_id` is the owner of an order who is asked first. */
type DueQuote = NearQuote & { user_id: string }
/**
 * An undefined `price` means that there is no quote now. `no_share` means that all owners of the quote's orders have
 * used up their shares of the quote budget.
 */
type Answer = { price: string | undefined } | 'no_share'

export type PriceWatch = { start(): PacedJob }

export function createPriceWatch(deps: PriceWatchDeps): PriceWatch {
  const { everyMs = defaultEveryMs, isOnDuty, log } = deps
  const round = createRound(deps)
  const onError = (error: unknown) => {
    if (!(error instanceof Fault) || !error.retryable) log.error({ error }, 'price watch failed: will retry')
  }
  return {
    start: () =>
      startPacedJob(async () => ((await round()) ? everyMs : isOnDuty() ? idleMs : restMs), {
        onError,
        retryMs: Math.max(everyMs, retryMs),
      }),
  }
}

/** Reads the prices of all markets of this instance once, and returns whether any market has open orders. */
export function createRound(deps: PriceWatchDeps): () => Promise<boolean> {
  const { db, clock, log, priceTriggers, displayPrices } = deps
  const highest = createHighestPrices()
  const quotes = createQuotes(deps)
  const nextMarkets = createMarketTurns()
  const expireDue = async () => {
    for (let batch = 0; batch < batchesMax && (await priceTriggers.expire()) > 0; ) batch += 1
  }
  return async () => {
    const open = await marketsWithOrders(db, tokenMarketPrefix)
    if (open.length === 0) return false
    await expireDue().catch((error: unknown) => {
      log.error({ error }, 'orders not expired: the next round tries again')
    })
    const markets = nextMarkets(
      open.map(({ market }) => market),
      quotes.awaited(),
    )
    const leases = await priceTriggers.lease(markets)
    if (leases.length === 0) return true
    const prices = await displayPrices(leases.map(({ market }) => market))
    if (prices.size === 0) return true
    await notePriced(db, [...prices.keys()], clock.now())
    await settleAll([
      raiseAllTrails(db, highest.of(prices), { msMax: raiseMsMax }),
      quotes.fire(leases, prices),
    ])
    return true
  }
}

/** Chooses the markets of the next round, and adds markets whose quote awaits a second one. */
function createMarketTurns() {
  let from = 0
  return (open: readonly string[], awaited: ReadonlySet<string>): readonly string[] => {
    if (open.length <= marketsPerRound) return open
    const start = from % open.length
    from = start + marketsPerRound
    const isNext = (at: number) => (at - start + open.length) % open.length < marketsPerRound
    return open.filter((market, at) => isNext(at) || awaited.has(market))
  }
}

/** Returns the lower of the last two displayed prices, so that one wrong price moves no trailing stop. */
function createHighestPrices() {
  const last = new Map<string, { current: DisplayPrice; before: DisplayPrice | undefined }>()
  return {
    of(prices: ReadonlyMap<string, DisplayPrice>) {
      for (const market of last.keys()) {
        if (last.size <= pricesMax) break
        if (!prices.has(market)) last.delete(market)
      }
      return [...prices].flatMap(([market, current]) => {
        const known = last.get(market)
        const isNew = known?.current.at.getTime() !== current.at.getTime()
        const before = isNew ? known?.current : known?.before
        last.set(market, { current, before })
        if (!before) return []
        const price = compareDecimals(before.price, current.price) < 0 ? before.price : current.price
        return [{ market, price, places: placesOf(price) }]
      })
    },
  }
}

function createMinuteBudget(perMinute: number, clockMs: () => number) {
  let left = perMinute
  let refilledMs = clockMs()
  return {
    take(wanted: number): number {
      const nowMs = clockMs()
      left = Math.min(perMinute, left + ((nowMs - refilledMs) * perMinute) / 60_000)
      refilledMs = nowMs
      const taken = Math.min(wanted, Math.floor(left))
      left -= taken
      return taken
    },
    giveBack(count: number): void {
      left += count
    },
  }
}

/** Asks for quotes within a budget, and fires the orders on which two quotes agree. */
function createQuotes({
  db,
  log,
  priceTriggers,
  quotePrice,
  quotesPerMinute,
  nowMs: clockMs = monotonicMs,
}: PriceWatchDeps) {
  const remembered = createLru<string, Remembered>(rememberedMax)
  const turns = createQuoteTurns()
  const owners = createQuoteOwners(clockMs)
  const nearQuotes = createNearQuotes({
    read: (bands, except) => quotesNear(db, bands, { except }),
    ordersMax: nearOrdersMax,
  })
  const budget = createMinuteBudget(quotesPerMinute, clockMs)

  const isAwaited = (quote: Remembered | undefined): boolean =>
    quote?.coolUntilMs === 0 && clockMs() - quote.atMs <= agreeMsMax

  /**
   * Asks for a quote and charges it to the first owner whose share of the quote budget is not used up. After any other
   * failure a later round asks again.
   */
  const ask = async (near: NearQuote): Promise<Answer> => {
    const { market, quote_key: quoteKey } = near
    const key = keyOf(near)
    for (const userId of owners.inTurn(key, near.owners)) {
      turns.asked({ market, quote_key: quoteKey, user_id: userId })
      try {
        const price = await quotePrice(quoteKey, userId)
        owners.answered(key, userId)
        return { price }
      } catch (error) {
        const waitMs = shareWaitMs(error)
        owners.failed(key, userId, waitMs ?? 0)
        const level = error instanceof Fault ? 'debug' : 'error'
        log[level]({ error, market }, 'no quote for an order: it is asked for again')
        if (waitMs === undefined) return { price: undefined }
      }
    }
    return 'no_share'
  }

  const decide = async (near: NearQuote, lease: MarketLease): Promise<void> => {
    const key = keyOf(near)
    const first = remembered.peek(key)
    const answer = await ask(near)
    if (answer === 'no_share') return budget.giveBack(1)
    const { price } = answer
    const atMs = clockMs()
    const isCrossed = price !== undefined && crosses(near, price)
    if (!isCrossed) {
      remembered.set(key, { price: price ?? '0', atMs: Number.NEGATIVE_INFINITY, coolUntilMs: atMs + coolMs })
      return
    }
    remembered.set(key, { price, atMs, coolUntilMs: 0 })
    if (!first || atMs - first.atMs > agreeMsMax) return
    const isLower = compareDecimals(price, first.price) < 0
    const range = { low: isLower ? price : first.price, high: isLower ? first.price : price }
    for (let batch = 0; batch < batchesMax; batch += 1)
      if ((await priceTriggers.fireTriggers(lease, range, near.quote_key)) === 0) break
  }

  /** Decides by one quote, whose error does not stop the decisions by other quotes. */
  const decideAlone = (near: NearQuote, lease: MarketLease): Promise<void> =>
    decide(near, lease).catch((error: unknown) => {
      log.error({ error, market: near.market }, 'orders not fired by a quote: it is asked for again')
    })

  const awaited = (): ReadonlySet<string> =>
    new Set(
      [...remembered].flatMap(([key, quote]) => (isAwaited(quote) ? [key.slice(0, key.indexOf(' '))] : [])),
    )

  return {
    awaited,
    async fire(leases: readonly MarketLease[], prices: ReadonlyMap<string, DisplayPrice>): Promise<void> {
      const byMarket = new Map(leases.map((lease) => [lease.market, lease]))
      const bands = [...prices].map(([market, { price }]) => ({ market, ...bandAround(price, bandBps) }))
      const nowMs = clockMs()
      const cooling = [...remembered].flatMap(([key, { coolUntilMs }]) =>
        coolUntilMs > nowMs ? [key.slice(key.indexOf(' ') + 1)] : [],
      )
      const near = await nearQuotes(bands, { except: cooling, awaited: awaited() })
      const due = near.flatMap((each): DueQuote[] => {
        const [userId] = owners.inTurn(keyOf(each), each.owners)
        return userId === undefined ? [] : [{ ...each, user_id: userId }]
      })
      // A quote that reached its trigger comes first while a second quote can confirm it; later it takes its turn.
      const isFirst = (each: DueQuote) => isAwaited(remembered.peek(keyOf(each)))
      const asked = turns.inTurns(due, isFirst).slice(0, budget.take(due.length))
      const startedMs = clockMs()
      let at = 0
      for (; at < asked.length && clockMs() - startedMs < askMsMax; at += quotesAtOnce)
        await Promise.all(
          asked.slice(at, at + quotesAtOnce).map((each) => decideAlone(each, byMarket.get(each.market)!)),
        )
      budget.giveBack(asked.slice(at).length)
    },
  }
}

const crosses = ({ lte, gte }: NearQuote, price: string): boolean =>
  (lte !== null && compareDecimals(price, lte) <= 0) || (gte !== null && compareDecimals(price, gte) >= 0)
