import { randomInt } from 'node:crypto'

/** `PROOF_SEED=<n>` repeats a run; the seed of each run is printed. */
export function proofSeed(suite: string): number {
  const seed = Number(process.env.PROOF_SEED ?? randomInt(2 ** 31))
  console.log(`${suite}: PROOF_SEED=${seed}`)
  return seed
}

export const isNightly = process.env.PROOF === 'nightly'

/** Loops of the nightly run are twenty times as long. */
export const loopFactor = isNightly ? 20 : 1
