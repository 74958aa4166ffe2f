import { bucketStart, type Interval, intervals } from './candles.ts'
import { webData2 } from './info.ts'
import * as account from './info-account.ts'
import * as history from './info-history.ts'
import * as market from './info-market.ts'
import { type Market, marketNamed } from './markets.ts'
import { twapHistory, twapStates } from './twap.ts'
import { stateOf, type Venue } from './venue.ts'
import { fundingView, type Json, tradeView } from './views.ts'

export type Subscription = { type: string } & Record<string, unknown>

/** The parsed subscription. */
export type Topic = {
  subscription: Subscription
  user?: string
  market?: Market
  interval?: Interval
}

export type Message = { channel: string; data: Json }

/** `market`: needs a coin; `user`: needs an address. `state`: sent whole after each change. */
type Channel = {
  requires: ('market' | 'user' | 'interval')[]
  refresh: 'never' | 'prices' | 'book' | 'account'
  snapshot: (venue: Venue, topic: Topic) => Message[]
}

const noSnapshot = (): Message[] => []
const all = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER }

const bboLevel = (levels: Json): Json => (levels as Json[])[0] ?? null

const bbo = (venue: Venue, found: Market): Message => {
  const [bids, asks] = market.levels(venue, found, null, null)
  return {
    channel: 'bbo',
    data: { coin: found.coin, time: venue.state.nowMs, bbo: [bboLevel(bids), bboLevel(asks)] },
  }
}

const context = (venue: Venue, found: Market): Message =>
  found.kind === 'perp'
    ? { channel: 'activeAssetCtx', data: { coin: found.coin, ctx: market.perpContext(venue, found) } }
    : { channel: 'activeSpotAssetCtx', data: { coin: found.coin, ctx: market.spotContext(venue, found) } }

const book = (venue: Venue, { market: found, subscription }: Topic): Message => ({
  channel: 'l2Book',
  data: market.l2Book(
    venue,
    found as Market,
    (subscription.nSigFigs as number | null | undefined) ?? null,
    (subscription.mantissa as number | null | undefined) ?? null,
  ),
})

const dexOf = ({ subscription }: Topic): string =>
  typeof subscription.dex === 'string' ? subscription.dex : ''

const userChannel = (
  channel: string,
  refresh: Channel['refresh'],
  data: (venue: Venue, user: string, topic: Topic) => Json,
): Channel => ({
  requires: ['user'],
  refresh,
  snapshot: (venue, topic) => [{ channel, data: data(venue, topic.user as string, topic) }],
})

const publicChannel = (
  refresh: Channel['refresh'],
  data: (venue: Venue, topic: Topic) => Message,
): Channel => ({
  requires: [],
  refresh,
  snapshot: (venue, topic) => [data(venue, topic)],
})

const marketChannel = (
  refresh: Channel['refresh'],
  data: (venue: Venue, topic: Topic) => Message,
): Channel => ({
  ...publicChannel(refresh, data),
  requires: ['market'],
})

export const candleMessage = (venue: Venue, { market: found, interval }: Topic): Message[] => {
  if (!found || !interval) return []
  const { nowMs } = venue.state
  const last = market
    .candlesOf(venue, found, interval, { fromMs: bucketStart(nowMs, interval), toMs: nowMs })
    .at(-1)
  return last ? [{ channel: 'candle', data: market.candleView(found, interval, last) }] : []
}

export const channels: Record<string, Channel> = {
  allMids: publicChannel('prices', (venue, topic) => ({
    channel: 'allMids',
    data: {
      mids: market.allMids(venue),
      ...(topic.subscription.dex === undefined ? {} : { dex: dexOf(topic) }),
    },
  })),
  l2Book: marketChannel('book', book),
  bbo: marketChannel('book', (venue, { market: found }) => bbo(venue, found as Market)),
  trades: {
    requires: ['market'],
    refresh: 'never',
    snapshot: (venue, { market: found }) => {
      const trades = stateOf(venue, (found as Market).asset).trades.slice(-10)
      return trades.length === 0 ? [] : [{ channel: 'trades', data: trades.map(tradeView) }]
    },
  },
  candle: { requires: ['market', 'interval'], refresh: 'prices', snapshot: candleMessage },
  activeAssetCtx: marketChannel('prices', (venue, { market: found }) => context(venue, found as Market)),
  activeSpotAssetCtx: marketChannel('prices', (venue, { market: found }) => context(venue, found as Market)),
  assetCtxs: publicChannel('prices', (venue, topic) => ({
    channel: 'assetCtxs',
    data: { dex: dexOf(topic), ctxs: market.perpContexts(venue) },
  })),
  allDexsAssetCtxs: publicChannel('prices', (venue) => ({
    channel: 'allDexsAssetCtxs',
    data: { ctxs: [['', market.perpContexts(venue)]] },
  })),
  spotAssetCtxs: publicChannel('prices', (venue) => ({
    channel: 'spotAssetCtxs',
    data: market.spotContexts(venue),
  })),
  activeAssetData: {
    requires: ['user', 'market'],
    refresh: 'account',
    snapshot: (venue, { user, market: found }) =>
      found?.kind === 'perp'
        ? [{ channel: 'activeAssetData', data: account.activeAssetData(venue, user as string, found) }]
        : [],
  },
  clearinghouseState: userChannel('clearinghouseState', 'account', (venue, user, topic) => ({
    dex: dexOf(topic),
    user,
    clearinghouseState: account.clearinghouseState(venue, user),
  })),
  allDexsClearinghouseState: userChannel('allDexsClearinghouseState', 'account', (venue, user) => ({
    user,
    clearinghouseStates: [['', account.clearinghouseState(venue, user)]],
  })),
  spotState: userChannel('spotState', 'account', (venue, user) => ({
    user,
    spotState: account.spotClearinghouseState(venue, user),
  })),
  openOrders: userChannel('openOrders', 'account', (venue, user, topic) => ({
    dex: dexOf(topic),
    user,
    orders: history.frontendOpenOrders(venue, user),
  })),
  twapStates: userChannel('twapStates', 'account', (venue, user, topic) => ({
    dex: dexOf(topic),
    user,
    states: twapStates(venue, user),
  })),
  userHistoricalOrders: userChannel('userHistoricalOrders', 'never', (venue, user) => ({
    user,
    orderHistory: history.historicalOrders(venue, user),
    isSnapshot: true,
  })),
  userFills: userChannel('userFills', 'never', (venue, user) => ({
    user,
    fills: history.userFills(venue, user),
    isSnapshot: true,
  })),
  userFundings: userChannel('userFundings', 'never', (venue, user) => ({
    user,
    fundings: account.accountOrEmpty(venue, user).fundings.slice(-500).reverse().map(fundingView),
    isSnapshot: true,
  })),
  userNonFundingLedgerUpdates: userChannel('userNonFundingLedgerUpdates', 'never', (venue, user) => ({
    user,
    nonFundingLedgerUpdates: history.ledgerUpdates(venue, user, all).reverse(),
    isSnapshot: true,
  })),
  userTwapHistory: userChannel('userTwapHistory', 'never', (venue, user) => ({
    user,
    history: twapHistory(venue, user),
    isSnapshot: true,
  })),
  userTwapSliceFills: userChannel('userTwapSliceFills', 'never', (venue, user) => ({
    user,
    twapSliceFills: history.twapSliceFills(venue, user),
    isSnapshot: true,
  })),
  webData2: userChannel('webData2', 'account', (venue, user) => webData2(venue, { user })),
  webData3: userChannel('webData3', 'account', (venue, user) => ({
    userState: {
      agentAddress: null,
      agentValidUntil: null,
      cumLedger: '0.0',
      serverTime: venue.state.nowMs,
      isVault: false,
      user,
    },
    perpDexStates: [{ totalVaultEquity: '0.0' }],
  })),
  // These send only new events; nothing is replayed after a reconnect.
  orderUpdates: { requires: ['user'], refresh: 'never', snapshot: noSnapshot },
  userEvents: { requires: ['user'], refresh: 'never', snapshot: noSnapshot },
  // The older name, which the channel of the messages still has.
  user: { requires: ['user'], refresh: 'never', snapshot: noSnapshot },
  notification: { requires: ['user'], refresh: 'never', snapshot: noSnapshot },
}

/** Undefined for an unknown subscription. */
export const readTopic = (subscription: unknown): Topic | undefined => {
  if (typeof subscription !== 'object' || subscription === null) return undefined
  const { type, coin, user, interval } = subscription as Subscription
  const channel = typeof type === 'string' && Object.hasOwn(channels, type) ? channels[type] : undefined
  if (!channel) return undefined
  const topic: Topic = { subscription: subscription as Subscription }
  if (channel.requires.includes('market')) {
    const found = typeof coin === 'string' ? marketNamed(coin) : undefined
    if (!found) return undefined
    topic.market = found
  }
  if (channel.requires.includes('user')) {
    if (typeof user !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(user)) return undefined
    topic.user = user.toLowerCase()
  }
  if (channel.requires.includes('interval')) {
    if (typeof interval !== 'string' || !(interval in intervals)) return undefined
    topic.interval = interval as Interval
  }
  return topic
}
