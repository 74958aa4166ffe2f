import { sha256 } from './id.ts'
import { canonicalJson } from './json.ts'
import type { Tx } from './task.ts'
import type { VenueAction } from './venue.ts'

/** What custody, policy and the chains say to each other. A key never leaves custody; nothing signs without a receipt. */

export type EvmCall = { to: string; value: bigint; data: string }
/** The batch that the user's own account executes once: nonce is the delegate's (192-bit key, 64-bit sequence). */
export type EvmBatch = {
  chainId: string
  account: string
  delegate: string
  calls: EvmCall[]
  nonce: bigint
  deadlineSeconds: number
  /** The only sender that may carry the batch: once its lane's nonce is spent otherwise, the batch is dead. Absent: anyone. */
  executor?: string
}
/** Absent where the account runs the delegate already. `nonce` is the account's transaction count. */
export type Delegation = { chainId: string; delegate: string; nonce: number }
export type SignedDelegation = {
  chainId: number
  address: string
  nonce: number
  r: string
  s: string
  yParity: number
}

/** What leaves the user's wallet: who may take it, and where it lands. */
export type Spend = { token: string; amountUnits: bigint; spender: string }

/** An action on money in the words of the policy. `usdMicros` is what counts against the caps; 0n for a way back in. */
export type Action = {
  userId: string
  taskId: string
  operation: string
  chainId: string
  tokens: string[]
  recipients: string[]
  usdMicros: bigint
  /** Exits stay open under a kill switch and against spent caps: they bring the user's money home. */
  exit: boolean
}
export type EvmIntent = Action & {
  type: 'evm_batch'
  spends: Spend[]
  batch: EvmBatch
  delegation: Delegation | null
}

export type VenueIntent = Action & {
  type: 'venue_action'
  venue: string
  /** The user's own wallet, which is the account at the venue. */
  account: string
  /** Whose key signs: an agent of the account, or the account itself. */
  signer: string
  action: VenueAction
  nonce: bigint
  /** After this the venue refuses the action, which proves that it can never happen; null where it knows no such end. */
  expiresAtMs: number | null
}

/** Everything that custody signs. */
export type SigningIntent = EvmIntent | VenueIntent

export const intentHash = (intent: SigningIntent): string => sha256(canonicalJson(intent))

declare const receiptBrand: unique symbol
/** Proof that the policy allowed exactly this intent. Only the policy can make one. */
export type PolicyReceipt = {
  readonly [receiptBrand]: true
  readonly id: string
  readonly userId: string
  readonly taskId: string
  readonly intentHash: string
  readonly expiresAt: Date
}

export type Policy = {
  /** Reads only; throws a Fault before a task exists. */
  check(action: Omit<Action, 'taskId'>): Promise<void>
  /** In the accepting transaction: counts the amount against the caps under the user's row lock. */
  reserve(tx: Tx, action: Action): Promise<void>
  /** Both at once, where the promise and its first signature are one transaction: takes the lock and reads. */
  authorizeOnAccept(tx: Tx, userId: string, chainId: string): Promise<AuthorizeOnAccept>
  /** In the intent's transaction: asks everything again and hands out the receipt. */
  authorize(tx: Tx, intent: SigningIntent): Promise<PolicyReceipt>
  /** Nothing moved after all: the reserved amount counts no more. */
  release(tx: Tx, taskId: string): Promise<void>
}

/** Judges an intent; `write` books it in the same transaction. */
export type AuthorizeOnAccept = (intent: SigningIntent) => { receipt: PolicyReceipt; write(): Promise<void> }

export type SignedBatch = { signature: string; delegation: SignedDelegation | null }
export type Signer = { signBatch(intent: EvmIntent, receipt: PolicyReceipt): Promise<SignedBatch> }

export type VenueSigner = {
  /** Fetches the sealed keys from here on, beside whatever else is asked; nothing is opened before `sign`. */
  venueKeys(whose: { userId: string; venue: string; byAgent: boolean }): VenueKeys
}
export type VenueKeys = { sign(intent: VenueIntent, receipt: PolicyReceipt): Promise<string> }

/** A call as custody understands it; undefined selectors are refused. */
export type DecodedCall =
  | { name: 'approve'; token: string; spender: string; amountUnits: bigint }
  | { name: 'transfer'; token: string; to: string; amountUnits: bigint }
  | { name: 'deposit'; vault: string; assetsUnits: bigint; receiver: string }
  | { name: 'withdraw'; vault: string; assetsUnits: bigint; receiver: string; owner: string }
  | { name: 'redeem'; vault: string; sharesUnits: bigint; receiver: string; owner: string }

/** The mathematics of a foreign chain, with a key in hand. Lives with the chain's adapter and is lent to custody. */
export type EvmCrypto = {
  addressOf(secret: Uint8Array): string
  signBatch(secret: Uint8Array, batch: EvmBatch): Promise<string>
  signDelegation(secret: Uint8Array, delegation: Delegation): Promise<SignedDelegation>
  decodeCall(call: EvmCall): DecodedCall | undefined
}
/** Lent to custody: builds what goes over the wire from the intent alone, and signs exactly that. */
export type VenueCrypto = {
  addressOf(secret: Uint8Array): string
  /** The whole body as it is stored and sent. */
  sign(secret: Uint8Array, intent: VenueIntent): Promise<string>
}
export type SvmCrypto = {
  addressOf(secret: Uint8Array): Promise<string>
  signBytes(secret: Uint8Array, message: Uint8Array): Promise<Uint8Array>
}
