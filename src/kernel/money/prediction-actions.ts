/**
 * What a user's key signs for a prediction market, in the gateway's own types. The adapter computes digest and wire
 * format from the action alone, so that custody can check what it signs.
 */

/** The kind of wallet whose money an order spends; the venue derives from it how the signature is checked. */
export type WalletKind = 'eoa' | 'safe' | 'deposit_wallet'

/** The account at the venue: the owner's key signs, and the wallet has the money. */
export type VenueWallet = { kind: WalletKind; owner: string; wallet: string }

export type WalletCall = { to: string; value: bigint; data: string }

export type OutcomeOrderAction = {
  type: 'order'
  /** The venue's name of the contract that settles the order, such as `standard`, `neg_risk` or `v3`. */
  exchange: string
  /** At most 2^53 - 1, because the venue reads it as a JSON number. */
  salt: bigint
  walletKind: WalletKind
  /** The wallet that pays and receives; it signs by its owner's key. */
  wallet: string
  owner: string
  /** Decimal text of up to 78 digits. */
  outcomeId: string
  side: 'buy' | 'sell'
  /** What the order gives at most, and what it takes at least: dollars and shares, each with 6 decimals. */
  makerUnits: bigint
  takerUnits: bigint
  timestampMs: number
  /** 32 bytes each, as 0x and hexadecimal text. */
  metadata: string
  builder: string
}

export type SignInAction = { type: 'sign_in'; owner: string; timestampSeconds: number; nonce: bigint }

/** Calls that the owner's deposit wallet makes, sent by the venue's relayer. */
export type WalletBatchAction = {
  type: 'wallet_batch'
  owner: string
  wallet: string
  nonce: bigint
  deadlineSeconds: number
  calls: WalletCall[]
}

/** Calls that the owner's Safe makes, sent by the venue's relayer. Several are combined through its MultiSend. */
export type SafeBatchAction = {
  type: 'safe_batch'
  owner: string
  safe: string
  nonce: bigint
  calls: WalletCall[]
}

export type RelayedAction = WalletBatchAction | SafeBatchAction
export type PredictionAction = OutcomeOrderAction | SignInAction | RelayedAction

/** Builds the digest from the action alone, and signs exactly that. It is injected into custody. */
export type PredictionCrypto = {
  /** Returns the signature of 65 bytes in the form that the venue expects for this action. */
  sign(secret: Uint8Array, action: PredictionAction): Promise<string>
}
