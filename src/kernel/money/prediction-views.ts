/** What a prediction market shows. All texts are the venue's and untrusted. */

export type OutcomeRef = { venue: string; marketId: string; outcomeId: string }

/** The taker's fee per share is `rate * (price * (1 - price)) ^ exponent` dollars; both are decimal text. */
export type TakerFee = { rate: string; exponent: string }

export type MarketOutcome = {
  outcomeId: string
  label: string
  priceMicros: bigint | null
}

export type PredictionMarket = {
  venue: string
  marketId: string
  protocol: string
  isNegRisk: boolean
  slug: string
  question: string
  description: string
  category: string | null
  image: string | null
  eventId: string | null
  eventSlug: string | null
  eventTitle: string | null
  outcomes: MarketOutcome[]
  tickMicros: bigint
  minSizeUnits: bigint
  acceptsOrders: boolean
  isClosed: boolean
  /** Seconds between the acceptance of an order that matches and its match. */
  matchDelaySeconds: number
  /** Null if the market has no fee. */
  fee: TakerFee | null
  /** The best bid of the first outcome; the two prices after it are also of this outcome. */
  bestBidMicros: bigint | null
  bestAskMicros: bigint | null
  lastPriceMicros: bigint | null
  volumeUnits: bigint
  volume24hUnits: bigint
  liquidityUnits: bigint
  endsAt: Date | null
  /** The payout per outcome, once the venue says that the market is resolved; the chain may still lack it. */
  payoutMicros: bigint[] | null
}

export type BookLevel = { priceMicros: bigint; sizeUnits: bigint }
export type Book = OutcomeRef & {
  /** The best price comes first on both sides. */
  bids: BookLevel[]
  asks: BookLevel[]
  tickMicros: bigint
  minSizeUnits: bigint
  isNegRisk: boolean
  lastPriceMicros: bigint | null
  hash: string
  at: Date
}

export type OutcomeQuote = OutcomeRef & {
  side: 'buy' | 'sell'
  /** Shares that the book can serve, and whether that is all that was asked for. */
  sizeUnits: bigint
  isComplete: boolean
  /** Dollars for the shares without fee; rounded up for a buy and down for a sell. */
  cashUnits: bigint
  /** The dollars that a market buy of this quote names, in the steps that the venue takes; 0 for a sale. */
  orderCashUnits: bigint
  feeUnits: bigint
  /** What a buy costs, or a sell yields, with the fee. */
  allInUnits: bigint
  averagePriceMicros: bigint
  worstPriceMicros: bigint
  /** What the shares pay if the outcome wins. */
  payoutUnits: bigint
  book: { hash: string; at: Date }
}

export type OutcomeOrder = OutcomeRef & {
  orderId: string
  status: 'live' | 'matched' | 'delayed' | 'canceled' | 'canceled_market_resolved' | 'invalid'
  side: 'buy' | 'sell'
  outcome: string
  sizeUnits: bigint
  matchedUnits: bigint
  priceMicros: bigint
  timeInForce: 'gtc' | 'gtd' | 'fok' | 'fak'
  expiresAt: Date | null
  createdAt: Date
  tradeIds: string[]
}

/** Only `confirmed` is money; `failed` voids the trade, and `retrying` may end with another transaction. */
export type SettlementState =
  | 'matched_not_broadcasted'
  | 'matched'
  | 'mined'
  | 'confirmed'
  | 'retrying'
  | 'failed'

/** The account's own leg of a trade. The other leg may be of the other outcome, in a mint or a merge. */
export type OutcomeTrade = OutcomeRef & {
  tradeId: string
  orderId: string
  role: 'taker' | 'maker'
  side: 'buy' | 'sell'
  outcome: string
  sizeUnits: bigint
  /** The average of the parts. */
  priceMicros: bigint
  /** What was traded with each order that it met, at the price of that order. */
  parts: { priceMicros: bigint; sizeUnits: bigint }[]
  feeRateBps: string
  settlement: SettlementState
  txHash: string | null
  matchedAt: Date
  updatedAt: Date
}
