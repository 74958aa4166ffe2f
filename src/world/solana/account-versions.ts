import type { Account, AccountLookup } from './account.ts'

type Version = { slot: number; before: Account | undefined }

export type AccountVersions = {
  /** Called before a transaction of this slot writes the accounts. */
  record: (slot: number, accounts: readonly (readonly [string, Account | undefined])[]) => void
  /** The account as it was at the end of that slot. */
  at: (address: string, slot: number) => Account | undefined
  /** Accounts whose present value is younger than that slot. */
  changedSince: (slot: number) => string[]
  /** Forgets what nobody may ask for any more. */
  prune: (oldestSlot: number) => void
}

/** What accounts held before the newest transactions, because a commitment or a node behind the others reads that. */
export const accountVersions = (current: AccountLookup): AccountVersions => {
  const versions = new Map<string, Version[]>()
  return {
    record: (slot, accounts) => {
      for (const [address, before] of accounts) {
        const known = versions.get(address)
        // The first transaction of a slot knows what was there before the slot.
        if (known?.at(-1)?.slot === slot) continue
        if (known) known.push({ slot, before })
        else versions.set(address, [{ slot, before }])
      }
    },
    at: (address, slot) => {
      const younger = versions.get(address)?.find((each) => each.slot > slot)
      return younger ? younger.before : current(address)
    },
    changedSince: (slot) =>
      [...versions].flatMap(([address, known]) => (known.some((each) => each.slot > slot) ? [address] : [])),
    prune: (oldestSlot) => {
      for (const [address, known] of versions) {
        const remaining = known.filter(({ slot }) => slot > oldestSlot)
        if (remaining.length === 0) versions.delete(address)
        else if (remaining.length < known.length) versions.set(address, remaining)
      }
    },
  }
}
