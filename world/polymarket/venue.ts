import { createHash } from 'node:crypto'
import { type Book, createBook, type Resting } from '#world/venue-core/book.ts'
import { nextNormal, type RandomState } from '#world/venue-core/random.ts'
import { type Market, marketByCondition, markets } from './markets.ts'
import type { Account, Activity, MarketState, Order, Sent, State, Trade } from './state.ts'

/** Events for the streams. They leave the process only after the log has been written. */
export type VenueEvent =
  | { kind: 'order'; order: Order; change: 'PLACEMENT' | 'UPDATE' | 'CANCELLATION'; atMs: number }
  | { kind: 'trade'; trade: Trade; atMs: number }
  | { kind: 'print'; trade: Trade; atMs: number }
  | { kind: 'book'; conditionId: string; atMs: number }
  | { kind: 'tick'; conditionId: string; from: number; to: number; atMs: number }
  | { kind: 'resolved'; conditionId: string; atMs: number }

export type Match = { maker: Resting; price: number; shares: number }

export type Venue = {
  state: State
  books: Map<string, Book>
  bySeq: Map<number, Order>
  events: VenueEvent[]
  /** The matches of the order that is being placed. */
  matches: Match[]
  /** Own resting orders that the order being placed would have met. */
  selfCanceled: number[]
}

/** The relayer knows this key from the beginning, so that a gateway needs no setting to use the local venue. */
const localBuilder = {
  key: 'portico-local-world',
  secret: createHash('sha256').update('portico local world polymarket builder').digest('base64'),
  passphrase: 'local',
  address: '',
  nonce: '0',
  createdMs: 0,
}

const minuteMs = 60_000
const historyHours = 30 * 24
const samplesMax = 60_000

/** Hourly prices of the last month that end at the fair price. */
const pastSamples = (random: RandomState, market: Market, nowMs: number): MarketState['samples'] => {
  const samples: MarketState['samples'] = []
  let price = market.fair
  for (let hour = 0; hour < historyHours; hour += 1) {
    samples.push([Math.floor((nowMs - hour * 3_600_000) / 1_000), price])
    const step = Math.round(nextNormal(random) * 0.02 * Math.min(price, 10_000 - price))
    const grid = Math.round((price + step) / market.tick) * market.tick
    price = Math.max(market.tick, Math.min(10_000 - market.tick, grid))
  }
  return samples.reverse()
}

const newMarket = (random: RandomState, market: Market, nowMs: number): MarketState => ({
  tick: market.tick,
  fair: market.fair,
  isPinned: false,
  lastPrice: market.fair,
  lastSide: 'BUY',
  volume: 0n,
  isClosed: false,
  payout: null,
  resolvedMs: 0,
  isReported: false,
  samples: pastSamples(random, market, nowMs),
  changedMs: nowMs,
})

export const newState = (seed: number, nowMs: number): State => {
  const random = { at: seed | 0 }
  return {
    random,
    seed,
    genesisMs: nowMs,
    nowMs,
    sequence: 0,
    nextSeq: 1,
    nextNotification: 1,
    markets: new Map(markets.map((market) => [market.conditionId, newMarket(random, market, nowMs)])),
    keys: new Map(),
    orders: new Map(),
    timed: new Set(),
    trades: new Map(),
    accounts: new Map(),
    notifications: new Map(),
    heartbeats: new Map(),
    mode: { name: 'open', untilMs: 0, next: 'open', nextMs: 0 },
    activity: [],
    opening: new Map(),
    relay: new Map(),
    relayed: { untilMs: 0, count: 0 },
    relayerKeys: new Map(),
    builderKeys: new Map([[localBuilder.key, localBuilder]]),
    bridges: new Map(),
    carries: new Map(),
    bridgeBlocks: new Map(),
    ledger: new Map(),
    scannedBlock: 0,
    chainPrepared: false,
    next: { sampleMs: nowMs + minuteMs, walkMs: nowMs },
  }
}

export const createVenue = (state: State): Venue => {
  const venue: Venue = {
    state,
    books: new Map(),
    bySeq: new Map([...state.orders.values()].map((order) => [order.seq, order])),
    events: [],
    matches: [],
    selfCanceled: [],
  }
  for (const { conditionId } of markets) {
    const book = createBook({
      filled: (maker, price, shares) => venue.matches.push({ maker, price, shares }),
      removed: (maker) => venue.selfCanceled.push(maker.id),
    })
    venue.books.set(conditionId, book)
  }
  return venue
}

export const marketOf = (conditionId: string): Market => {
  const market = marketByCondition(conditionId)
  if (!market) throw new Error(`There is no market ${conditionId}.`)
  return market
}

export const stateOf = ({ state }: Venue, conditionId: string): MarketState => {
  const found = state.markets.get(conditionId)
  if (!found) throw new Error(`There is no market ${conditionId}.`)
  return found
}

export const bookOf = ({ books }: Venue, conditionId: string): Book => {
  const book = books.get(conditionId)
  if (!book) throw new Error(`There is no market ${conditionId}.`)
  return book
}

export const accountOf = ({ state }: Venue, wallet: string): Account => {
  const key = wallet.toLowerCase()
  const known = state.accounts.get(key)
  if (known) return known
  const account: Account = {
    wallet: key,
    open: new Set(),
    matchedCash: 0n,
    matchedShares: new Map(),
    phantomCash: 0n,
    closedOnly: false,
    banned: false,
  }
  state.accounts.set(key, account)
  return account
}

/** Versions that a read may lag behind: the last ones, the oldest first. */
const versionsMax = 6

export const addVersion = <T extends { atMs: number }>(versions: T[], version: T): void => {
  versions.push(version)
  if (versions.length > versionsMax) versions.shift()
}

export const addActivity = ({ state }: Venue, row: Omit<Activity, 'id'>): void => {
  const id = (state.activity.at(-1)?.id ?? 0) + 1
  state.activity.push({ id, ...row })
}

export const isUnderWay = ({ state }: Sent): boolean =>
  state === 'STATE_NEW' || state === 'STATE_EXECUTED' || state === 'STATE_MINED'

const notificationsMax = 200

export const notify = (
  { state }: Venue,
  user: string,
  notification: { type: number; payload: Record<string, unknown> },
): void => {
  const list = state.notifications.get(user) ?? []
  state.notifications.set(user, list)
  list.push({ id: state.nextNotification, ...notification, atMs: state.nowMs })
  state.nextNotification += 1
  if (list.length > notificationsMax) list.shift()
}

/** One price a minute, for the history. */
export const samplePrices = ({ state }: Venue): void => {
  if (state.nowMs < state.next.sampleMs) return
  state.next.sampleMs = state.nowMs + minuteMs
  for (const market of state.markets.values()) {
    market.samples.push([Math.floor(state.nowMs / 1_000), market.lastPrice])
    if (market.samples.length > samplesMax) market.samples.splice(0, samplesMax / 10)
  }
}
