import { setTimeout as pause } from 'node:timers/promises'
import type { Ledger } from '#durable/ledger/ledger.ts'
import type { AccountRef } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'

export type FreeUnits = { totalUnits: bigint; heldUnits: bigint; freeUnits: bigint; version: bigint }
type FreeUnitsRequest = {
  account: AccountRef
  /** Reads the units that the account has outside of the ledger, such as on its chain. */
  readTotal: () => Promise<bigint>
  /** If the free units are fewer, the function waits a little for the tasks that hold some of them. */
  requiredUnits?: bigint
}

const settleMsMax = 1000
const settlePollMs = 100

/**
 * Returns the units of an account that no task holds. The ledger is read before the chain, so that a hold that settles
 * in between makes the version old. Units that a task holds and has already spent on the chain count twice until the
 * task has settled, so the chain is read again after a settlement if it showed enough units.
 */
export async function readFreeUnits(
  { db, ledger }: { db: Queryable; ledger: Pick<Ledger, 'balance'> },
  { account, readTotal, requiredUnits = 0n }: FreeUnitsRequest,
): Promise<FreeUnits> {
  const until = performance.now() + settleMsMax
  let { heldUnits, version } = await ledger.balance(db, account)
  while (true) {
    const totalUnits = await readTotal()
    const freeUnits = totalUnits > heldUnits ? totalUnits - heldUnits : 0n
    const read = { totalUnits, heldUnits, freeUnits, version }
    if (freeUnits >= requiredUnits || totalUnits < requiredUnits) return read
    do {
      if (performance.now() > until) return read
      await pause(settlePollMs)
      ;({ heldUnits, version } = await ledger.balance(db, account))
    } while (version === read.version)
  }
}
