import type { Account, AccountLookup } from './account.ts'

type Version = { slot: number; before: Account | undefined }

export type AccountVersions = {
  /** Called before a transaction of this slot writes the accounts. */
  record: (slot: number, accounts: readonly (readonly [string, Account | undefined])[]) => void
  /** The account as it was at the end of that slot. */
  at: (address: string, slot: number) => Account | undefined
  /** Accounts whose current value is newer than that slot. */
  changedSince: (slot: number) => string[]
  /** Drops versions that no read can request any more. */
  prune: (oldestSlot: number) => void
}

/** Values of accounts before the newest transactions, for reads at a commitment or at a lagging node. */
export const accountVersions = (current: AccountLookup): AccountVersions => {
  const versions = new Map<string, Version[]>()
  return {
    record: (slot, accounts) => {
      for (const [address, before] of accounts) {
        const known = versions.get(address)
        // The first transaction of a slot stores the value from before the slot.
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
