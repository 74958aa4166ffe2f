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

/** What a subscription listens to, read once. */
export type Topic = {
  subscription: Subscription
  user?: string
  market?: Market
  interval?: Interval
}

export type Message = { channel: string; data: Json }

/** `market`: needs a coin; `user`: needs an address. `state`: sent whole whenever something of it moved. */
type Channel = {
  needs: ('market' | 'user' | 'interval')[]
  refresh: 'never' | 'prices' | 'book' | 'account'
  snapshot: (venue: Venue, topic: Topic) => Message[]
}

const none = (): Message[] => []
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

const whole = (
  channel: string,
  refresh: Channel['refresh'],
  data: (venue: Venue, user: string, topic: Topic) => Json,
): Channel => ({
  needs: ['user'],
  refresh,
  snapshot: (venue, topic) => [{ channel, data: data(venue, topic.user as string, topic) }],
})

const open = (refresh: Channel['refresh'], data: (venue: Venue, topic: Topic) => Message): Channel => ({
  needs: [],
  refresh,
  snapshot: (venue, topic) => [data(venue, topic)],
})

const onCoin = (refresh: Channel['refresh'], data: (venue: Venue, topic: Topic) => Message): Channel => ({
  ...open(refresh, data),
  needs: ['market'],
})

export const candleMessage = (venue: Venue, { market: found, interval }: Topic): Message[] => {
  if (!found || !interval) return []
  const { nowMs } = venue.state
  const last = market.candlesOf(venue, found, interval, bucketStart(nowMs, interval), nowMs).at(-1)
  return last ? [{ channel: 'candle', data: market.candleView(found, interval, last) }] : []
}

export const channels: Record<string, Channel> = {
  allMids: open('prices', (venue, topic) => ({
    channel: 'allMids',
    data: {
      mids: market.allMids(venue),
      ...(topic.subscription.dex === undefined ? {} : { dex: dexOf(topic) }),
    },
  })),
  l2Book: onCoin('book', book),
  bbo: onCoin('book', (venue, { market: found }) => bbo(venue, found as Market)),
  trades: {
    needs: ['market'],
    refresh: 'never',
    snapshot: (venue, { market: found }) => {
      const trades = stateOf(venue, (found as Market).asset).trades.slice(-10)
      return trades.length === 0 ? [] : [{ channel: 'trades', data: trades.map(tradeView) }]
    },
  },
  candle: { needs: ['market', 'interval'], refresh: 'prices', snapshot: candleMessage },
  activeAssetCtx: onCoin('prices', (venue, { market: found }) => context(venue, found as Market)),
  activeSpotAssetCtx: onCoin('prices', (venue, { market: found }) => context(venue, found as Market)),
  assetCtxs: open('prices', (venue, topic) => ({
    channel: 'assetCtxs',
    data: { dex: dexOf(topic), ctxs: market.perpContexts(venue) },
  })),
  allDexsAssetCtxs: open('prices', (venue) => ({
    channel: 'allDexsAssetCtxs',
    data: { ctxs: [['', market.perpContexts(venue)]] },
  })),
  spotAssetCtxs: open('prices', (venue) => ({ channel: 'spotAssetCtxs', data: market.spotContexts(venue) })),
  activeAssetData: {
    needs: ['user', 'market'],
    refresh: 'account',
    snapshot: (venue, { user, market: found }) =>
      found?.kind === 'perp'
        ? [{ channel: 'activeAssetData', data: account.activeAssetData(venue, user as string, found) }]
        : [],
  },
  clearinghouseState: whole('clearinghouseState', 'account', (venue, user, topic) => ({
    dex: dexOf(topic),
    user,
    clearinghouseState: account.clearinghouseState(venue, user),
  })),
  allDexsClearinghouseState: whole('allDexsClearinghouseState', 'account', (venue, user) => ({
    user,
    clearinghouseStates: [['', account.clearinghouseState(venue, user)]],
  })),
  spotState: whole('spotState', 'account', (venue, user) => ({
    user,
    spotState: account.spotClearinghouseState(venue, user),
  })),
  openOrders: whole('openOrders', 'account', (venue, user, topic) => ({
    dex: dexOf(topic),
    user,
    orders: history.frontendOpenOrders(venue, user),
  })),
  twapStates: whole('twapStates', 'account', (venue, user, topic) => ({
    dex: dexOf(topic),
    user,
    states: twapStates(venue, user),
  })),
  userHistoricalOrders: whole('userHistoricalOrders', 'never', (venue, user) => ({
    user,
    orderHistory: history.historicalOrders(venue, user),
    isSnapshot: true,
  })),
  userFills: whole('userFills', 'never', (venue, user) => ({
    user,
    fills: history.userFills(venue, user),
    isSnapshot: true,
  })),
  userFundings: whole('userFundings', 'never', (venue, user) => ({
    user,
    fundings: account.seenAccount(venue, user).fundings.slice(-500).reverse().map(fundingView),
    isSnapshot: true,
  })),
  userNonFundingLedgerUpdates: whole('userNonFundingLedgerUpdates', 'never', (venue, user) => ({
    user,
    nonFundingLedgerUpdates: history.ledgerUpdates(venue, user, all).reverse(),
    isSnapshot: true,
  })),
  userTwapHistory: whole('userTwapHistory', 'never', (venue, user) => ({
    user,
    history: twapHistory(venue, user),
    isSnapshot: true,
  })),
  userTwapSliceFills: whole('userTwapSliceFills', 'never', (venue, user) => ({
    user,
    twapSliceFills: history.twapSliceFills(venue, user),
    isSnapshot: true,
  })),
  webData2: whole('webData2', 'account', (venue, user) => webData2(venue, { user })),
  webData3: whole('webData3', 'account', (venue, user) => ({
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
  // These tell only what happens from now on; nothing is replayed to a client that comes back.
  orderUpdates: { needs: ['user'], refresh: 'never', snapshot: none },
  userEvents: { needs: ['user'], refresh: 'never', snapshot: none },
  // The older name, which the channel of the messages still has.
  user: { needs: ['user'], refresh: 'never', snapshot: none },
  notification: { needs: ['user'], refresh: 'never', snapshot: none },
}

/** Undefined when the venue cannot listen to that. */
export const readTopic = (subscription: unknown): Topic | undefined => {
  if (typeof subscription !== 'object' || subscription === null) return undefined
  const { type, coin, user, interval } = subscription as Subscription
  const channel = typeof type === 'string' && Object.hasOwn(channels, type) ? channels[type] : undefined
  if (!channel) return undefined
  const topic: Topic = { subscription: subscription as Subscription }
  if (channel.needs.includes('market')) {
    const found = typeof coin === 'string' ? marketNamed(coin) : undefined
    if (!found) return undefined
    topic.market = found
  }
  if (channel.needs.includes('user')) {
    if (typeof user !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(user)) return undefined
    topic.user = user.toLowerCase()
  }
  if (channel.needs.includes('interval')) {
    if (typeof interval !== 'string' || !(interval in intervals)) return undefined
    topic.interval = interval as Interval
  }
  return topic
}
