import type { Address, Hex } from './addresses.ts'

/** What the servers of the prediction market use of its chain. Amounts are units of six decimals, of pUSD and of shares. */

export type { Address, Hex } from './addresses.ts'

/** `v1`: conditional tokens; `v2`: the position manager. */
export type Protocol = 'v1' | 'v2'

/** A market with two outcomes, as the chain knows it. */
export type ChainMarket = {
  protocol: Protocol
  isNegRisk: boolean
  /** 32 bytes in v1, 31 in v2. */
  conditionId: Hex
  /** What the resolver reports about: 32 bytes in v1; in v2 what the id was made of. */
  questionId: Hex
  /** YES, NO: `clobTokenIds` of v1, `positionIds` of v2. */
  outcomeIds: readonly [bigint, bigint]
}

/** Markets of which one alone can resolve to YES; they are prepared together. */
export type ChainEvent = {
  protocol: Protocol
  /** `negRiskMarketID` of v1 (32 bytes); 29 bytes in v2. */
  eventId: Hex
  /** What the id was made of. */
  metadata: Hex
  markets: readonly ChainMarket[]
}

export type ExchangeName = 'standardExchange' | 'negRiskExchange' | 'exchangeV3'
export type Side = 0 | 1

export type Order = {
  salt: bigint
  maker: Address
  signer: Address
  tokenId: bigint
  makerAmount: bigint
  takerAmount: bigint
  /** 0 buys, 1 sells. */
  side: Side
  /** 0 EOA, 2 Safe, 3 deposit wallet; 1 (proxy) is refused. */
  signatureType: number
  timestamp: bigint
  metadata: Hex
  builder: Hex
}

export type SignedOrder = Order & { signature: Hex }

export type OrderVerdict =
  | { isValid: true /** Whose API key may send the order. */; owner: Address; hash: Hex }
  | { isValid: false; reason: string; hash: Hex }

export type WalletCall = { target: Address; value: bigint; data: Hex }
export type WalletBatch = {
  wallet: Address
  nonce: bigint
  deadline: bigint
  calls: readonly WalletCall[]
}
export type SafeTransaction = {
  safe: Address
  to: Address
  value: bigint
  data: Hex
  /** 1 is a delegate call: of MultiSend alone. */
  operation: 0 | 1
  nonce: bigint
}
/** A transaction in the making. */
export type Call = { to: Address; data: Hex; value?: bigint /** At most. */; gas?: bigint }

/** One order's part of a settlement; `cash` excludes the fee, which a buyer pays on top and a seller out of it. */
export type Fill = { order: SignedOrder; shares: bigint; cash: bigint; fee: bigint }

export type Settlement = {
  exchange: ExchangeName
  /** Makes it happen once: a second settlement with this key reverts with `AlreadySettled`. */
  key: Hex
  conditionId: Hex
  /**
   * The taker and its makers, at least two. Shares of each outcome and cash must add up: what buyers get beyond what
   * sellers give is minted in pairs, the reverse is merged.
   */
  fills: readonly Fill[]
}

/** The venue’s own accounts. */
export type AccountName = 'operator' | 'relayer' | 'resolver' | 'autoRedeemer' | 'admin' | 'maker'

/** Bytes that were signed once, to be stored before they are sent. */
export type SignedTransaction = { account: AccountName; nonce: number; hash: Hex; raw: Hex }

export type Receipt = {
  hash: Hex
  blockNumber: number
  status: 'success' | 'reverted'
  logs: readonly { address: Address; topics: readonly Hex[]; data: Hex }[]
}

export type TransactionState =
  | { state: 'unknown' | 'pending' }
  /** Another transaction has used its nonce: it cannot be mined any more. */
  | { state: 'replaced' }
  | { state: 'mined'; receipt: Receipt }

/**
 * One account is one sequence of nonces: calls of one account that are signed at once
 * are sent in that order.
 */
export type Sender = {
  /** `nonce` replaces an earlier transaction: the hash is another one. */
  sign: (
    account: AccountName,
    call: Call,
    options?: { nonce?: number; gas?: bigint },
  ) => Promise<SignedTransaction>
  /** Sends again what the node lost; a known one is no error. */
  submit: (transaction: SignedTransaction) => Promise<void>
  stateOf: (transaction: SignedTransaction) => Promise<TransactionState>
  /** Signs, sends and waits, for what needs no record of its own. It throws when the call reverts. */
  send: (account: AccountName, call: Call) => Promise<Receipt>
  /** Why a call would revert, as `Name(arguments)` or text; undefined when it would succeed. */
  simulate: (from: Address, call: Call) => Promise<string | undefined>
}

export type Backing = {
  supply: bigint
  usdc: bigint
  usdce: bigint
  /** Held against the open positions of v2. `supply + locked = usdc + usdce` at every block. */
  locked: bigint
}
export type Approval = { token: Address; spender: Address; kind: 'erc20' | 'erc1155'; allowance: bigint }
export type Resolution = {
  isPrepared: boolean /** Per share, of `denominator`; zero before the report. */
  payouts: readonly [bigint, bigint]
  denominator: bigint
}

export type Reads = {
  /** pUSD, USDC and USDC.e. */
  dollars: (owner: Address) => Promise<{ pusd: bigint; usdc: bigint; usdce: bigint }>
  shares: (owner: Address, outcomeIds: readonly bigint[]) => Promise<bigint[]>
  /** In the order of `approvalCalls`. */
  approvals: (owner: Address) => Promise<Approval[]>
  resolution: (market: ChainMarket) => Promise<Resolution>
  /** How much of its `makerAmount` an order has given. */
  filled: (exchange: ExchangeName, orderHash: Hex) => Promise<bigint>
  isSettled: (exchange: ExchangeName, key: Hex) => Promise<boolean>
  isDeployed: (address: Address) => Promise<boolean>
  walletNonce: (wallet: Address) => Promise<bigint>
  safeNonce: (safe: Address) => Promise<bigint>
  isRampPaused: (ramp: 'onramp' | 'offramp', asset: Address) => Promise<boolean>
  backing: () => Promise<Backing>
}

/** By the node's own powers, for seeds and the control port. */
export type WorldMoney = {
  /** USDC or USDC.e out of nothing. */
  mintDollars: (asset: 'usdc' | 'usdce', to: Address, amount: bigint) => Promise<void>
  /** Mints USDC.e and wraps it. */
  mintPusd: (to: Address, amount: bigint) => Promise<void>
  /** A legacy Safe with the code of this world, at the address that production derives. */
  placeSafe: (owner: Address) => Promise<Address>
}
