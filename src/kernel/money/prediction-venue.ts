import type { OutcomeOrderAction, SignInAction, VenueWallet, WalletKind } from './prediction-actions.ts'
import type { OrderRefusal, Unsettled } from './prediction-refusals.ts'
import type { VenueMoney, VenueSetup } from './prediction-setup.ts'
import type {
  Book,
  OutcomeOrder,
  OutcomeQuote,
  OutcomeRef,
  OutcomeTrade,
  PredictionMarket,
} from './prediction-views.ts'

/**
 * A prediction market, as the features use it. Ids are the venue's own; dollars and shares are bigint units of 6
 * decimals, and prices are micro-dollars per share. Reads throw Faults. Nothing is retried in the adapter.
 */

/** The venue's key of one owner. It is secret, and it signs requests but no money. */
export type VenueCredentials = { owner: string; key: string; secret: string; passphrase: string }

/** The budget of a signer, as the venue stated it with its last reply. */
export type SignerLimit = { remaining: number | null; resetAtSeconds: number | null; tier: string | null }
export type WithLimit<T> = T & { limit: SignerLimit | null }

export type TimeInForce = 'gtc' | 'gtd' | 'fok' | 'fak'
/** The terms of an order before they are rounded to the market's grid. */
export type OrderTerms =
  | { type: 'limit'; side: 'buy' | 'sell'; priceMicros: bigint; sizeUnits: bigint }
  /** `cashUnits` is what the shares may cost without the venue's fee, which comes on top. */
  | { type: 'market'; side: 'buy'; cashUnits: bigint; worstPriceMicros: bigint }
  | { type: 'market'; side: 'sell'; sizeUnits: bigint; worstPriceMicros: bigint }

export type OrderRequest = {
  /** Distinguishes the order from all others; it is recognised again by its identity alone. */
  identity: string
  wallet: VenueWallet
  outcome: OutcomeRef
  terms: OrderTerms
  timeInForce: TimeInForce
  postOnly: boolean
  /** The end of life that the user asked for; the adapter adds what the venue subtracts. Only with `gtd`. */
  expiresAt: Date | null
}

/** What the venue lists of an order and its signature followed from. */
export type SignedOrder = Pick<
  OutcomeOrder,
  'orderId' | 'outcomeId' | 'side' | 'timeInForce' | 'sizeUnits' | 'priceMicros' | 'createdAt'
>

/** An order that was routed by what the venue says now. Only `prepareOrder` makes one, and nothing else is signed. */
export type PreparedOrder = {
  action: OutcomeOrderAction
  /** The order's hash, by which it is looked up; known before the order is sent. */
  orderId: string
  market: PredictionMarket
  /** The most that the order can pay in fees, by the fee that the venue charges now. */
  maxFeeUnits: bigint
  /** Price and size on the market's grid. */
  priceMicros: bigint
  sizeUnits: bigint
  timeInForce: TimeInForce
  postOnly: boolean
  /** Seconds; 0 if the order has no end. Sent, but not signed. */
  expiration: number
}

export type OrderReply = WithLimit<
  | {
      type: 'accepted'
      orderId: string
      /** `delayed` is accepted and matched some seconds later; `unmatched` is delayed and then rests. */
      status: 'live' | 'matched' | 'delayed' | 'unmatched'
      /** What was given and taken by the matches so far; null where the venue did not say. Not settled yet. */
      makingUnits: bigint | null
      takingUnits: bigint | null
      tradeIds: string[]
      txHashes: string[]
    }
  | { type: 'rejected'; reason: OrderRefusal; message: string }
  | Unsettled
>

export type CancelReply = WithLimit<
  | { type: 'answered'; canceled: string[]; notCanceled: Record<string, string> }
  | { type: 'rejected'; reason: OrderRefusal; message: string }
  | Unsettled
>

/** Each name narrows the list; an empty object lists everything. */
export type OrderFilter = { marketId?: string; outcomeId?: string }
export type MarketFilter = {
  text?: string
  tag?: string
  isClosed?: boolean
  order?: 'volume' | 'volume_24h' | 'liquidity' | 'newest' | 'ending'
  limit: number
  cursor?: string
}
export type Paged<T> = { items: T[]; nextCursor: string | null }

export type PredictionEvent = {
  venue: string
  eventId: string
  slug: string
  title: string
  description: string
  category: string | null
  image: string | null
  isNegRisk: boolean
  isClosed: boolean
  endsAt: Date | null
  volumeUnits: bigint
  markets: PredictionMarket[]
}

export type PricePoint = { at: Date; priceMicros: bigint }
/** The most prices of one history. */
export const pricePointsMax = 10_000
export type PriceWindow = '1h' | '6h' | '1d' | '1w' | '1m' | 'max'

export type VenuePosition = OutcomeRef & {
  sizeUnits: bigint
  averagePriceMicros: bigint
  priceMicros: bigint
  costUnits: bigint
  valueUnits: bigint
  realizedUnits: bigint
  isRedeemable: boolean
  isMergeable: boolean
  isNegRisk: boolean
  outcome: string
  title: string
  slug: string
  eventSlug: string
  endsAt: Date | null
}
export type VenueActivity = OutcomeRef & {
  /** The venue's word in lower case: trade, split, merge, redeem, deposit, withdrawal, conversion or another. */
  type: string
  side: 'buy' | 'sell' | null
  sizeUnits: bigint
  cashUnits: bigint
  priceMicros: bigint
  outcome: string
  title: string
  txHash: string | null
  at: Date
}

/** What the venue believes the wallet has and may spend. It lags behind the chain. */
export type VenueBalance = { balanceUnits: bigint; allowances: { spender: string; units: bigint }[] }
export type BalanceAsset = 'cash' | { outcomeId: string }

export type VenueAccess = { isBlocked: boolean; country: string | null }

export type OrderUpdate = {
  type: 'order'
  orderId: string
  change: 'placement' | 'update' | 'cancellation'
  outcome: OutcomeRef
  status: OutcomeOrder['status'] | null
  matchedUnits: bigint
  at: Date
}
export type UserUpdate = OrderUpdate | { type: 'trade'; trade: OutcomeTrade }
export type MarketUpdate =
  | { type: 'book'; book: Book }
  | {
      type: 'best'
      outcome: OutcomeRef
      bidMicros: bigint | null
      askMicros: bigint | null
      at: Date
    }
  | { type: 'last_trade'; outcome: OutcomeRef; priceMicros: bigint; sizeUnits: bigint; at: Date }
  | { type: 'tick'; outcome: OutcomeRef; tickMicros: bigint; at: Date }
  | { type: 'resolved'; marketId: string; winningOutcomeId: string | null; at: Date }

export type StreamListener<T> = {
  onUpdate(update: T): void
  /** The stream was interrupted, so updates may be missing: read again over HTTP. */
  onGap?(): void
}
export type VenueStream = Disposable & {
  isConnected(): boolean
  /** Resolves when the socket is open and the subscription was sent. */
  ready(): Promise<void>
}

export type PredictionVenue = {
  name: string
  /** Wallets of an owner, deployed or not; the first is the one that a new user gets. */
  walletsOf(owner: string): VenueWallet[]
  protocols: readonly string[]
  /** The protocol to which an outcome's id belongs by its form; undefined if it is no id of this venue. */
  protocolOf(outcomeId: string): string | undefined

  markets(filter: MarketFilter): Promise<Paged<PredictionMarket>>
  events(filter: MarketFilter): Promise<Paged<PredictionEvent>>
  event(idOrSlug: string): Promise<PredictionEvent | undefined>
  /** By the market's id, slug, or the id of an outcome. */
  market(
    by: { marketId: string } | { slug: string } | { outcomeId: string },
  ): Promise<PredictionMarket | undefined>
  /** Several markets by their ids, by few requests; those that the venue does not list, or not readably, are absent. */
  marketsById(marketIds: readonly string[]): Promise<ReadonlyMap<string, PredictionMarket>>
  book(outcomeId: string): Promise<Book>
  /** The books of several outcomes; those that the venue shows none for are absent. */
  books(outcomeIds: readonly string[]): Promise<ReadonlyMap<string, Book>>
  prices(outcomeId: string, window: PriceWindow, stepMinutes: number): Promise<PricePoint[]>
  /** What an order would get from the book of this moment, with the venue's fee. */
  quote(request: {
    outcomeId: string
    spend: { type: 'all_in'; cashUnits: bigint } | { type: 'buy' | 'sell'; sizeUnits: bigint }
    /** Levels beyond this price do not count. */
    worstPriceMicros?: bigint | null
  }): Promise<OutcomeQuote>
  /** The most that an order can pay in fees, at whatever price within its terms it matches. */
  highestFee(market: PredictionMarket, order: Pick<OrderRequest, 'terms' | 'postOnly'>): Promise<bigint>

  access(): Promise<VenueAccess>
  isClosedOnly(credentials: VenueCredentials): Promise<boolean>

  /** The action whose signature opens a key, or finds the one that exists. */
  signInAction(owner: string): SignInAction
  signIn(action: SignInAction, signature: string): Promise<VenueCredentials>
  keys(credentials: VenueCredentials): Promise<string[]>
  deleteKey(credentials: VenueCredentials): Promise<void>

  /**
   * Reads market, tick, risk kind and minimum anew, and returns what to sign. Throws a Fault if the venue contradicts
   * itself, if the market takes no orders, or if the terms does not fit the market's grid.
   */
  prepareOrder(request: OrderRequest): Promise<PreparedOrder>
  /** Which of the identities an order of the wallet was signed under; undefined if it was none of them. */
  identityOf(order: SignedOrder, wallet: VenueWallet, identities: readonly string[]): string | undefined
  /** The body to store and to send; `venueKey` is the key of the credentials that will send it. */
  orderBody(order: PreparedOrder, signature: string, venueKey: string): string
  postOrder(body: string, credentials: VenueCredentials): Promise<OrderReply>
  cancelOrders(orderIds: string[], credentials: VenueCredentials): Promise<CancelReply>
  /** All orders of one market or outcome, or with an empty filter of the account. */
  cancelMatching(filter: OrderFilter, credentials: VenueCredentials): Promise<CancelReply>
  openOrders(filter: OrderFilter, credentials: VenueCredentials): Promise<OutcomeOrder[]>
  /** Undefined if the venue does not know the order, which also happens shortly after it was placed. */
  order(orderId: string, credentials: VenueCredentials): Promise<OutcomeOrder | undefined>
  /** The account's own legs, newest first; a trade in which it has several legs is listed once per leg. */
  trades(
    filter: OrderFilter & { tradeId?: string; since?: Date; until?: Date },
    wallet: VenueWallet,
    credentials: VenueCredentials,
  ): Promise<OutcomeTrade[]>
  balance(asset: BalanceAsset, kind: WalletKind, credentials: VenueCredentials): Promise<VenueBalance>
  /** Makes the venue read the chain again. */
  refreshBalance(asset: BalanceAsset, kind: WalletKind, credentials: VenueCredentials): Promise<VenueBalance>
  notifications(
    kind: WalletKind,
    credentials: VenueCredentials,
  ): Promise<{ id: number; type: number; at: Date | null; payload: unknown }[]>

  /** By the venue's public record, which lags behind the chain. */
  positions(wallet: string, cursor?: string): Promise<Paged<VenuePosition>>
  activity(wallet: string, limit: number, cursor?: string): Promise<Paged<VenueActivity>>

  streamUser(credentials: VenueCredentials, listener: StreamListener<UserUpdate>): VenueStream
  streamMarkets(outcomeIds: readonly string[], listener: StreamListener<MarketUpdate>): VenueStream

  /** Absent if the venue needs no setup, or the operator has no key for it. */
  setup?: VenueSetup
  /** Absent if the venue settles in the account at once. */
  money?: VenueMoney
  /** Addresses of other chains from which money is carried to the wallet; absent if the venue has none. */
  depositAddresses?(wallet: string): Promise<{ evm: string | null; svm: string | null }>
}
