import { sha256 } from '#kernel/id.ts'
import type { PredictionAction } from '#kernel/money/prediction-actions.ts'
import type { VenueAction } from '#kernel/money/venue-actions.ts'
import { canonicalJson, type JsonObject } from '#kernel/wire/json.ts'
import { type Action, type PlannedAction, type PolicyGrant, transferOperation } from './policy-action.ts'
import type { Tx } from './task.ts'

export type { Action, PlannedAction, PolicyGrant }
export { transferOperation }

/** Types that custody, policy and chains share. A key never leaves custody; nothing is signed without a receipt. */

export type EvmCall = { to: string; value: bigint; data: string }
/** A batch that the user's own account executes once. The nonce is the delegate's (192-bit key, 64-bit sequence). */
export type EvmBatch = {
  chainId: string
  account: string
  delegate: string
  calls: EvmCall[]
  nonce: bigint
  deadlineSeconds: number
  /** The only sender that may submit the batch; if it spends the nonce otherwise, the batch is dead. */
  executor?: string
}
/** The delegation of an account to the delegate's code (EIP-7702). `nonce` is the account's transaction count. */
export type Delegation = { chainId: string; delegate: string; nonce: number }
export type SignedDelegation = {
  chainId: number
  address: string
  nonce: number
  r: string
  s: string
  yParity: number
}

/** An amount that leaves the user's wallet, and the contract that may take it. */
export type TokenSpend = { token: string; amountUnits: bigint; spender: string }

export type EvmIntent = Action & {
  type: 'evm_batch'
  spends: TokenSpend[]
  batch: EvmBatch
  delegation: Delegation | null
}

export type VenueIntent = Action & {
  type: 'venue_action'
  venue: string
  /** The user's own wallet, which is the account at the venue. */
  account: string
  /** The signing address: an agent of the account, or the account itself. */
  signer: string
  action: VenueAction
  nonce: bigint
  /** The venue rejects the action after this time, so it cannot happen later; null if the action has no expiry. */
  expiresAtMs: number | null
}

/** One instruction of a Solana transaction; `data` is hexadecimal text. */
export type SvmInstruction = {
  programId: string
  accounts: { address: string; isSigner: boolean; isWritable: boolean }[]
  data: string
}

/** A deposit at Relay's program. Its accounts are named in full, so that each can be checked. */
export type SvmDeposit = {
  program: string
  state: string
  sender: string
  /** The account that the deposit counts for, and to which a refund goes. */
  depositor: string
  vault: string
  /** The token's mint, program and accounts; null for SOL. */
  token: { mint: string; tokenProgram: string; source: string; vaultAccount: string } | null
  amountUnits: bigint
  /** The id of the deposit: 32 bytes, as 0x and hexadecimal text. */
  depositId: string
}

/** An amount that leaves the user's wallet on Solana; `to` is the receiving wallet or token account. */
export type SvmSpend = { token: string; amountUnits: bigint; to: string }

export type SvmIntent = Action & {
  type: 'svm_transaction'
  account: string
  /** The account that pays the fee and the rent of new token accounts. */
  feePayer: string
  spends: SvmSpend[]
  /** The complete message that is signed, in base64. */
  message: string
  /** No block above this height can include the message. */
  lastValidBlockHeight: bigint
}

/** What is signed for a prediction market. A wallet is created by its venue without a signature of the owner. */
export type PredictionIntent = Action & {
  type: 'prediction_action'
  venue: string
  /** The user's own wallet, whose key signs. */
  account: string
  action: PredictionAction | { type: 'create_wallet'; owner: string }
}

export type SigningIntent = EvmIntent | SvmIntent | VenueIntent | PredictionIntent

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
  /**
   * Evaluates an action by reads alone, and throws a Fault before a task exists. The accepting statement compares
   * and counts the grant.
   */
  check(action: PlannedAction): Promise<PolicyGrant>
  /** Reads what `check` reads, for tasks that sign before or while they are accepted. It takes no lock. */
  authorizeOnAccept(userId: string, chainId: string): Promise<AuthorizeOnAccept>
  /** Checks every rule again in the signing transaction, and issues the receipt. */
  authorize(tx: Tx, intent: SigningIntent): Promise<PolicyReceipt>
  /**
   * Lets the task sign the same amount again: in the transaction that drops a signature which can never be used, or
   * before the task moves what the signature has delivered.
   */
  release(tx: Tx, released: ReleasedSignature): Promise<void>
}
/** A signature that is released; `intent` is the intent as it was stored with the effect. */
export type ReleasedSignature = { userId: string; taskId: string; intent: JsonObject }

/**
 * Issues the receipt of an intent. The accepting statement counts the grant; `check` evaluates the same intent by
 * the present limits.
 */
export type AuthorizeOnAccept = (intent: SigningIntent) => {
  receipt: PolicyReceipt
  grant: PolicyGrant
  check(): Promise<PolicyGrant>
}

export type SignedBatch = { signature: string; delegation: SignedDelegation | null }
export type Signer = { signBatch(intent: EvmIntent, receipt: PolicyReceipt): Promise<SignedBatch> }

export type SvmSigner = {
  signMessage(intent: SvmIntent, receipt: PolicyReceipt): Promise<Uint8Array>
}

export type VenueSigner = {
  /** Starts reading the sealed keys, in parallel with other work; nothing is decrypted before `sign`. */
  venueKeys(whose: { userId: string; venue: string; byAgent: boolean }): VenueKeys
}
export type VenueKeys = { sign(intent: VenueIntent, receipt: PolicyReceipt): Promise<string> }

export type PredictionSigner = {
  signPrediction(intent: PredictionIntent, receipt: PolicyReceipt): Promise<string>
}

/** A call that custody can decode; unknown selectors are refused. */
export type DecodedCall =
  | { name: 'approve'; token: string; spender: string; amountUnits: bigint }
  | { name: 'transfer'; token: string; to: string; amountUnits: bigint }
  | { name: 'deposit'; vault: string; assetsUnits: bigint; receiver: string }
  | { name: 'withdraw'; vault: string; assetsUnits: bigint; receiver: string; owner: string }
  | { name: 'redeem'; vault: string; sharesUnits: bigint; receiver: string; owner: string }
  | SwapCall
  | PaymentCall
  | OutcomeCall
  /** A transfer of native coins without call data. */
  | { name: 'send'; to: string; amountUnits: bigint }

/** Calls of a swap. A null token is the native coin; its amount in is the value of the call. */
export type SwapCall =
  | {
      name: 'swap'
      router: string
      tokenIn: string | null
      tokenOut: string | null
      path: readonly string[]
      amountInUnits: bigint
      amountOutMinUnits: bigint
      recipient: string
    }
  | { name: 'wrap' | 'unwrap'; wrapped: string; amountUnits: bigint }
  | {
      name: 'bridge'
      depository: string
      depositor: string
      token: string | null
      amountUnits: bigint
      requestId: string
      /** The payment on the other chain, if the call itself names it. */
      arrival?: { chainId: string; token: string; recipient: string; amountMinUnits: bigint }
    }
  /** A swap whose contract chooses the path, and guarantees the minimum to the recipient. */
  | {
      name: 'aggregate'
      contract: string
      tokenIn: string | null
      tokenOut: string | null
      amountInUnits: bigint
      amountOutMinUnits: bigint
      recipient: string
      requestId: string
    }
  /** A swap by calls that custody does not decode; the router pays the minimum to the recipient, or reverts. */
  | {
      name: 'multicall'
      /** The called contract: the router itself for the native coin, or the contract that takes a token. */
      contract: string
      router: string
      tokenIn: string | null
      tokenOut: string | null
      amountInUnits: bigint
      amountOutMinUnits: bigint
      recipient: string
      refundTo: string
    }

/** Calls at the contracts of a prediction market. */
export type OutcomeCall =
  /** Turns a dollar token into the cash of the venue, or back, one to one. */
  | { name: 'wrap_cash' | 'unwrap_cash'; ramp: string; token: string; to: string; amountUnits: bigint }
  /** Lets a contract move the outcome shares of the caller. */
  | { name: 'approve_shares'; token: string; operator: string; isApproved: boolean }
  /** Moves shares of any outcomes from the caller to another wallet. */
  | { name: 'move_shares'; token: string; from: string; to: string }
  /** Turns shares of a resolved market into cash of the caller. */
  | { name: 'redeem_shares'; contract: string }

/** A payment in the native coin for the task that it names; `valueUnits` is the value of the call. */
export type PaymentCall = { name: 'pay'; till: string; taskId: string; valueUnits: bigint }

/** The cryptography of a foreign chain. The chain's adapter implements it, and it is injected into custody. */
export type EvmCrypto = {
  addressOf(secret: Uint8Array): string
  signBatch(secret: Uint8Array, batch: EvmBatch): Promise<string>
  signDelegation(secret: Uint8Array, delegation: Delegation): Promise<SignedDelegation>
  decodeCall(call: EvmCall): DecodedCall | undefined
}
/** Builds the wire format from the intent alone, and signs exactly that. It is injected into custody. */
export type VenueCrypto = {
  /** Loads the signing code, so that the first signature does not wait for it. */
  load(): Promise<void>
  sign(secret: Uint8Array, intent: VenueIntent): Promise<string>
}
/** A null address comes from a lookup table, whose content the message does not have. */
export type SvmMessageAccount = { address: string | null; isSigner: boolean; isWritable: boolean }
export type DecodedMessage = {
  feePayer: string
  /** The signers in the order of their signatures; the fee payer is the first. */
  signers: string[]
  staticAddresses: string[]
  blockhash: string
  lookups: { table: string; writable: number[]; readonly: number[] }[]
  instructions: { programId: string; accounts: SvmMessageAccount[]; data: Uint8Array }[]
}

/** An instruction that custody can decode. Every account by which custody checks it is in the message itself. */
export type DecodedInstruction =
  | { name: 'transfer_lamports'; from: string; to: string; lamports: bigint }
  | {
      name: 'transfer_tokens'
      tokenProgram: string
      source: string
      mint: string
      to: string
      authority: string
      amountUnits: bigint
    }
  | {
      name: 'create_token_account'
      payer: string
      account: string
      owner: string
      mint: string
      tokenProgram: string
    }
  | { name: 'close_token_account'; account: string; to: string; owner: string }
  /** `reference` is an account that the program ignores, by which the transaction is found. */
  | { name: 'compute_limit'; units: bigint; reference?: string }
  | { name: 'compute_price'; microLamports: bigint }
  | { name: 'memo'; signers: string[]; text: string }
  | ({ name: 'bridge' } & SvmDeposit)

export type SvmCrypto = {
  addressOf(secret: Uint8Array): Promise<string>
  signBytes(secret: Uint8Array, message: Uint8Array): Promise<Uint8Array>
}
/** Decodes the Solana messages that a key signs. It is injected into custody. */
export type SvmDecoder = {
  /** Decodes a message; returns undefined if the bytes do not have the one form that the gateway makes. */
  decodeMessage(message: Uint8Array): DecodedMessage | undefined
  /** Decodes an instruction; returns undefined for an instruction that custody does not know. */
  decodeInstruction(instruction: DecodedMessage['instructions'][number]): DecodedInstruction | undefined
  tokenAccountOf(owner: string, mint: string, tokenProgram: string): string
}
