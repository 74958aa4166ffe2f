import type { Clock } from '#kernel/clock.ts'
import { builder, fetchAll, type Queryable } from '#store/query.ts'

/** Sponsor accounts that an operator has paused: they pay for nothing new. */
export type PausedSponsors = {
  has(chainId: string, signer: string): Promise<boolean>
  /** The next call reads the database again. */
  invalidate(): void
}

/** Without a notification a change takes effect after this time. */
const freshMs = 5_000

export function pausedSponsors({ db, clock }: { db: Queryable; clock: Clock }): PausedSponsors {
  let known: { atMs: number; signers: Promise<Set<string>> } | undefined
  const keyOf = (chain: string, signer: string) => `${chain}:${signer.toLowerCase()}`
  const read = async () => {
    const rows = await fetchAll(db, builder.selectFrom('paused_sponsor').select(['chain', 'signer']))
    return new Set(rows.map(({ chain, signer }) => keyOf(chain, signer)))
  }
  return {
    async has(chainId, signer) {
      const atMs = clock.now().getTime()
      if (!known || Math.abs(atMs - known.atMs) > freshMs) {
        const signers = read()
        known = { atMs, signers }
        signers.catch(() => {
          known = undefined
        })
      }
      return (await known.signers).has(keyOf(chainId, signer))
    },
    invalidate() {
      known = undefined
    },
  }
}
