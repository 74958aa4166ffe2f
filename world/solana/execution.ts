import type { Account } from './account.ts'
import { type Balances, balancesOf, feeOf, memoOf, resolveKeys, writableKeys } from './effects.ts'
import { writeJson } from './json.ts'
import { sha256 } from './keys.ts'
import type { Ledger } from './ledger.ts'
import type { Machine, Outcome, Simulation } from './machine.ts'
import { parseTransaction, type ResolvedKeys, type WireTransaction } from './message.ts'
import { isDurable } from './nonce.ts'
import { invalidParams, RpcError } from './rpc-error.ts'
import { type Slots, slotMs } from './slots.ts'
import type { TokenIndex } from './token-index.ts'
import { errorSentence, landsInBlock, type TransactionError } from './transaction-error.ts'

export type StoredMeta = Omit<Outcome, 'err'> & {
  fee: bigint
  before: Balances
  after: Balances
  loaded: { writable: string[]; readonly: string[] }
}
/** The notification of a transaction to subscribers. */
export type LandedTransaction = {
  signature: string
  slot: number
  err: TransactionError | null
  logs: string[]
  keys: string[]
  writable: string[]
}
type ExecutionDeps = {
  machine: Machine
  time: Slots
  ledger: Ledger
  tokens: TokenIndex
  onLanded: (landed: LandedTransaction) => void
  /** Called with each transaction in a block before subscribers, with a time within its slot. */
  executed: (wire: Uint8Array, atMs: number) => void
  /** Receives the accounts from before a transaction of that slot. */
  beforeWrite: (slot: number, accounts: (readonly [string, Account | undefined])[]) => void
}
type Executed = {
  transaction: WireTransaction
  keys: ResolvedKeys
  outcome: Outcome
  slot: number
  before: Balances
}
type SimulateOptions = { sigVerify: boolean; anyBlockhash: boolean }

const noOutcome = { logs: [], units: 0n, inner: [], returnData: null }

/** A rejection before execution, in the form of a node's failed preflight. */
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

const signatureFailure = (): RpcError => new RpcError(-32003, 'Transaction signature verification failure')

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

const balances = ({ machine, tokens }: ExecutionDeps, { keys }: ResolvedKeys): Balances =>
  balancesOf(keys, { lamports: machine.lamports, isTokenAccount: tokens.has, account: machine.get })

/** Stores the effects of a transaction. */
const storeTransaction = (
  deps: ExecutionDeps,
  { transaction, keys, outcome, slot, before }: Executed,
): void => {
  const { message, signatures, bytes } = transaction
  const writable = writableKeys(message, keys)
  for (const key of writable) deps.tokens.note(key, deps.machine.get(key))
  const { err, ...rest } = outcome
  const loaded = { writable: keys.writable, readonly: keys.readonly }
  const meta: StoredMeta = { ...rest, fee: feeOf(message), before, after: balances(deps, keys), loaded }
  deps.ledger.append({
    signature: signatures[0] as string,
    digest: digestOf(transaction),
    slot,
    time: Math.floor(deps.time.nowMs() / 1000),
    err: err === null ? null : writeJson(err),
    wire: bytes,
    meta: writeJson(meta),
    memo: memoOf(message),
    addresses: keys.keys,
  })
  deps.executed(bytes, Math.min(deps.time.nowMs(), deps.time.msOf(slot) + slotMs - 1))
  deps.onLanded({
    signature: signatures[0] as string,
    slot,
    err,
    logs: outcome.logs,
    keys: keys.keys,
    writable,
  })
}

/** Runs transactions on the machine, with the checks that LiteSVM leaves to its embedder. */
export const createExecutor = (deps: ExecutionDeps) => {
  const { machine, time, ledger } = deps
  let machineSlot = 0

  const advanceMachine = (): number => {
    const slot = time.current()
    if (slot > machineSlot) machine.setTime(slot, Math.floor(time.nowMs() / 1000), time.recent())
    machineSlot = slot
    return slot
  }

  const wasProcessed = (transaction: WireTransaction): boolean =>
    ledger.wasProcessed(transaction.signatures[0] as string, digestOf(transaction))

  /** The errors that a node finds before execution, in its order. */
  const preflightError = (
    transaction: WireTransaction,
    { anyBlockhash }: { anyBlockhash: boolean },
  ): TransactionError | null => {
    const { recentBlockhash, addressTableLookups } = transaction.message
    if (wasProcessed(transaction)) return 'AlreadyProcessed'
    const isFresh = anyBlockhash || time.isBlockhashValid(recentBlockhash)
    if (!isFresh && !isDurable(transaction.message, machine.get)) return 'BlockhashNotFound'
    if (resolveKeys(transaction.message, machine.get) !== undefined) return null
    const tablesExist = addressTableLookups.every(({ accountKey }) => machine.get(accountKey) !== undefined)
    return tablesExist ? 'InvalidAddressLookupTableIndex' : 'AddressLookupTableNotFound'
  }

  const simulate = (
    transaction: WireTransaction,
    { sigVerify, anyBlockhash }: SimulateOptions,
  ): Simulation => {
    advanceMachine()
    const err = preflightError(transaction, { anyBlockhash })
    if (err !== null) return { ...noOutcome, err, accounts: () => new Map() }
    return machine.simulate(
      { bytes: transaction.bytes, version: transaction.message.version },
      { checkSignatures: sigVerify },
    )
  }

  const run = (transaction: WireTransaction): void => {
    const slot = advanceMachine()
    const keys = resolveKeys(transaction.message, machine.get)
    if (keys === undefined) return
    const before = balances(deps, keys)
    const written = writableKeys(transaction.message, keys).map((key) => [key, machine.get(key)] as const)
    const outcome = machine.execute({ bytes: transaction.bytes, version: transaction.message.version })
    if (outcome.err === 'SignatureFailure') throw signatureFailure()
    if (outcome.err !== null && !landsInBlock(outcome.err)) return
    deps.beforeWrite(slot, written)
    storeTransaction(deps, { transaction, keys, outcome, slot, before })
  }

  /** Returns the signature. Without preflight a transaction that cannot land is dropped silently, as on a node. */
  const send = (bytes: Uint8Array, { skipPreflight }: { skipPreflight: boolean }): string => {
    const transaction = readTransaction(bytes)
    const signature = transaction.signatures[0] as string
    // The first check, over all history: LiteSVM's own history is bounded, and beyond it an old transaction would run
    // again.
    if (wasProcessed(transaction)) {
      // Without preflight a node accepts the bytes again and drops them.
      if (skipPreflight && ledger.find(signature)) return signature
      throw preflightFailure('AlreadyProcessed', noOutcome, 'Transaction already processed')
    }
    if (!skipPreflight) {
      const preflight = simulate(transaction, { sigVerify: true, anyBlockhash: false })
      if (preflight.err === 'SignatureFailure') throw signatureFailure()
      if (preflight.err !== null) throw preflightFailure(preflight.err, preflight)
    }
    if (preflightError(transaction, { anyBlockhash: false }) === null) run(transaction)
    return signature
  }

  /** Runs a transaction that an earlier process acknowledged as being in a block. */
  const replay = (bytes: Uint8Array): void => {
    const transaction = readTransaction(bytes)
    if (!wasProcessed(transaction)) run(transaction)
  }

  return { simulate, send, replay }
}
