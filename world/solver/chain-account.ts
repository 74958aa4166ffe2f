import type { Currency } from './chains.ts'
import type { Attempt, Deposit, Payout } from './request.ts'

/** What became of the signed bytes of a payment. */
export type PayoutState =
  | { state: 'pending' }
  | { state: 'mined'; block: number }
  /** It is on the chain and moved nothing. */
  | { state: 'reverted' }
  /** It can never land: its nonce was used, or its blockhash is too old. */
  | { state: 'expired' }

export type Payment = Omit<Payout, 'attempts' | 'isSent'> & { id: string }

/** The solver's account on one chain: what it has, what it received, and how it pays. */
export type ChainAccount = {
  /** Creates the contract for deposits and the first inventory, once. */
  prepare: () => Promise<void>
  /** Tables that a transaction with a deposit may refer to. */
  lookupTables: () => string[]
  balance: (currency: Currency) => Promise<bigint>
  /** Deposits since the last scan, and again those whose block may have changed. */
  scan: () => Promise<Scan>
  /** Ends a scan: its deposits are stored. */
  confirmScan: (scan: Scan) => void
  sign: (payment: Payment) => Promise<Attempt>
  /** False where the payment would move nothing. */
  simulate: (payment: Payment) => Promise<boolean>
  send: (attempt: Attempt) => Promise<void>
  stateOf: (attempt: Attempt) => Promise<PayoutState>
}

export type Scan = {
  deposits: Deposit[]
  head: number
  /** Deposits from this block on that are not listed are not on the chain any more. */
  readFrom: number
  cursor: string
}
