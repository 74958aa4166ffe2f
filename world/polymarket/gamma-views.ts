import type { CatalogEvent } from './catalog.ts'
import { minimumSize } from './catalog.ts'
import { contracts } from './chain/addresses.ts'
import { bestPrice } from './clob-views.ts'
import { priceText, unitsNumber, unitsText } from './decimal.ts'
import { pick } from './http.ts'
import { type Market, marketsOf } from './markets.ts'
import type { MarketState } from './state.ts'
import { stateOf, type Venue } from './venue.ts'

const yearMs = 365 * 86_400_000
const iso = (ms: number): string => new Date(ms).toISOString()
const day = (ms: number): string => iso(ms).slice(0, 10)

/** The price a given time ago, or the oldest that is known. */
const priceAt = ({ samples, lastPrice }: MarketState, atMs: number): number =>
  samples.findLast(([seconds]) => seconds * 1_000 <= atMs)?.[1] ?? samples[0]?.[1] ?? lastPrice

const changeSince = (venue: Venue, state: MarketState, ms: number): number =>
  (state.lastPrice - priceAt(state, venue.state.nowMs - ms)) / 10_000

const hourMs = 3_600_000

const priceFields = (venue: Venue, market: Market, state: MarketState) => {
  const bid = state.isClosed ? undefined : bestPrice(venue, market, 0, { buy: true })
  const ask = state.isClosed ? undefined : bestPrice(venue, market, 0, { buy: false })
  return {
    bestBid: (bid ?? 0) / 10_000,
    bestAsk: (ask ?? 10_000) / 10_000,
    spread: ((ask ?? 10_000) - (bid ?? 0)) / 10_000,
    lastTradePrice: state.lastPrice / 10_000,
    oneHourPriceChange: changeSince(venue, state, hourMs),
    oneDayPriceChange: changeSince(venue, state, 24 * hourMs),
    oneWeekPriceChange: changeSince(venue, state, 7 * 24 * hourMs),
    oneMonthPriceChange: changeSince(venue, state, 30 * 24 * hourMs),
    oneYearPriceChange: 0,
  }
}

const periods = ['24hr', '1wk', '1mo', '1yr']
const perPeriod = (value: number, kind = '') =>
  Object.fromEntries(periods.map((period) => [`volume${period}${kind}`, value]))

const volumeFields = (state: MarketState) => {
  const volume = unitsNumber(state.volume)
  return {
    volume: unitsText(state.volume),
    volumeNum: volume,
    ...perPeriod(volume),
    ...perPeriod(volume, 'Clob'),
    ...perPeriod(0, 'Amm'),
    volumeClob: volume,
    volumeAmm: 0,
    liquidity: '100000',
    liquidityNum: 100_000,
    liquidityClob: 100_000,
    liquidityAmm: 0,
  }
}

const resolutionFields = (venue: Venue, market: Market, state: MarketState) => ({
  questionID: market.chain.questionId.padEnd(66, '0'),
  umaResolutionStatus: state.payout === null ? '' : 'resolved',
  umaResolutionStatuses: state.payout === null ? '[]' : '["proposed","resolved"]',
  umaBond: '500',
  umaReward: '5',
  umaEndDate: iso(venue.state.genesisMs + yearMs),
  umaEndDateIso: day(venue.state.genesisMs + yearMs),
  resolvedBy: contracts.conditionalTokens,
  resolutionSource: '',
  closedTime: state.payout === null ? null : iso(state.resolvedMs),
  automaticallyResolved: state.payout !== null,
  customLiveness: 0,
})

const negRiskFields = ({ chain, chainEvent }: Market) => ({
  negRisk: chain.isNegRisk,
  negRiskMarketID: chainEvent?.eventId ?? '',
  negRiskRequestID: chain.isNegRisk ? chain.questionId.padEnd(66, '0') : '',
  negRiskOther: false,
})

const feeFields = ({ fee }: Market) => ({
  feesEnabled: fee !== null,
  feeType: fee ? 'crypto_fees' : '',
  feeSchedule: fee ? { exponent: fee.exponent, rate: fee.rate, takerOnly: true, rebateRate: 0.2 } : null,
  makerBaseFee: 0,
  takerBaseFee: 0,
  makerRebatesFeeShareBps: 0,
})

/** Lists inside of strings, but for `positionIds`: as upstream. */
const outcomeFields = (market: Market, state: MarketState) => {
  const first = state.lastPrice
  const isV2 = market.chain.protocol === 'v2'
  return {
    outcomes: JSON.stringify(market.outcomes),
    outcomePrices: JSON.stringify([priceText(first), priceText(10_000 - first)]),
    clobTokenIds: JSON.stringify(market.tokens),
    positionIds: isV2 ? [...market.tokens] : [],
    version: market.chain.protocol,
    shortOutcomes: JSON.stringify(market.outcomes),
  }
}

const eventReference = ({ id, slug, title }: CatalogEvent) => ({ id, slug, title, ticker: slug })

export const tagView = ({ id, label, slug }: CatalogEvent['tags'][number], atMs: number) => ({
  id,
  label,
  slug,
  forceShow: false,
  forceHide: false,
  isCarousel: false,
  publishedAt: iso(atMs),
  createdBy: 1,
  updatedBy: 1,
  createdAt: iso(atMs),
  updatedAt: iso(atMs),
  requiresTranslation: false,
  activeEventsCount: 0,
})

const datesOf = (venue: Venue) => {
  const { genesisMs } = venue.state
  return {
    startDate: iso(genesisMs),
    endDate: iso(genesisMs + yearMs),
    startDateIso: day(genesisMs),
    endDateIso: day(genesisMs + yearMs),
    createdAt: iso(genesisMs),
    acceptingOrdersTimestamp: iso(genesisMs),
    readyTimestamp: iso(genesisMs),
    fundedTimestamp: iso(genesisMs),
    hasReviewedDates: true,
  }
}

/** Markets and events have these alike. */
const commonFlags = {
  active: true,
  archived: false,
  new: false,
  featured: false,
  restricted: true,
  cyom: false,
  enableOrderBook: true,
  automaticallyActive: true,
  pendingDeployment: false,
  deploying: false,
  requiresTranslation: false,
  commentsEnabled: true,
  competitive: 0.9,
  image: '',
  icon: '',
}

const marketFlags = {
  ...commonFlags,
  ready: true,
  funded: true,
  approved: true,
  rfqEnabled: false,
  manualActivation: false,
  clearBookOnStart: false,
  holdingRewardsEnabled: false,
  notificationsEnabled: true,
  pagerDutyNotificationEnabled: false,
  fpmmLive: false,
  twitterCardImage: '',
}

const marketFields = (venue: Venue, market: Market) => {
  const state = stateOf(venue, market.conditionId)
  return {
    id: market.id,
    question: market.question,
    conditionId: market.conditionId,
    slug: market.slug,
    description: `${market.question} Resolved by the local world.`,
    category: market.event.category,
    marketMakerAddress: '',
    marketType: 'normal',
    formatType: '',
    fee: '0',
    denominationToken: contracts.pusd,
    groupItemTitle: market.title,
    groupItemThreshold: String(market.index),
    submitted_by: contracts.conditionalTokens,
    closed: state.isClosed,
    acceptingOrders: !state.isClosed,
    orderPriceMinTickSize: state.tick / 10_000,
    orderMinSize: minimumSize,
    secondsDelay: market.secondsDelay,
    score: 0,
    updatedAt: iso(state.changedMs),
    clobRewards: [],
    rewardsMinSize: 0,
    rewardsMaxSpread: 0,
    gameStartTime: null,
    sportsMarketType: null,
    line: null,
    ...marketFlags,
    ...datesOf(venue),
    ...outcomeFields(market, state),
    ...volumeFields(state),
    ...priceFields(venue, market, state),
    ...resolutionFields(venue, market, state),
    ...negRiskFields(market),
    ...feeFields(market),
  }
}

export const marketView = (venue: Venue, market: Market) => ({
  ...marketFields(venue, market),
  events: [eventReference(market.event)],
  tags: market.event.tags.map((tag) => tagView(tag, venue.state.genesisMs)),
})

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

export const eventView = (venue: Venue, event: CatalogEvent) => {
  const markets = marketsOf(event)
  const states = markets.map(({ conditionId }) => stateOf(venue, conditionId))
  const volume = sum(states.map((state) => unitsNumber(state.volume)))
  const isClosed = states.every((state) => state.isClosed)
  const negRiskMarketID = markets[0]?.chainEvent?.eventId ?? ''
  return {
    id: event.id,
    ticker: event.slug,
    slug: event.slug,
    title: event.title,
    subtitle: '',
    description: `${event.title} Resolved by the local world.`,
    resolutionSource: '',
    creationDate: iso(venue.state.genesisMs),
    published_at: iso(venue.state.genesisMs),
    category: event.category,
    closed: isClosed,
    closedTime: isClosed ? iso(Math.max(...states.map(({ resolvedMs }) => resolvedMs))) : null,
    featuredImage: '',
    liquidity: 100_000 * markets.length,
    liquidityAmm: 0,
    liquidityClob: 100_000 * markets.length,
    volume,
    ...perPeriod(volume),
    ...commonFlags,
    openInterest: 0,
    sortBy: 'price',
    commentCount: 0,
    negRisk: event.isNegRisk,
    enableNegRisk: event.isNegRisk,
    negRiskMarketID,
    negRiskFeeBips: 0,
    negRiskAugmented: false,
    cumulativeMarkets: false,
    showAllOutcomes: true,
    showMarketImages: false,
    automaticallyResolved: false,
    gmpChartMode: 'default',
    live: false,
    ended: isClosed,
    estimateValue: false,
    cantEstimate: false,
    ...pick(datesOf(venue), ['startDate', 'endDate', 'createdAt']),
    updatedAt: iso(Math.max(...states.map(({ changedMs }) => changedMs))),
    markets: markets.map((market) => marketFields(venue, market)),
    tags: event.tags.map((tag) => tagView(tag, venue.state.genesisMs)),
    series: [],
    eventCreators: [],
  }
}
