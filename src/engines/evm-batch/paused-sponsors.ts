import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { monotonicMs } from '#kernel/clock.ts'
import { builder, fetchAll, type Queryable } from '#store/query.ts'

/** Sponsor accounts that an operator has paused: they pay for no new transaction. */
export type PausedSponsors = {
  has(chainId: string, signer: string): Promise<boolean>
  invalidate(): void
}

/** A pause or its end takes effect after this time if its notification is lost. */
const freshMs = 5_000

export function createPausedSponsors({ db }: { db: Queryable }): PausedSponsors {
  const keyOf = (chain: string, signer: string) => `${chain}:${signer.toLowerCase()}`
  const read = async () => {
    const rows = await fetchAll(db, builder.selectFrom('paused_sponsor').select(['chain', 'signer']))
    return new Set(rows.map(({ chain, signer }) => keyOf(chain, signer)))
  }
  const paused = createCachedValue(read, { ttlMs: freshMs, nowMs: monotonicMs })
  return {
    has: async (chainId, signer) => (await paused.get()).has(keyOf(chainId, signer)),
    invalidate: () => paused.invalidate(),
  }
}
