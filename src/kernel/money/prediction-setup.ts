import type { RelayedAction, VenueWallet, WalletCall } from './prediction-actions.ts'
import type { RelayRefusal, Unsettled } from './prediction-refusals.ts'
import type { PredictionMarket } from './prediction-views.ts'

/** The setup of an account at a prediction market, its relayer, and the calls that move its money. */

/** Reads the venue's chain; `call` answers all calls by one block, and null for a reverted one. */
export type ChainReader = {
  code(address: string): Promise<string>
  call(calls: { to: string; data: string }[]): Promise<(string | null)[]>
}

/** A step of the venue's own setup, in the order in which it is done. */
export type SetupStep = {
  key: string
  label: string
  protocol: string | null
  /** The permission that the step gives, if it is one. */
  approval: { token: string; spender: string } | null
  isDone: boolean
  /** How the step is done: with a key at the venue, a new wallet, or calls of the wallet. */
  act: { type: 'sign_in' } | { type: 'create_wallet' } | { type: 'wallet_calls'; calls: WalletCall[] }
}

export type RelayReply =
  | { type: 'accepted'; relayId: string }
  | { type: 'rejected'; reason: RelayRefusal; message: string; chainNonce: bigint | null }
  | Unsettled
export type RelayState = {
  relayId: string
  /** `confirmed` says that the venue saw it confirmed: the chain decides. */
  state: 'pending' | 'confirmed' | 'failed'
  venueState: string
  txHash: string | null
  error: string | null
  /** Null for the creation of a wallet. */
  nonce: bigint | null
  /** Null for the creation of a wallet, and where the relayer does not show it. */
  signature: string | null
  /** The text that the gateway sent with the action; null where the relayer does not show it. */
  metadata: string | null
}

/** Actions without gas, through the operator's key at the venue's relayer. One may run at a time per wallet. */
export type VenueRelayer = {
  /** The nonce of the wallet's next action, as the relayer knows it. */
  nonce(wallet: VenueWallet): Promise<bigint>
  createWalletBody(owner: string): string
  /** `metadata` is a text of ours, which the relayer lists with the action. */
  body(action: RelayedAction, signature: string, metadata: string): string
  submit(body: string): Promise<RelayReply>
  state(relayId: string): Promise<RelayState | undefined>
  /** The relayer's latest actions of the owner, newest first: where a lost reply is looked up. */
  recent(owner: string): Promise<RelayState[]>
}

export type Shares = { outcomeId: string; sizeUnits: bigint }
type EventLog = { address: string; topics: readonly string[]; data: string }
/** Calls that move money of the venue; the caller chooses whose wallet makes them. */
export type VenueMoney = {
  chainId: string
  /** The token in which the venue counts cash. */
  cashToken: string
  /** Tokens that wrap into cash one to one, unless the venue has paused one. */
  wrappable: { symbol: string; token: string }[]
  /** `calls` approve the exact amount and wrap it to a wallet. */
  wrapCalls(token: string, units: bigint, to: string): WalletCall[]
  /** The read of whether the venue wraps a token now; not 0 if it has paused it. */
  wrapPausedCall(token: string): { to: string; data: string }
  unwrapCalls(token: string, units: bigint, to: string): WalletCall[]
  /** The read of whether the venue unwraps to a token now; not 0 if it has paused it. */
  unwrapPausedCall(token: string): { to: string; data: string }
  transferCall(to: string, units: bigint): WalletCall
  /** Calls that turn shares of a resolved market into cash of the wallet that makes them. */
  redeemCalls(market: PredictionMarket, shares: Shares[]): WalletCall[]
  /** Calls that turn a pair of both outcomes into cash. */
  mergeCalls(market: PredictionMarket, pairUnits: bigint): WalletCall[]
  /** Moves shares to another wallet of the same owner. */
  transferSharesCall(from: string, to: string, market: PredictionMarket, shares: Shares[]): WalletCall
  /** The shares that left a wallet by the logs of a transaction, whether redeemed or moved. */
  sharesSent(wallet: string, logs: readonly EventLog[]): Shares[]
  /** The read of a wallet's shares on the venue's chain. */
  sharesCall(
    wallet: string,
    market: Pick<PredictionMarket, 'protocol'>,
    outcomeId: string,
  ): { to: string; data: string }
}

export type VenueSetup = {
  /** The steps for these protocols, with what the chain says now; `hasKey` is whether a key is stored. */
  steps(
    wallet: VenueWallet,
    state: { hasKey: boolean; protocols: readonly string[]; reader: ChainReader },
  ): Promise<SetupStep[]>
  /** Calls of a deposit wallet or of a Safe, in the form that its owner signs. */
  walletBatch(wallet: VenueWallet, calls: WalletCall[], nonce: bigint): RelayedAction
  /** The read of the nonce of a wallet's next batch on the venue's chain. */
  nonceCall(wallet: string): { to: string; data: string }
  relayer: VenueRelayer
}
