import type { RandomState } from '#world/venue-core/random.ts'
import type { Candle } from './candles.ts'

/** The state of the venue as plain data: a snapshot is this and the books. Money is in units of 1e-8. */
export type State = {
  random: RandomState
  seed: number
  genesisMs: number
  nowMs: number
  sequence: number
  nextOid: number
  nextTid: number
  nextMarketMakerOrderId: number
  accounts: Map<string, Account>
  agents: Map<string, Agent>
  /**
   * A deregistered key may never be registered again: its nonces are dropped, so old signatures would be valid again.
   */
  retiredAgents: Set<string>
  nonces: Map<string, number[]>
  orders: Map<number, Order>
  markets: Map<number, MarketState>
  fees: { perp: bigint; spot: Map<number, bigint>; bridge: bigint; rounding: bigint }
  builderFees: Map<string, bigint>
  /** Total deposits and withdrawals, so that the sum over all accounts can be checked at any time. */
  flows: { perp: bigint; spot: Map<number, bigint> }
  bridge: { scanned: number; credited: Set<string>; payouts: Payout[] }
  next: { markMs: number; sampleMs: number; fundingMs: number }
  settings: Settings
  /** Absent in the data of older versions, like every optional field here. */
  twaps?: Twap[]
}

export type Settings = {
  walking: boolean
  spotTriggers: boolean
  scheduleCancelVolumeUsd: number
  requestsPerAddress: number
  /** Limits of streams; 0 means no limit, because the whole world uses one loopback address. */
  wsConnectionsPerAddress: number
  wsNewPerMinute: number
  wsUsersPerAddress: number
  /** In whole dollars; absent: the venue's current fee. */
  withdrawalFeeUsd?: number
  /** Mode of accounts that open from now on; absent in the data of older versions. */
  accountMode?: Account['abstraction']
}

export type Account = {
  address: string
  isMarketMaker: boolean
  createdMs: number
  /** Cross collateral: deposits, minus what was paid for positions. */
  raw: bigint
  positions: Map<number, Position>
  leverage: Map<number, Leverage>
  spot: Map<number, SpotBalance>
  /** Open orders, oldest first. */
  open: Set<number>
  /** The reduce-only ones among them: they are checked after every fill. */
  reducing: Set<number>
  orders: number[]
  cloids: Map<string, number>
  fills: Fill[]
  fundings: Funding[]
  ledger: LedgerUpdate[]
  builders: Map<string, number>
  cancelAtMs: number | null
  volume: bigint
  requests: number
  /** Time of the last counted request. */
  requestedAtMs?: number
  reserved: number
  /** Until then a large position that is liquidated again is closed whole. */
  partialUntilMs: number
  abstraction: 'default' | 'disabled' | 'unifiedAccount' | 'portfolioMargin'
  displayName: string | null
  /** A sub-account has a master and a name. */
  master?: string
  name?: string
  dexAbstraction?: boolean
}

/** A TWAP order. */
export type Twap = {
  id: number
  user: string
  asset: number
  buy: boolean
  size: number
  executed: number
  spent: bigint
  reduceOnly: boolean
  minutes: number
  randomize: boolean
  startMs: number
  slices: number
  status: 'activated' | 'finished' | 'terminated'
  statusMs: number
}

export type Agent = { user: string; name: string; validUntilMs: number | null }

export type Leverage = { cross: boolean; value: number }

export type Position = {
  asset: number
  size: number
  /** Cost of the open size, always positive. */
  cost: bigint
  leverage: Leverage
  /** Isolated only: its own collateral minus its cost. */
  raw: bigint
  funding: { allTime: bigint; sinceOpen: bigint; sinceChange: bigint }
}

export type SpotBalance = { total: bigint; hold: bigint; entry: bigint }

export type Tif = 'Gtc' | 'Ioc' | 'Alo' | 'FrontendMarket' | 'LiquidationMarket'

export type Trigger = { price: number; market: boolean; tpsl: 'tp' | 'sl' }

export type Order = {
  oid: number
  user: string
  asset: number
  buy: boolean
  price: number
  size: number
  left: number
  tif: Tif | null
  reduceOnly: boolean
  trigger: Trigger | null
  /** An order for the size of the whole position. */
  positionTpsl: boolean
  cloid: string | null
  placedMs: number
  status: string
  statusMs: number
  /** `waiting` for its parent, `armed` for the mark, `resting` in the book, or `done`. */
  phase: 'waiting' | 'armed' | 'resting' | 'done'
  parent: number | null
  children: number[]
  sibling: number | null
  builder: { address: string; tenths: number } | null
  spent: bigint
  twapId?: number
}

export type Liquidation = { liquidatedUser: string; markPrice: number; method: 'market' | 'backstop' }

export type Fill = {
  user: string
  coin: string
  asset: number
  price: number
  size: number
  buy: boolean
  timeMs: number
  startPosition: string
  dir: string
  closedPnl: bigint
  hash: string
  oid: number
  crossed: boolean
  fee: bigint
  builderFee: bigint
  feeToken: string
  tid: number
  cloid: string | null
  liquidation: Liquidation | null
  twapId?: number
}

export type Funding = { timeMs: number; asset: number; usd: bigint; size: number; rate: bigint }

export type LedgerUpdate = { timeMs: number; hash: string; delta: Record<string, unknown> & { type: string } }

export type Trade = {
  coin: string
  buy: boolean
  price: number
  size: number
  timeMs: number
  hash: string
  tid: number
  users: [buyer: string, seller: string]
}

/** Weighted sum and weight of a moving average. */
export type Average = { sum: number; weight: number }

export type MarketState = {
  asset: number
  oracle: number
  previousOracle: number
  mark: number
  last: number
  /** A test pins this price. */
  pinned: boolean
  basis: Average
  smooth: Average
  averagedMs: number
  premium: { sum: bigint; count: number; last: bigint }
  rate: bigint
  rates: { timeMs: number; rate: bigint; premium: bigint }[]
  trades: Trade[]
  armed: Set<number>
  live: Candle[]
}

/** Signed transactions of one payout, in their order; the last is the payment. They are stored before they are sent. */
export type PayoutAttempt = { raw: string; hash: string; nonce: number }[]

export type Payout = {
  id: number
  user: string
  destination: string
  amount: bigint
  nonce: number
  hash: string | null
  /** Signed and perhaps sent; null where it can no longer land. */
  attempt?: PayoutAttempt | null
}
