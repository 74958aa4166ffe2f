import type { RandomState } from '#world/venue-core/random.ts'
import type { Address, Hex, SignedTransaction } from './chain/chain-terms.ts'
import type { OutcomeIndex } from './markets.ts'

/** The state of the venue as plain data: a snapshot is this and the books. */
export type State = {
  random: RandomState
  seed: number
  genesisMs: number
  nowMs: number
  sequence: number
  nextSeq: number
  nextNotification: number
  /** By condition. */
  markets: Map<string, MarketState>
  /** By API key. */
  keys: Map<string, ApiKey>
  orders: Map<string, Order>
  /** Orders that end or begin at a time. */
  timed: Set<string>
  trades: Map<string, Trade>
  /** By wallet in lower case: the maker of orders. */
  accounts: Map<string, Account>
  /** By the address of the API key. */
  notifications: Map<string, Notification[]>
  heartbeats: Map<string, Heartbeat>
  mode: { name: VenueMode; untilMs: number; next: VenueMode; nextMs: number }
  activity: Activity[]
  /** What wallets held of each outcome before the oldest activity: by wallet, then by condition and outcome. */
  opening: Map<string, Map<string, Holding>>
  relay: Map<string, RelayTransaction>
  /** What the relayer has taken of the quota that ends at a time. */
  relayed: { untilMs: number; count: number }
  relayerKeys: Map<string, { address: string; createdMs: number }>
  builderKeys: Map<string, ApiKey>
  /** By the code of the builder, in lower case; in ten-thousandths of the dollars of a match. */
  builderFees: Map<string, BuilderFee>
  /** By their address on EVM chains. */
  bridges: Map<string, Bridge>
  /** By chain and transfer. */
  carries: Map<string, Carry>
  /** By chain: the last block whose transfers are known. */
  bridgeBlocks: Map<string, number>
  /** Money of a venue without a chain: wallet, then asset. */
  ledger: Map<string, Map<string, bigint>>
  scannedBlock: number
  chainPrepared: boolean
  next: { sampleMs: number; walkMs: number }
}

export type VenueMode = 'open' | 'restarting' | 'postOnly' | 'cancelOnly' | 'disabled'

export type MarketState = {
  tick: number
  fair: number
  isPinned: boolean
  lastPrice: number
  lastSide: Side
  volume: bigint
  /** Orders are refused once a result is known. */
  isClosed: boolean
  /** Per share, of the first outcome, in 1e-4 dollars. */
  payout: number | null
  resolvedMs: number
  /** The report on the chain, which may come later. */
  isReported: boolean
  /** Seconds and prices of the first outcome, one each minute. */
  samples: [atSeconds: number, price: number][]
  changedMs: number
  /** What the order book charges now; absent while it is that of the catalog, which Gamma lists in any case. */
  fee?: Fee | null
}

export type BuilderFee = { makerBps: number; takerBps: number }

export type Fee = { rate: number; exponent: number }

export type Side = 'BUY' | 'SELL'
export type OrderType = 'GTC' | 'GTD' | 'FOK' | 'FAK'

export type ApiKey = {
  key: string
  secret: string
  passphrase: string
  address: string
  nonce: string
  createdMs: number
}

export type OrderStatus =
  | 'LIVE'
  | 'MATCHED'
  | 'CANCELED'
  | 'INVALID'
  | 'CANCELED_MARKET_RESOLVED'
  | 'DELAYED'
  | 'UNMATCHED'

/** An order as it was signed, in the form of the wire. */
export type SignedFields = {
  salt: string
  maker: Hex
  signer: Hex
  tokenId: string
  makerAmount: string
  takerAmount: string
  side: Side
  signatureType: number
  timestamp: string
  metadata: Hex
  builder: Hex
  signature: Hex
}

/** What a lagging read shows of a record. */
export type Version<T> = { atMs: number } & T

export type Order = {
  seq: number
  id: string
  conditionId: string
  outcome: OutcomeIndex
  side: Side
  /** In 1e-4 dollars, of its outcome. */
  price: number
  size: number
  matched: number
  type: OrderType
  postOnly: boolean
  /** Zero: never. */
  expiresMs: number
  /** The wire's expiration, in seconds. */
  expiration: string
  owner: string
  user: string
  wallet: string
  signed: SignedFields
  /** Dollars that a market order to buy spends, in units. */
  spend: number | null
  plan: TradePlan
  status: OrderStatus
  createdMs: number
  trades: string[]
  /** The end of the delay of its market. */
  releaseMs: number
  versions: Version<{ status: OrderStatus; matched: number }>[]
}

export type TradeStatus =
  | 'MATCHED_NOT_BROADCASTED'
  | 'MATCHED'
  | 'MINED'
  | 'CONFIRMED'
  | 'RETRYING'
  | 'FAILED'

/** One order's part of a trade. */
export type Leg = {
  orderId: string
  owner: string
  user: string
  wallet: string
  outcome: OutcomeIndex
  side: Side
  price: number
  shares: number
  cash: number
  fee: number
  signed: SignedFields
}

/** What the dial decided about the trade that an order may begin. */
export type TradePlan = {
  delayMs: number
  confirmMs: number
  retries: number
  fails: boolean
  /** Where the venue never counts the trade as settled. */
  isPhantom: boolean
  firstStatus: 'MATCHED' | 'MATCHED_NOT_BROADCASTED'
}

export type Trade = {
  id: string
  /** Makes its settlement happen once. */
  key: Hex
  conditionId: string
  taker: Leg
  makers: Leg[]
  /** A taker that meets very many orders gets several trades. */
  bucket: number
  matchMs: number
  status: TradeStatus
  hash: string
  updatedMs: number
  /** Signed and perhaps sent; null where nothing is, or where it cannot land any more. */
  attempt: SignedTransaction | null
  attempts: number
  minedMs: number
  error: string | null
  plan: TradePlan
  versions: Version<{ status: TradeStatus; hash: string }>[]
}

export type Account = {
  wallet: string
  open: Set<string>
  /** Committed by trades that are not settled: collateral, and shares by token. */
  matchedCash: bigint
  matchedShares: Map<string, bigint>
  /** How often a trade has given back what it committed: a balance that was read before counts no more. */
  releases?: number
  /** The venue's own mistake, added by the dial, and never given back by itself. */
  phantomCash: bigint
  closedOnly: boolean
  banned: boolean
}

export type Notification = { id: number; type: number; payload: Record<string, unknown>; atMs: number }

export type Heartbeat = { id: string; dueMs: number }

/** Amounts in units. */
export type Holding = {
  size: number
  /** The cost of what is still held, without fees. */
  cost: number
  fees: number
  bought: number
  boughtCash: number
  realized: number
  firstMs: number
  lastMs: number
}

/** What happened to a wallet, for the Data API. Amounts in units. */
export type Activity = {
  id: number
  type: 'TRADE' | 'SPLIT' | 'MERGE' | 'REDEEM' | 'DEPOSIT' | 'WITHDRAWAL' | 'TRANSFER'
  wallet: string
  conditionId: string
  outcome: OutcomeIndex | null
  side: Side | null
  shares: number
  cash: number
  fee: number
  atMs: number
  hash: string
  role: 'taker' | 'maker' | null
}

export type RelayState =
  | 'STATE_NEW'
  | 'STATE_EXECUTED'
  | 'STATE_MINED'
  | 'STATE_CONFIRMED'
  | 'STATE_INVALID'
  | 'STATE_FAILED'

/** What becomes of a transaction that the venue signs once, stores, and sends. */
export type Sent = { state: RelayState; hash: string; attempt: SignedTransaction | null }

export type RelayTransaction = Sent & {
  id: string
  type: 'WALLET-CREATE' | 'WALLET' | 'SAFE'
  from: string
  to: string
  wallet: string
  data: string
  nonce: string
  signature: string
  metadata: string
  /** The whole request, to build the call from. */
  body: Record<string, unknown>
  error: string
  createdMs: number
  updatedMs: number
  notBeforeMs: number
}

/** An address to which money is sent, and where it goes from there. */
export type Bridge = {
  kind: 'deposit' | 'withdraw'
  evm: string
  svm: string
  btc: string
  chainId: string
  token: Address
  recipient: Address
}

/** One transfer to a bridge's address, on its way. */
export type Carry = Sent & {
  key: string
  bridge: Bridge
  chainId: string
  token: string
  units: string
  originHash: string
  createdMs: number
}
