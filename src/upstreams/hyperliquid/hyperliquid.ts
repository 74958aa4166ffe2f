import { createTtlCache } from '#kernel/async/ttl-cache.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { plain } from './decimals.ts'
import { createMarketHistory, type MarketHistory } from './market-history.ts'
import { createMarketsCache, type MarketList } from './markets-cache.ts'
import type { Prices } from './mid-prices.ts'
import {
  type Account,
  type Fill,
  type Funding,
  type LedgerUpdate,
  type OpenOrder,
  type OrderState,
  type PerpMarket,
  parseAccount,
  parseBalances,
  parseFill,
  parseFunding,
  parseLedgerUpdate,
  parseOrder,
  parseOrders,
  parsePerps,
  parseSpots,
  type SpotBalance,
  type SpotMarket,
  type Unread,
} from './parse-replies.ts'
import { createVenueRequests, type SendResult, type VenueAddress } from './requests.ts'
import type { Urgency } from './urgency.ts'
import { createVenueClock, type VenueClock } from './venue-clock.ts'
import type { InfoAnswer, InfoType } from './wire.ts'

export type { ExchangeReply, LegStatus } from './exchange-reply.ts'
export type { Book, CandleInterval, MarketCandle, MarketHistory, RateOfHour } from './market-history.ts'
export type { MarketList } from './markets-cache.ts'
export type {
  Account,
  Fill,
  Funding,
  LedgerUpdate,
  OpenOrder,
  OrderState,
  PerpMarket,
  Position,
  SpotBalance,
  SpotMarket,
  Unread,
} from './parse-replies.ts'
export type { Egress, SendResult } from './requests.ts'

export type Hyperliquid = MarketHistory & {
  /** Returns the perp markets, whose prices are at most `maxAgeMs` old. */
  perps(maxAgeMs?: number): Promise<MarketList<PerpMarket>>
  spots(maxAgeMs?: number): Promise<MarketList<SpotMarket>>
  mids(): Promise<ReadonlyMap<string, string>>
  account(user: string): Promise<Account>
  /** Returns the venue's clock, and reads the account if no recent reply contained the time. */
  timeMs(user: string): Promise<number>
  /**
   * Returns a time that has passed on both clocks of the venue: that of the account and that of the blocks, which
   * decides expiries. The time is never cached.
   */
  passedMs(user: string): Promise<number>
  /** Returns a user's spot balances, or throws `unavailable` if that of one of the tokens has an unknown format. */
  spotBalances(user: string, tokens: readonly string[]): Promise<SpotBalance[]>
  spotHoldings(user: string): Promise<{ balances: SpotBalance[]; unread: Unread }>
  /** Returns the account's leverage setting of a market, and the free margin per side. */
  marketSettings(
    user: string,
    symbol: string,
  ): Promise<{
    isCross: boolean
    leverage: number
    markPrice: string
    freeUsd: { buy: string; sell: string }
  }>
  openOrders(user: string): Promise<OpenOrder[]>
  /** Returns an order by its id or client id, or undefined if the venue does not know the order. */
  order(user: string, id: number | string): Promise<OrderState | undefined>
  /** Returns a user's fills since a time, oldest first and at most one page. */
  fillsSince(user: string, sinceMs: number): Promise<Fill[]>
  /** Returns the newest page of a user's fills. */
  recentFills(user: string): Promise<Fill[]>
  fundingSince(user: string, sinceMs: number): Promise<Funding[]>
  agents(user: string): Promise<{ address: string; name: string; validUntilMs: number }[]>
  role(address: string): Promise<string>
  ledgerSince(user: string, sinceMs: number): Promise<LedgerUpdate[]>
  /** Returns the venue's name of the account mode, which has one balance for perp and spot, or two. */
  accountMode(user: string): Promise<string>
  /** Returns the account's used and allowed requests, as the venue counts them per address. */
  rateLimit(user: string): Promise<{ used: number; cap: number; tradedUsd: string }>
  send(body: string, account?: string): Promise<SendResult>
  withUrgency(urgency: Urgency): Hyperliquid
}

type Options = Omit<VenueAddress, 'nowMs'> & { clock: Clock; prices?: Prices }

/** Accounts rarely change their mode, and the request costs much weight. */
const modeMaxAgeMs = 300_000
const modesMax = 10_000
const defaultMaxAgeMs = 60_000
/** BTC trades in every block, so the time of its order book is that of the last block. */
const clockCoin = 'BTC'

export function createHyperliquid(options: Options): Hyperliquid {
  const nowMs = () => options.clock.now().getTime()
  const { info, send } = createVenueRequests({ ...options, nowMs })
  const perps = createMarketsCache({
    ask: async (noteSkipped) => parsePerps(await info('metaAndAssetCtxs', {}, 'work', { noteSkipped })),
    nowMs,
    ttlMs: defaultMaxAgeMs,
  })
  const spots = createMarketsCache({
    ask: async (noteSkipped) => parseSpots(await info('spotMetaAndAssetCtxs', {}, 'work', { noteSkipped })),
    nowMs,
    ttlMs: defaultMaxAgeMs,
  })
  const history = createMarketHistory(info, nowMs)
  const clock = createVenueClock(nowMs)
  const { prices: shared } = options
  const modes = createTtlCache<string>({ ttlMs: modeMaxAgeMs, entriesMax: modesMax, nowMs })
  const accountMode = async (user: string, ask: () => Promise<string>): Promise<string> => {
    const account = user.toLowerCase()
    // The read is forced, so that it sends a request of its own: an urgent caller must not wait for another caller's
    // request of lower priority.
    return modes.peek(account) ?? modes.get(account, ask, { force: true })
  }
  const known = new Map<Urgency, Hyperliquid>()
  const withUrgency = (urgency: Urgency): Hyperliquid => {
    const made = known.get(urgency) ?? {
      ...createReads((type, fields = {}) => info(type, fields, urgency), {
        clock,
        nowMs,
        shared,
        accountMode,
      }),
      ...history,
      perps,
      spots,
      send,
      withUrgency,
    }
    known.set(urgency, made)
    return made
  }
  return withUrgency('admission')
}

const isUnread = (unread: Unread, name: string): boolean =>
  unread.some((each) => each === null || each === name)

type Ask = <K extends InfoType>(type: K, fields?: Record<string, unknown>) => Promise<InfoAnswer<K>>

type ReadDeps = {
  clock: VenueClock
  nowMs: () => number
  shared: Prices | undefined
  accountMode: (user: string, ask: () => Promise<string>) => Promise<string>
}

function createReads(
  info: Ask,
  { clock, nowMs, shared, accountMode }: ReadDeps,
): Omit<Hyperliquid, 'perps' | 'spots' | 'send' | 'withUrgency' | keyof MarketHistory> {
  const account = async (user: string) => {
    const state = parseAccount(await info('clearinghouseState', { user }))
    clock.record(state.timeMs)
    return state
  }
  const spotHoldings = async (user: string) => {
    const state = await info('spotClearinghouseState', { user })
    return { balances: parseBalances(state), unread: state.unread ?? [] }
  }
  return {
    account,
    timeMs: async (user) => clock.now() ?? (await account(user)).timeMs,
    async passedMs(user) {
      const [{ timeMs }, { time }] = await Promise.all([account(user), info('l2Book', { coin: clockCoin })])
      return Math.min(timeMs, time)
    },
    async mids() {
      const fresh = shared?.current()
      if (fresh) return fresh
      const askedMs = nowMs()
      const reply = Object.entries(await info('allMids'))
      const mids = new Map(reply.map(([coin, price]) => [coin, plain(price)]))
      shared?.answered(mids, askedMs)
      return mids
    },
    async spotBalances(user, tokens) {
      const { balances, unread } = await spotHoldings(user)
      const hidden = tokens.find((token) => isUnread(unread, token))
      if (hidden === undefined) return balances
      throw new Fault('unavailable', `Hyperliquid shows the balance of ${hidden} in an unknown format`)
    },
    spotHoldings,
    async marketSettings(user, symbol) {
      const { leverage, availableToTrade, markPx } = await info('activeAssetData', { user, coin: symbol })
      const [buy = '0', sell = '0'] = availableToTrade.map(plain)
      const isCross = leverage.type === 'cross'
      return { isCross, leverage: leverage.value, markPrice: plain(markPx), freeUsd: { buy, sell } }
    },
    openOrders: async (user) => (await info('frontendOpenOrders', { user })).flatMap(parseOrders),
    async order(user, id) {
      const reply = await info('orderStatus', { user, oid: id })
      if (reply.status === 'unknownOid') return undefined
      const { order, status, statusTimestamp } = reply.order
      return { order: parseOrder(order, null), status, atMs: statusTimestamp }
    },
    async fillsSince(user, sinceMs) {
      const startTime = Math.max(0, sinceMs)
      const fills = await info('userFillsByTime', { user, startTime, reversed: false })
      return fills.map((fill) => parseFill(fill, user))
    },
    recentFills: async (user) => (await info('userFills', { user })).map((fill) => parseFill(fill, user)),
    async fundingSince(user, sinceMs) {
      return (await info('userFunding', { user, startTime: Math.max(0, sinceMs) })).map(parseFunding)
    },
    async agents(user) {
      const agents = await info('extraAgents', { user })
      return agents.map(({ address, name, validUntil }) => ({ address, name, validUntilMs: validUntil }))
    },
    role: async (user) => (await info('userRole', { user })).role,
    async ledgerSince(user, sinceMs) {
      const startTime = Math.max(0, sinceMs)
      const updates = await info('userNonFundingLedgerUpdates', { user, startTime })
      return updates.map((update) => parseLedgerUpdate(update, user))
    },
    accountMode: (user) => accountMode(user, () => info('userAbstraction', { user })),
    async rateLimit(user) {
      const {
        nRequestsUsed,
        nRequestsCap,
        nRequestsSurplus = 0,
        cumVlm,
      } = await info('userRateLimit', { user })
      return { used: nRequestsUsed, cap: nRequestsCap + nRequestsSurplus, tradedUsd: plain(cumVlm) }
    },
  }
}
