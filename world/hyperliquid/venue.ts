import { createHash } from 'node:crypto'
import { type Book, createBook, type Resting } from '#world/venue-core/book.ts'
import { one } from './decimal.ts'
import { type Market, marketOf, markets, usdc } from './markets.ts'
import type {
  Account,
  Fill,
  Funding,
  LedgerUpdate,
  MarketState,
  Order,
  SpotBalance,
  State,
  Trade,
} from './state.ts'

/** Events for the streams. They leave the process only after the log has been written. */
export type VenueEvent =
  | { kind: 'order'; user: string; order: Order; status: string; timeMs: number }
  | { kind: 'fill'; user: string; fill: Fill }
  | { kind: 'funding'; user: string; funding: Funding }
  | { kind: 'ledger'; user: string; update: LedgerUpdate }
  | { kind: 'trade'; trade: Trade }
  | { kind: 'book'; asset: number }
  | { kind: 'liquidation'; user: string; liquidator: string; notional: bigint; value: bigint }
  | { kind: 'prices' }

export type TakerContext = { order: Order; liquidation: Fill['liquidation'] } | { systemAddress: string }

export type Venue = {
  state: State
  books: Map<number, Book>
  events: VenueEvent[]
  /** The transaction hash of the current command. */
  hash: string
  /** The taker of the current match. */
  takerContext: TakerContext | undefined
  rules: MatchRules
}

/** Set by settlement, so that a book checks with it and reports to it. */
export type MatchRules = {
  allow: (venue: Venue, market: Market, maker: Resting, size: number) => number
  filled: (venue: Venue, market: Market, maker: Resting, trade: { price: number; size: number }) => void
  removed: (venue: Venue, market: Market, maker: Resting, why: 'self' | 'refused') => void
}

export const makerAddress = '0xffffffffffffffffffffffffffffffffffff0001'
export const flowAddress = '0xffffffffffffffffffffffffffffffffffff0002'
/** Takes over what the book could not liquidate: upstream's insurance. */
export const backstopAddress = '0xffffffffffffffffffffffffffffffffffff0003'

export const newAccount = (
  address: string,
  nowMs: number,
  { isMarketMaker = false }: { isMarketMaker?: boolean } = {},
): Account => ({
  address,
  isMarketMaker,
  createdMs: nowMs,
  raw: 0n,
  positions: new Map(),
  leverage: new Map(),
  spot: new Map(),
  open: new Set(),
  reducing: new Set(),
  orders: [],
  cloids: new Map(),
  fills: [],
  fundings: [],
  ledger: [],
  builders: new Map(),
  cancelAtMs: null,
  volume: 0n,
  requests: 0,
  reserved: 0,
  partialUntilMs: 0,
  abstraction: 'default',
  displayName: null,
})

const systemUsd = 1_000_000_000

const systemAccounts = (nowMs: number): Map<string, Account> => {
  const accounts = new Map<string, Account>()
  for (const address of [makerAddress, flowAddress, backstopAddress]) {
    const account = newAccount(address, nowMs, { isMarketMaker: true })
    account.raw = BigInt(systemUsd) * BigInt(one)
    if (address !== backstopAddress) {
      account.spot.set(usdc.index, balance(BigInt(systemUsd) * BigInt(one)))
      for (const market of markets)
        if (market.kind === 'spot')
          account.spot.set(
            market.base.index,
            balance(BigInt(Math.round(systemUsd / market.startUsd)) * BigInt(one)),
          )
    }
    accounts.set(address, account)
  }
  return accounts
}

const balance = (total: bigint): SpotBalance => ({ total, hold: 0n, entry: 0n })

const newMarketState = ({ asset, startUsd }: Market, nowMs: number): MarketState => {
  const price = Math.round(startUsd * one)
  return {
    asset,
    oracle: price,
    previousOracle: price,
    mark: price,
    last: price,
    pinned: false,
    basis: { sum: 0, weight: 0 },
    smooth: { sum: 0, weight: 0 },
    averagedMs: nowMs,
    premium: { sum: 0n, count: 0, last: 0n },
    rate: 125_000n,
    rates: [],
    trades: [],
    armed: new Set(),
    live: [],
  }
}

export const newState = (seed: number, nowMs: number): State => {
  const accounts = systemAccounts(nowMs)
  const spotFlow = new Map<number, bigint>()
  let perpFlow = 0n
  for (const account of accounts.values()) {
    perpFlow += account.raw
    for (const [token, { total }] of account.spot) spotFlow.set(token, (spotFlow.get(token) ?? 0n) + total)
  }
  return {
    random: { at: seed | 0 },
    seed,
    genesisMs: nowMs,
    nowMs,
    sequence: 0,
    nextOid: 100_000_001,
    nextTid: 700_000_000_001,
    nextMarketMakerOrderId: -1,
    accounts,
    agents: new Map(),
    retiredAgents: new Set(),
    nonces: new Map(),
    orders: new Map(),
    markets: new Map(markets.map((market) => [market.asset, newMarketState(market, nowMs)])),
    fees: { perp: 0n, spot: new Map(), bridge: 0n, rounding: 0n },
    builderFees: new Map(),
    flows: { perp: perpFlow, spot: spotFlow },
    bridge: { scanned: -1, credited: new Set(), payouts: [] },
    next: { markMs: nowMs, sampleMs: nowMs, fundingMs: (Math.floor(nowMs / 3_600_000) + 1) * 3_600_000 },
    settings: {
      walking: true,
      spotTriggers: false,
      scheduleCancelVolumeUsd: 0,
      requestsPerAddress: 0,
      wsConnectionsPerAddress: 0,
      wsNewPerMinute: 0,
      wsUsersPerAddress: 0,
    },
  }
}

export const createVenue = (state: State, rules: MatchRules): Venue => {
  const venue: Venue = { state, books: new Map(), events: [], hash: '', takerContext: undefined, rules }
  for (const market of markets) {
    const book = createBook({
      allow: (maker, size) => rules.allow(venue, market, maker, size),
      filled: (maker, price, size) => rules.filled(venue, market, maker, { price, size }),
      removed: (maker, why) => rules.removed(venue, market, maker, why),
    })
    venue.books.set(market.asset, book)
  }
  return venue
}

export const bookOf = ({ books }: Venue, asset: number): Book => books.get(asset) as Book
export const stateOf = ({ state }: Venue, asset: number): MarketState =>
  state.markets.get(asset) as MarketState
export const accountOf = ({ state }: Venue, address: string): Account =>
  state.accounts.get(address) as Account
export const marketFor = (asset: number): Market => marketOf(asset) as Market

/** The order is active from now on. */
export const addOpenOrder = (account: Account, order: Order): void => {
  account.open.add(order.oid)
  if (order.reduceOnly) account.reducing.add(order.oid)
}

export const removeOpenOrder = (account: Account, { oid }: Order): void => {
  account.open.delete(oid)
  account.reducing.delete(oid)
}

/** Middle of the book, or undefined with a side missing. */
export const midOf = (venue: Venue, asset: number): number | undefined => {
  const book = bookOf(venue, asset)
  const bid = book.best({ buy: true })
  const ask = book.best({ buy: false })
  return bid === undefined || ask === undefined ? undefined : (bid + ask) / 2
}

export const openAccount = (venue: Venue, address: string): Account => {
  const known = venue.state.accounts.get(address)
  if (known) return known
  const account = newAccount(address, venue.state.nowMs)
  account.abstraction = venue.state.settings.accountMode ?? 'default'
  venue.state.accounts.set(address, account)
  return account
}

export const spotOf = (account: Account, token: number): SpotBalance => {
  const known = account.spot.get(token)
  if (known) return known
  const made = balance(0n)
  account.spot.set(token, made)
  return made
}

export const commandHash = (seed: number, sequence: number): string =>
  `0x${createHash('sha256').update(`${seed}:${sequence}`).digest('hex')}`

const ledgerUpdatesMax = 10_000

export const recordLedger = (venue: Venue, account: Account, delta: LedgerUpdate['delta']): void => {
  const update = { timeMs: venue.state.nowMs, hash: venue.hash, delta }
  account.ledger.push(update)
  if (account.ledger.length > ledgerUpdatesMax) account.ledger.shift()
  venue.events.push({ kind: 'ledger', user: account.address, update })
}

export const recordStatus = (venue: Venue, order: Order, status: string): void => {
  order.status = status
  order.statusMs = venue.state.nowMs
  venue.events.push({
    kind: 'order',
    user: order.user,
    order: { ...order },
    status,
    timeMs: venue.state.nowMs,
  })
}
