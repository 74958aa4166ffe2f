import { type Balances, balancesOf, feeOf, memoOf, resolveKeys, writableKeys } from './effects.ts'
import { writeJson } from './json.ts'
import { sha256 } from './keys.ts'
import type { Ledger } from './ledger.ts'
import type { Machine, Outcome, Simulation } from './machine.ts'
import { parseTransaction, type ResolvedKeys, type WireTransaction } from './message.ts'
import { invalidParams, RpcError } from './rpc-error.ts'
import type { Slots } from './slots.ts'
import type { TokenIndex } from './token-index.ts'
import type { Account } from './token-layout.ts'
import { errorSentence, landsInBlock, type TransactionError } from './transaction-error.ts'

export type StoredMeta = Omit<Outcome, 'err'> & {
  fee: bigint
  before: Balances
  after: Balances
  loaded: { writable: string[]; readonly: string[] }
}
type Parts = { machine: Machine; time: Slots; ledger: Ledger; tokens: TokenIndex }
type Executed = {
  transaction: WireTransaction
  keys: ResolvedKeys
  outcome: Outcome
  slot: number
  before: Balances
}
type Accounts = Map<string, Account | undefined>
type SimulateOptions = { sigVerify: boolean; anyBlockhash: boolean }

const noOutcome = { logs: [], units: 0n, inner: [], returnData: null }

/** A refusal before execution, shaped as a node's failed preflight. */
const preflightFailure = (
  err: TransactionError,
  { logs, units, inner, returnData }: Omit<Outcome, 'err'> = noOutcome,
  message = `Transaction simulation failed: ${errorSentence(err)}`,
): RpcError =>
  new RpcError(-32002, message, {
    accounts: null,
    err,
    innerInstructions: inner.length === 0 ? null : inner,
    loadedAccountsDataSize: 0,
    logs,
    replacementBlockhash: null,
    returnData,
    unitsConsumed: units,
  })

const digestOf = ({ messageBytes }: WireTransaction): Uint8Array => sha256(messageBytes)

export const readTransaction = (bytes: Uint8Array): WireTransaction => {
  try {
    return parseTransaction(bytes)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw invalidParams(
      `failed to deserialize solana_transaction::versioned::VersionedTransaction: ${cause.message}`,
    )
  }
}

/** Writes down what a transaction did; `seen` holds its accounts as they were before. */
const record = ({ machine, time, ledger, tokens }: Parts, executed: Executed, seen: Accounts): void => {
  const { transaction, keys, outcome, slot, before } = executed
  const { message, signatures, bytes } = transaction
  // What the transaction could not write is as it was, so only the rest is read again.
  for (const key of writableKeys(message, keys)) {
    seen.set(key, machine.get(key))
    tokens.note(key, seen.get(key))
  }
  const { err, ...rest } = outcome
  const meta: StoredMeta = {
    ...rest,
    fee: feeOf(message),
    before,
    after: balancesOf(keys.keys, (key) => (seen.has(key) ? seen.get(key) : machine.get(key))),
    loaded: { writable: keys.writable, readonly: keys.readonly },
  }
  ledger.append({
    signature: signatures[0] as string,
    digest: digestOf(transaction),
    slot,
    time: Math.floor(time.nowMs() / 1000),
    err: err === null ? null : writeJson(err),
    wire: bytes,
    meta: writeJson(meta),
    memo: memoOf(message),
    addresses: keys.keys,
  })
}

/** Runs transactions against the machine, with the checks that LiteSVM leaves to its embedder. */
export const execution = (parts: Parts) => {
  const { machine, time, ledger } = parts
  let machineSlot = 0

  const catchUp = (): number => {
    const slot = time.current()
    if (slot > machineSlot) machine.setTime(slot, Math.floor(time.nowMs() / 1000), time.recent())
    machineSlot = slot
    return slot
  }

  const wasProcessed = (transaction: WireTransaction): boolean =>
    ledger.wasProcessed(transaction.signatures[0] as string, digestOf(transaction))

  const tableError = ({ message }: WireTransaction): TransactionError =>
    message.addressTableLookups.every(({ accountKey }) => machine.get(accountKey) !== undefined)
      ? 'InvalidAddressLookupTableIndex'
      : 'AddressLookupTableNotFound'

  const simulate = (
    transaction: WireTransaction,
    { sigVerify, anyBlockhash }: SimulateOptions,
  ): Simulation => {
    catchUp()
    const { message, bytes } = transaction
    const failed = (err: TransactionError): Simulation => ({ ...noOutcome, err, accounts: new Map() })
    if (wasProcessed(transaction)) return failed('AlreadyProcessed')
    if (!anyBlockhash && !time.isBlockhashValid(message.recentBlockhash)) return failed('BlockhashNotFound')
    if (resolveKeys(message, machine.get) === undefined) return failed(tableError(transaction))
    return machine.simulate({ bytes, version: message.version }, sigVerify)
  }

  /** Answers the signature. Without preflight a transaction that cannot land is dropped in silence, as on a node. */
  const send = (bytes: Uint8Array, skipPreflight: boolean): string => {
    const transaction = readTransaction(bytes)
    const signature = transaction.signatures[0] as string
    // First of all and for ever: LiteSVM's own history forgets, and then it runs an old transaction again.
    if (wasProcessed(transaction)) {
      throw preflightFailure('AlreadyProcessed', noOutcome, 'Transaction already processed')
    }
    const slot = catchUp()
    const keys = resolveKeys(transaction.message, machine.get)
    const preflight = simulate(transaction, { sigVerify: true, anyBlockhash: false })
    if (preflight.err === 'SignatureFailure') {
      throw new RpcError(-32003, 'Transaction signature verification failure')
    }
    if (preflight.err !== null && !skipPreflight) throw preflightFailure(preflight.err, preflight)
    if (keys === undefined || (preflight.err !== null && !landsInBlock(preflight.err))) return signature
    const seen: Accounts = new Map(keys.keys.map((key) => [key, machine.get(key)]))
    const before = balancesOf(keys.keys, (key) => (seen.has(key) ? seen.get(key) : machine.get(key)))
    const outcome = machine.execute({ bytes, version: transaction.message.version })
    record(parts, { transaction, keys, outcome, slot, before }, seen)
    return signature
  }

  return { simulate, send }
}
