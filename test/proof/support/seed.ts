import { randomInt } from 'node:crypto'

/** `PROOF_SEED=<n>` repeats a run; the seed of each run is printed. */
export function proofSeed(suite: string): number {
  const seed = Number(process.env.PROOF_SEED ?? randomInt(2 ** 31))
  console.log(`${suite}: PROOF_SEED=${seed}`)
  return seed
}

type Sizes<T> = {
  /** `npm test`. */
  short: T
  /** `npm run test:all` and `npm run test:crash`. */
  full: T
  /** `PROOF=nightly npm test`. */
  nightly: T
}
type Size = keyof Sizes<unknown>

const isSize = (name: string): name is Size => ['short', 'full', 'nightly'].includes(name)
const named = process.env.PROOF ?? 'short'
if (!isSize(named)) throw new Error(`PROOF must be short, full or nightly, not ${named}`)

/** How much of a proof this run does, by `PROOF`. */
export const bySize = <T>(sizes: Sizes<T>): T => sizes[named]
export const isNightly = named === 'nightly'
export const isShort = named === 'short'
