import type { Address, Hex } from './addresses.ts'

/**
 * What the servers of the prediction market use of its chain. The functions are in the file named with each type.
 * Amounts are units of six decimals: of pUSD and of shares alike.
 */

export type { Address, Hex } from './addresses.ts'

/** `v1`: conditional tokens; `v2`: the position manager. */
export type Protocol = 'v1' | 'v2'

/** ids.ts: a market with two outcomes, as the chain knows it. */
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

/** ids.ts: markets of which one alone can resolve to YES; they are prepared together. */
export type ChainEvent = {
  protocol: Protocol
  /** `negRiskMarketID` of v1 (32 bytes); 29 bytes in v2. */
  eventId: Hex
  /** What the id was made of. */
  metadata: Hex
  markets: readonly ChainMarket[]
}

/**
 * ids.ts
 * @example standardMarket(questionId), negRiskEvent(metadata, 3), binaryMarketV2(data), negRiskEventV2(data, 3)
 */
export type IdFunctions = {
  /** v1 over USDC.e. Its oracle is the world's resolver. */
  standardMarket: (questionId: Hex) => ChainMarket
  /** v1 over the wrapped collateral; `metadata` is any bytes, 1 to 255 markets. */
  negRiskEvent: (metadata: Hex, markets: number) => ChainEvent
  binaryMarketV2: (data: Hex) => ChainMarket
  negRiskEventV2: (data: Hex, markets: number) => ChainEvent
  /** By bits 40 to 103, which are zero in v2. */
  protocolOf: (outcomeId: bigint) => Protocol
  conditionIdOf: (oracle: Address, questionId: Hex, outcomes?: number) => Hex
  collectionIdOf: (conditionId: Hex, indexSet: bigint) => Hex
  positionIdOf: (collateral: Address, collectionId: Hex) => bigint
  /** The deposit wallet of an owner, deployed or not (beacon form). */
  walletOf: (owner: Address) => Address
  /** The form of earlier wallets, which this world never deploys. */
  earlierWalletOf: (owner: Address) => Address
  safeOf: (owner: Address) => Address
}

/** orders.ts */
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

export type OrderFunctions = {
  exchangeOf: (market: Pick<ChainMarket, 'protocol' | 'isNegRisk'>) => ExchangeName
  /** The EIP-712 hash under the exchange's domain (version 2, or 3 for `exchangeV3`): the order's id. */
  orderHash: (order: Order, exchange: ExchangeName) => Hex
  /** Without the chain: also for wallets that are not deployed yet. */
  verifyOrder: (order: SignedOrder, exchange: ExchangeName) => OrderVerdict
}

/** wallets.ts: what the relayer checks before it sends. */
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
export type WalletFunctions = {
  /** The signer of a batch; undefined when the signature is malformed. */
  recoverBatch: (batch: WalletBatch, signature: Hex) => Address | undefined
  /** The signer of a Safe's transaction, also where the hash was signed as a message (v above 30). */
  recoverSafeTransaction: (transaction: SafeTransaction, signature: Hex) => Address | undefined
  /** The calls inside `multiSend(bytes)`; undefined for other data. */
  multiSendCalls: (data: Hex) => WalletCall[] | undefined
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

/** calls.ts: every call, without sending it. The account that must send it is named. */
export type CallFunctions = {
  /** `operator` */
  settleCall: (settlement: Settlement) => Call
  /** `resolver`: one call for any number of markets and events, at most `preparedMax`. */
  prepareCall: (markets: readonly (ChainMarket | ChainEvent)[]) => Call
  /** `resolver`: YES, NO, or half each, which markets of an event do not have. */
  reportCall: (market: ChainMarket, outcome: 'yes' | 'no' | 'void') => Call
  /** `operator`: anyone may deploy a wallet. */
  deployWalletCall: (owner: Address) => Call
  /** `operator` */
  executeBatchCall: (batch: WalletBatch, signature: Hex) => Call
  executeSafeCall: (transaction: SafeTransaction, signature: Hex) => Call
  /** `autoRedeemer`: redeems what the owner holds of the market; needs its approval. */
  autoRedeemCall: (owner: Address, market: ChainMarket) => Call
  /** By the holder, also inside a batch. */
  splitCall: (market: ChainMarket, amount: bigint) => Call
  mergeCall: (market: ChainMarket, amount: bigint) => Call
  /** v1 redeems all; v2 `amounts` of YES and NO, as one call for each that is not zero. */
  redeemCalls: (market: ChainMarket, amounts: readonly [bigint, bigint]) => Call[]
  wrapCall: (asset: Address, to: Address, amount: bigint) => Call
  unwrapCall: (asset: Address, to: Address, amount: bigint) => Call
  /** `admin` */
  pauseRampCall: (ramp: 'onramp' | 'offramp', asset: Address, state: 'open' | 'paused') => Call
  /** The 7 + 8 approvals that trading needs, in the order of the official client. */
  approvalCalls: () => Call[]
}

/** accounts.ts: whose keys derive from public labels; worth nothing outside of the world. */
export type AccountName = 'operator' | 'relayer' | 'resolver' | 'autoRedeemer' | 'admin' | 'maker'

export type AccountFunctions = {
  addressOf: (name: AccountName) => Address
  /** 65 bytes r, s, v of 27 or 28: of an order's hash, for the house maker. */
  signHash: (name: AccountName, hash: Hex) => Hex
}

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
  | { state: 'mined'; receipt: Receipt; confirmations: number }

/**
 * sender.ts: `createSender(rpc)`. One account is one sequence of nonces: calls of one account that are signed at once
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

/** reads.ts: `createReads(rpc)`. */
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
  /** Of the order's `makerAmount`, in its units. */
  filled: (exchange: ExchangeName, orderHash: Hex) => Promise<bigint>
  isSettled: (exchange: ExchangeName, key: Hex) => Promise<boolean>
  isDeployed: (address: Address) => Promise<boolean>
  walletNonce: (wallet: Address) => Promise<bigint>
  safeNonce: (safe: Address) => Promise<bigint>
  isRampPaused: (ramp: 'onramp' | 'offramp', asset: Address) => Promise<boolean>
  backing: () => Promise<Backing>
}

/** world-money.ts: by the node's own powers, for seeds and the control port. */
export type WorldMoney = {
  /** USDC or USDC.e out of nothing. */
  mintDollars: (asset: 'usdc' | 'usdce', to: Address, amount: bigint) => Promise<void>
  /** Mints USDC.e and wraps it. */
  mintPusd: (to: Address, amount: bigint) => Promise<void>
  /** A legacy Safe with the code of this world, at the address that production derives. */
  placeSafe: (owner: Address) => Promise<Address>
}
