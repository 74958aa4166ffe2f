import type { Clock } from '#kernel/clock.ts'
import { all, type Queryable, q } from '#store/query.ts'

/** Which accounts an operator lets pay for nothing new. */
export type PausedSponsors = {
  has(chainId: string, signer: string): Promise<boolean>
  /** Something changed: the next question reads again. */
  forget(): void
}

/** Without a hint a change counts this much later. */
const freshMs = 5_000

export function pausedSponsors({ on, clock }: { on: Queryable; clock: Clock }): PausedSponsors {
  let known: { atMs: number; of: Promise<Set<string>> } | undefined
  const keyOf = (chain: string, signer: string) => `${chain}:${signer.toLowerCase()}`
  const read = async () => {
    const rows = await all(on, q.selectFrom('paused_sponsor').select(['chain', 'signer']))
    return new Set(rows.map(({ chain, signer }) => keyOf(chain, signer)))
  }
  return {
    async has(chainId, signer) {
      const atMs = clock.now().getTime()
      if (!known || Math.abs(atMs - known.atMs) > freshMs) {
        const of = read()
        known = { atMs, of }
        of.catch(() => {
          known = undefined
        })
      }
      return (await known.of).has(keyOf(chainId, signer))
    },
    forget() {
      known = undefined
    },
  }
}
