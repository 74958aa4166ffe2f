import { randomBytes } from 'node:crypto'
import type { Account, AccountLookup } from './account.ts'
import { accountVersions } from './account-versions.ts'
import { toBase58 } from './base58.ts'
import type { CallJournal } from './call-journal.ts'
import { placeDepository } from './depository.ts'
import { createExecutor, type LandedTransaction } from './execution.ts'
import { sha256 } from './keys.ts'
import type { Ledger } from './ledger.ts'
import { openMachine } from './machine.ts'
import { token2022Program, tokenProgram } from './programs.ts'
import { slots } from './slots.ts'
import { tokenIndex } from './token-index.ts'
import { readTokenAccount, tokenKind } from './token-layout.ts'

export type Chain = ReturnType<typeof openChain>
export type Commitment = 'processed' | 'confirmed' | 'finalized'
export type View = {
  slot: number
  account: AccountLookup
  ofProgram: (program: string) => [string, Account][]
  tokensOfOwner: (owner: string) => string[]
  tokensOfMint: (mint: string) => string[]
}
/** Maximum lag of a node. */
export const lagSlotsMax = 16
type Seed = (put: (address: string, account: Account) => void) => void
type Options = { ledger: Ledger; journal: CallJournal; finalitySlots: number; seed: Seed }

/** The chain: machine, time and ledger advance together. Everything is synchronous, so requests never interleave. */
export const openChain = ({ ledger, journal, finalitySlots, seed }: Options) => {
  const stored = ledger.world()
  const machine = openMachine(stored?.machine)
  const state = stored ?? { seed: randomBytes(32), genesisMs: Date.now(), offsetMs: 0, lastMs: 0 }
  const time = slots(state)
  if (stored === undefined) seed(machine.put)
  placeDepository(machine)
  const tokens = tokenIndex([tokenProgram, token2022Program].flatMap(machine.ofProgram))
  const listeners = new Set<(landed: LandedTransaction) => void>()
  const onLanded = (transaction: LandedTransaction) => {
    for (const listener of listeners) listener(transaction)
  }
  const versions = accountVersions(machine.get)
  let prunedAt = 0
  const beforeWrite: Parameters<typeof createExecutor>[0]['beforeWrite'] = (slot, accounts) => {
    if (slot > prunedAt) versions.prune(slot - finalitySlots - lagSlotsMax - 1)
    prunedAt = slot
    versions.record(slot, accounts)
  }
  let restoring = true
  const executed = (wire: Uint8Array, atMs: number) => {
    if (!restoring) journal.add({ wire, atMs })
  }
  const parts = { machine, time, ledger, tokens, onLanded, executed, beforeWrite }
  const { simulate, send, replay } = createExecutor(parts)
  const depth = { processed: 0, confirmed: Math.min(1, finalitySlots), finalized: finalitySlots }
  let lagSlots = 0
  const slotAt = (commitment: Commitment): number => time.current() - depth[commitment] - lagSlots
  let savedCount = ledger.count()

  const save = (): void => {
    time.nowMs()
    ledger.save({ ...state, machine: machine.snapshot() })
    // After a kill behind the commit, the ledger has these entries already; they are not run again.
    journal.clear()
    savedCount = ledger.count()
  }
  const recordMint = (id: string, signature: string): void => {
    if (ledger.minted(id) !== undefined) return
    ledger.recordMint(id, signature)
    if (!restoring) journal.add({ mint: id, signature })
  }
  for (const call of stored === undefined ? [] : journal.read()) {
    if ('mint' in call) recordMint(call.mint, call.signature)
    else time.at(call.atMs, () => replay(call.wire))
  }
  restoring = false
  if (stored === undefined) save()

  return {
    time,
    tokens,
    ledger,
    account: machine.get,
    ofProgram: machine.ofProgram,
    rentExempt: machine.rentExempt,
    simulate,
    send,
    recordMint,
    together: journal.batch,
    /** Called for each transaction in a block; returns the function that unsubscribes. */
    onLanded: (listener: (landed: LandedTransaction) => void): (() => void) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    /** Differs between worlds, so that a client detects that the chain was replaced. */
    genesisHash: toBase58(sha256(state.seed, 'genesis')),
    slotAt,
    /** The accounts as a reader at this commitment sees them. */
    view: (commitment: Commitment): View => {
      const slot = slotAt(commitment)
      const account = (address: string) => versions.at(address, slot)
      const tokenAccounts = (known: string[], fits: (owned: { owner: string; mint: string }) => boolean) =>
        [...new Set([...known, ...versions.changedSince(slot)])].filter((address) => {
          const found = account(address)
          return found !== undefined && tokenKind(found) === 'account' && fits(readTokenAccount(found.data))
        })
      return {
        slot,
        account,
        ofProgram: (program) => {
          const changed = new Set(versions.changedSince(slot))
          const unchanged = machine.ofProgram(program).filter(([address]) => !changed.has(address))
          const older = [...changed].flatMap((address): [string, Account][] => {
            const found = account(address)
            return found?.owner === program ? [[address, found]] : []
          })
          return [...unchanged, ...older]
        },
        tokensOfOwner: (owner) => tokenAccounts(tokens.ofOwner(owner), (each) => each.owner === owner),
        tokensOfMint: (mint) => tokenAccounts(tokens.ofMint(mint), (each) => each.mint === mint),
      }
    },
    /** Runs reads as a node serves them that lags by so many slots. */
    readLagged: <T>(count: number, read: () => T): T => {
      lagSlots = Math.min(count, lagSlotsMax)
      try {
        return read()
      } finally {
        lagSlots = 0
      }
    },
    advance: (advanceMs: number): void => {
      time.advance(advanceMs)
      save()
    },
    save,
    saveIfChanged: (): void => {
      if (ledger.count() !== savedCount) save()
    },
  }
}
