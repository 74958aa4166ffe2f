import { randomBytes } from 'node:crypto'
import { toBase58 } from './base58.ts'
import { type Balances, balancesOf, feeOf, memoOf, resolveKeys, writableKeys } from './effects.ts'
import { writeJson } from './json.ts'
import { sha256 } from './keys.ts'
import type { Ledger } from './ledger.ts'
import { type Outcome, openMachine, type Simulation } from './machine.ts'
import { parseTransaction, type ResolvedKeys, type WireTransaction } from './message.ts'
import { token2022Program, tokenProgram } from './programs.ts'
import { invalidParams, RpcError } from './rpc-error.ts'
import { slots } from './slots.ts'
import { tokenIndex } from './token-index.ts'
import type { Account } from './token-layout.ts'
import { errorSentence, landsInBlock, type TransactionError } from './transaction-error.ts'

export type Chain = ReturnType<typeof openChain>
export type Commitment = 'processed' | 'confirmed' | 'finalized'
export type StoredMeta = Omit<Outcome, 'err'> & {
  fee: bigint
  before: Balances
  after: Balances
  loaded: { writable: string[]; readonly: string[] }
}
type Options = {
  ledger: Ledger
  finalitySlots: number
  seed: (put: (address: string, account: Account) => void) => void
}

const noOutcome = { logs: [], units: 0n, inner: [], returnData: null }

/** A refusal before execution, worded and shaped as a node words a failed preflight. */
const preflightFailure = (
  err: TransactionError,
  { logs, units, inner, returnData }: Omit<Outcome, 'err'>,
): RpcError =>
  new RpcError(-32002, `Transaction simulation failed: ${errorSentence(err)}`, {
    accounts: null,
    err,
    innerInstructions: inner.length === 0 ? null : inner,
    loadedAccountsDataSize: 0,
    logs,
    replacementBlockhash: null,
    returnData,
    unitsConsumed: units,
  })

const alreadyProcessed = (): RpcError =>
  new RpcError(-32002, 'Transaction already processed', {
    accounts: null,
    err: 'AlreadyProcessed',
    innerInstructions: null,
    loadedAccountsDataSize: 0,
    logs: [],
    replacementBlockhash: null,
    returnData: null,
    unitsConsumed: 0,
  })

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

/** The chain: machine, time and ledger moving together. Everything is synchronous, so requests never interleave. */
export const openChain = ({ ledger, finalitySlots, seed }: Options) => {
  const stored = ledger.world()
  const machine = openMachine(stored?.machine)
  const state = stored ?? { seed: randomBytes(32), genesisMs: Date.now(), offsetMs: 0, lastMs: 0 }
  const time = slots(state)
  if (stored === undefined) seed(machine.put)
  const tokens = tokenIndex([tokenProgram, token2022Program].flatMap(machine.ofProgram))
  let dirty = stored === undefined
  let machineSlot = 0

  const catchUp = (): number => {
    const slot = time.current()
    if (slot > machineSlot) machine.setTime(slot, Math.floor(time.nowMs() / 1000), time.recent())
    machineSlot = slot
    return slot
  }

  const save = (): void => {
    time.nowMs()
    ledger.save({ ...state, machine: machine.snapshot() })
    dirty = false
  }

  /** LiteSVM consults no blockhash and no lookup index before us, so both are judged here, in a node's order. */
  const refusal = ({ message }: WireTransaction, keys: ResolvedKeys | undefined): TransactionError | null => {
    if (!time.isBlockhashValid(message.recentBlockhash)) return 'BlockhashNotFound'
    if (keys !== undefined) return null
    const known = message.addressTableLookups.every(({ accountKey }) => machine.get(accountKey) !== undefined)
    return known ? 'InvalidAddressLookupTableIndex' : 'AddressLookupTableNotFound'
  }

  const record = (
    transaction: WireTransaction,
    keys: ResolvedKeys,
    outcome: Outcome,
    slot: number,
    before: Balances,
  ) => {
    const { message, signatures, bytes } = transaction
    for (const key of writableKeys(message, keys)) tokens.note(key, machine.get(key))
    const { err, ...rest } = outcome
    const meta: StoredMeta = {
      ...rest,
      fee: feeOf(message),
      before,
      after: balancesOf(keys.keys, machine.get),
      loaded: { writable: keys.writable, readonly: keys.readonly },
    }
    ledger.append({
      signature: signatures[0] as string,
      slot,
      time: Math.floor(time.nowMs() / 1000),
      err: err === null ? null : writeJson(err),
      wire: bytes,
      meta: writeJson(meta),
      memo: memoOf(message),
      addresses: keys.keys,
    })
    dirty = true
  }

  const depth = { processed: 0, confirmed: Math.min(1, finalitySlots), finalized: finalitySlots }

  return {
    time,
    tokens,
    finalitySlots,
    ledger,
    account: machine.get,
    ofProgram: machine.ofProgram,
    rentExempt: machine.rentExempt,
    /** Differs between worlds, so a client can tell that the chain under it was replaced. */
    genesisHash: toBase58(sha256(state.seed, 'genesis')),
    isDirty: (): boolean => dirty,
    save,
    advance: (advanceMs: number): void => {
      time.advance(advanceMs)
      save()
    },
    slotAt: (commitment: Commitment): number => time.current() - depth[commitment],
    simulate: (
      transaction: WireTransaction,
      options: { sigVerify: boolean; anyBlockhash: boolean },
    ): Simulation => {
      catchUp()
      const keys = resolveKeys(transaction.message, machine.get)
      const err = refusal(transaction, keys)
      if (err !== null && !(options.anyBlockhash && err === 'BlockhashNotFound')) {
        return { ...noOutcome, err, accounts: new Map() }
      }
      if (ledger.find(transaction.signatures[0] as string)) {
        return { ...noOutcome, err: 'AlreadyProcessed', accounts: new Map() }
      }
      return machine.simulate(
        { bytes: transaction.bytes, version: transaction.message.version },
        options.sigVerify,
      )
    },
    /** Answers the signature. Without preflight a transaction that cannot land is dropped in silence, as on a node. */
    send: (bytes: Uint8Array, skipPreflight: boolean): string => {
      const transaction = readTransaction(bytes)
      const signature = transaction.signatures[0] as string
      if (ledger.find(signature)) throw alreadyProcessed()
      const slot = catchUp()
      const keys = resolveKeys(transaction.message, machine.get)
      const err = refusal(transaction, keys)
      if (err !== null || keys === undefined) {
        if (skipPreflight) return signature
        throw preflightFailure(err ?? 'AddressLookupTableNotFound', noOutcome)
      }
      const wire = { bytes, version: transaction.message.version }
      const preflight = machine.simulate(wire, true)
      if (preflight.err === 'SignatureFailure') {
        throw new RpcError(-32003, 'Transaction signature verification failure')
      }
      if (preflight.err !== null && !skipPreflight) throw preflightFailure(preflight.err, preflight)
      if (preflight.err !== null && !landsInBlock(preflight.err)) return signature
      const before = balancesOf(keys.keys, machine.get)
      const outcome = machine.execute(wire)
      record(transaction, keys, outcome, slot, before)
      return signature
    },
  }
}
