import type { Account } from './account.ts'
import { readTokenAccount, tokenKind } from './token-layout.ts'

type Entry = { owner: string; mint: string }
export type TokenIndex = ReturnType<typeof tokenIndex>

const addTo = (sets: Map<string, Set<string>>, key: string, address: string): void => {
  const set = sets.get(key)
  if (set) set.add(address)
  else sets.set(key, new Set([address]))
}

const removeFrom = (sets: Map<string, Set<string>>, key: string, address: string): void => {
  const set = sets.get(key)
  set?.delete(address)
  if (set?.size === 0) sets.delete(key)
}

/** Token accounts by owner and by mint; updated from the accounts that each transaction may write. */
export const tokenIndex = (initial: Iterable<[string, Account]>) => {
  const entries = new Map<string, Entry>()
  const byOwner = new Map<string, Set<string>>()
  const byMint = new Map<string, Set<string>>()

  const note = (address: string, account: Account | undefined): void => {
    const known = entries.get(address)
    const next = account && tokenKind(account) === 'account' ? readTokenAccount(account.data) : undefined
    if (known && known.owner === next?.owner && known.mint === next.mint) return
    if (known) {
      entries.delete(address)
      removeFrom(byOwner, known.owner, address)
      removeFrom(byMint, known.mint, address)
    }
    if (next) {
      entries.set(address, { owner: next.owner, mint: next.mint })
      addTo(byOwner, next.owner, address)
      addTo(byMint, next.mint, address)
    }
  }

  for (const [address, account] of initial) note(address, account)
  return {
    note,
    has: (address: string): boolean => entries.has(address),
    ofOwner: (owner: string): string[] => [...(byOwner.get(owner) ?? [])],
    ofMint: (mint: string): string[] => [...(byMint.get(mint) ?? [])],
  }
}
