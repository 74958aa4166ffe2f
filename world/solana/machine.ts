import {
  Clock,
  FailedTransactionMetadata,
  LiteSvm,
  Account as RawAccount,
  type TransactionMetadata,
} from 'litesvm/dist/internal.js'
import type { Account } from './account.ts'
import { toBase58 } from './base58.ts'
import { addressBytes } from './keys.ts'
import { invalidParams } from './rpc-error.ts'
import { epochOf } from './slots.ts'
import { type TransactionError, transactionError } from './transaction-error.ts'

export type InnerInstruction = {
  programIdIndex: number
  accounts: number[]
  data: string
  stackHeight: number
}
export type Outcome = {
  err: TransactionError | null
  logs: string[]
  units: bigint
  inner: { index: number; instructions: InnerInstruction[] }[]
  returnData: { programId: string; data: [string, 'base64'] } | null
}
/** The accounts after execution, copied only on request. */
export type Simulation = Outcome & { accounts: () => Map<string, Account> }
type Wire = { bytes: Uint8Array; version: 'legacy' | 0 }

export type Machine = ReturnType<typeof openMachine>

const neverRentBilled = 18_446_744_073_709_551_615n

/** Data is copied out of the machine only when read: most accounts of a transaction are whole programs. */
const accountOf = (raw: RawAccount): Account => {
  let data: Uint8Array | undefined
  return {
    lamports: raw.lamports(),
    owner: toBase58(raw.owner()),
    executable: raw.executable(),
    get data() {
      data ??= raw.data()
      return data
    },
  }
}

const toOutcome = (meta: TransactionMetadata, err: TransactionError | null): Outcome => {
  const returned = meta.returnData()
  return {
    err,
    logs: meta.logs(),
    units: meta.computeUnitsConsumed(),
    inner: meta.innerInstructions().flatMap((list, index) => {
      const instructions = list.map((inner) => ({
        programIdIndex: inner.instruction().programIdIndex(),
        accounts: [...inner.instruction().accounts()],
        data: toBase58(inner.instruction().data()),
        stackHeight: inner.stackHeight(),
      }))
      return instructions.length === 0 ? [] : [{ index, instructions }]
    }),
    returnData:
      returned.data().length === 0
        ? null
        : {
            programId: toBase58(returned.programId()),
            data: [Buffer.from(returned.data()).toString('base64'), 'base64'],
          },
  }
}

/** LiteSVM throws on bytes that it cannot decode or sanitise: an error of the sender. */
const withInvalidParams = <T>(run: () => T): T => {
  try {
    return run()
  } catch (cause) {
    throw invalidParams(`invalid transaction: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
}

/** The virtual machine: accounts in, accounts out; it has no RPC, no history and no wall clock. */
export const openMachine = (snapshot?: Uint8Array) => {
  const svm = snapshot ? LiteSvm.fromBytes(snapshot) : new LiteSvm()
  if (snapshot === undefined) svm.withNativeMints()
  // The ledger's own index rejects duplicates and its slots validate blockhashes; both survive restarts, these do not.
  svm.setTransactionHistory(0n)
  svm.setBlockhashCheck(false)
  svm.setSigverify(true)

  const toFailedOutcome = (failed: FailedTransactionMetadata): Outcome =>
    toOutcome(failed.meta(), transactionError(failed.err() as Parameters<typeof transactionError>[0]))

  return {
    get: (address: string): Account | undefined => {
      const raw = svm.getAccount(addressBytes(address))
      if (raw === null) return undefined
      const account = accountOf(raw)
      return account.lamports === 0n && account.data.length === 0 ? undefined : account
    },
    lamports: (address: string): bigint => svm.getBalance(addressBytes(address)) ?? 0n,
    addProgram: (address: string, file: Uint8Array): void => svm.addProgram(addressBytes(address), file),
    put: (address: string, { lamports, data, owner, executable }: Account): void =>
      svm.setAccount(
        addressBytes(address),
        new RawAccount(lamports, data, addressBytes(owner), executable, neverRentBilled),
      ),
    ofProgram: (program: string): [string, Account][] =>
      svm
        .getProgramAccounts(addressBytes(program))
        .map((found): [string, Account] => [toBase58(found.address), accountOf(found.account())])
        .filter(([, account]) => account.lamports > 0n),
    rentExempt: (bytes: number): bigint => svm.minimumBalanceForRentExemption(BigInt(bytes)),
    setTime: (slot: number, timeS: number, blockhashes: ReadonlyMap<string, number>): void => {
      const epoch = BigInt(epochOf(slot))
      // A nonce account takes its next value from the machine's own newest blockhash.
      svm.expireBlockhash()
      svm.setClock(new Clock(BigInt(slot), BigInt(timeS), epoch, epoch + 1n, BigInt(timeS)))
      const hashes = [...blockhashes].map(([hash, at]) => ({ slot: BigInt(at), hash }))
      svm.setSlotHashes(hashes.filter((entry) => entry.slot < BigInt(slot)).reverse())
    },
    execute: ({ bytes, version }: Wire): Outcome =>
      withInvalidParams(() => {
        const done = version === 0 ? svm.sendVersionedTransaction(bytes) : svm.sendLegacyTransaction(bytes)
        return done instanceof FailedTransactionMetadata ? toFailedOutcome(done) : toOutcome(done, null)
      }),
    simulate: ({ bytes, version }: Wire, { checkSignatures }: { checkSignatures: boolean }): Simulation =>
      withInvalidParams(() => {
        svm.setSigverify(checkSignatures)
        try {
          const done =
            version === 0 ? svm.simulateVersionedTransaction(bytes) : svm.simulateLegacyTransaction(bytes)
          if (done instanceof FailedTransactionMetadata)
            return { ...toFailedOutcome(done), accounts: () => new Map() }
          const accounts = () =>
            new Map(done.postAccounts().map((post) => [toBase58(post.address), accountOf(post.account())]))
          return { ...toOutcome(done.meta(), null), accounts }
        } finally {
          svm.setSigverify(true)
        }
      }),
    snapshot: (): Uint8Array => svm.toBytes(),
  }
}
