import { createLru } from '#kernel/async/create-lru.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { canonicalAddress } from '#kernel/money/chains.ts'

/** The balances that this instance has last shown to each user, a chain at a time. */

export type Place = { chainId: string; token: string }
export type Balance = { token: string; units: bigint }
export type ShownBalances = {
  note(userId: string, chainId: string, balances: readonly Balance[]): void
  /** Forgets what was shown of a chain, after a transaction has changed it. */
  drop(userId: string, chainId: string): void
  /** Returns the units of a token that were shown in the last `maxAgeMs`; undefined if none were. */
  unitsOf(userId: string, place: Place, maxAgeMs: number): bigint | undefined
}

const entriesMax = 20_000

export function createShownBalances(): ShownBalances {
  const shown = createLru<string, { atMs: number; units: ReadonlyMap<string, bigint> }>(entriesMax)
  const keyOf = (userId: string, chainId: string) => `${userId}:${chainId}`
  return {
    note(userId, chainId, balances) {
      const units = new Map(balances.map((each) => [canonicalAddress(each.token), each.units]))
      shown.set(keyOf(userId, chainId), { atMs: monotonicMs(), units })
    },
    drop: (userId, chainId) => void shown.delete(keyOf(userId, chainId)),
    unitsOf(userId, { chainId, token }, maxAgeMs) {
      const last = shown.get(keyOf(userId, chainId))
      if (!last || monotonicMs() - last.atMs > maxAgeMs) return undefined
      return last.units.get(canonicalAddress(token))
    },
  }
}
