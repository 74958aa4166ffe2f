import { randomBytes } from 'node:crypto'
import type { Account } from './account.ts'
import { toBase58 } from './base58.ts'
import { execution } from './execution.ts'
import { sha256 } from './keys.ts'
import type { Ledger } from './ledger.ts'
import { openMachine } from './machine.ts'
import { token2022Program, tokenProgram } from './programs.ts'
import { slots } from './slots.ts'
import { tokenIndex } from './token-index.ts'

export type Chain = ReturnType<typeof openChain>
export type Commitment = 'processed' | 'confirmed' | 'finalized'
type Seed = (put: (address: string, account: Account) => void) => void
type Options = { ledger: Ledger; finalitySlots: number; seed: Seed }

/** The chain: machine, time and ledger moving together. Everything is synchronous, so requests never interleave. */
export const openChain = ({ ledger, finalitySlots, seed }: Options) => {
  const stored = ledger.world()
  const machine = openMachine(stored?.machine)
  const state = stored ?? { seed: randomBytes(32), genesisMs: Date.now(), offsetMs: 0, lastMs: 0 }
  const time = slots(state)
  if (stored === undefined) seed(machine.put)
  const tokens = tokenIndex([tokenProgram, token2022Program].flatMap(machine.ofProgram))
  const { simulate, send } = execution({ machine, time, ledger, tokens })
  const depth = { processed: 0, confirmed: Math.min(1, finalitySlots), finalized: finalitySlots }
  let savedCount = ledger.count()

  const save = (): void => {
    time.nowMs()
    ledger.save({ ...state, machine: machine.snapshot() })
    savedCount = ledger.count()
  }
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
    /** Differs between worlds, so a client can tell that the chain under it was replaced. */
    genesisHash: toBase58(sha256(state.seed, 'genesis')),
    slotAt: (commitment: Commitment): number => time.current() - depth[commitment],
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
